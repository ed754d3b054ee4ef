"""XML, whose syntax the planner passes on to PostgreSQL; servers may be built without it."""

from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences

ELEMENTS = """SELECT id, xmlconcat(xmlelement(name "the ""row's", xmlattributes(k AS key, id), t, xmlforest(k AS kind)),
    xmlpi(name seen, 'it'))::text AS x, xmlelement(name plain)::text AS y FROM t"""


def test_xml_elements_refresh_differentially(db: Database) -> None:
    db.execute("CREATE TABLE t (id int PRIMARY KEY, k int, t text)")
    with local_client(db.dsn) as (client, _), db.connect() as connection:
        client.create_stream_table("st", ELEMENTS)
        client.tick()
        for change in ("INSERT INTO t VALUES (1, 2, 'a < b'), (2, NULL, NULL)", "UPDATE t SET k = 3", "DELETE FROM t"):
            db.execute(change)
            assert [result.action for result in client.tick()] == ["DIFFERENTIAL"]
            assert not differences(connection, "st", ELEMENTS, True), change


KEYWORDS = {
    "filtered": """SELECT t.id, u.id AS u FROM t JOIN u USING (k)
        WHERE xmlexists('/a[@n = "AS"]' PASSING t.x) AND NOT xmlparse(CONTENT t.s) IS DOCUMENT""",
    "parsed": """SELECT id, xmlserialize(CONTENT xmlparse(CONTENT s || ' SIMILAR ') AS varchar(40)) AS s,
        xmlroot(x, VERSION '1.0', STANDALONE YES)::text AS r, xmlroot(x, VERSION NO VALUE)::text AS n FROM t""",
    "cut_out": r"""SELECT substring(s SIMILAR '%#"[a-z]#"%' ESCAPE '#') AS cut,
        substring(substring(s SIMILAR s ESCAPE NULL) FROM 1) AS no, count(*) AS c FROM u GROUP BY 1, 2""",
    "normal": "SELECT id, normalize(s, NFKC) AS n, s IS NOT NORMALIZED AS o FROM u WHERE s IS NFC NORMALIZED",
}


def test_calls_with_keywords_between_their_arguments_refresh_differentially(db: Database) -> None:
    for table in "tu":
        db.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, k int, s text, x xml)")
    with local_client(db.dsn) as (client, _), db.connect() as connection:
        for name, query in KEYWORDS.items():
            client.create_stream_table(name, query)
        client.tick()
        for change in (
            """INSERT INTO t VALUES (1, 1, 'a', '<a n="AS"/>'), (2, 1, 'b', '<a n="BS"/>'), (3, 2, NULL, '<b/>');
            INSERT INTO u SELECT id, k, s || chr(64257) || id, x FROM t""",
            """UPDATE t SET x = '<a n="AS"/>' WHERE id = 3; UPDATE u SET s = 'c', k = 2 WHERE id < 3""",
            "DELETE FROM t WHERE id = 1; DELETE FROM u WHERE id = 1",
        ):
            db.execute(change)
            assert {(result.action, result.error) for result in client.tick()} == {("DIFFERENTIAL", None)}
            for name, query in KEYWORDS.items():
                assert not differences(connection, name, query, True), (name, change)


def test_tables_read_from_xml_refresh_differentially(db: Database) -> None:
    columns = (
        """COLUMNS n int PATH '@n', name varchar(20) DEFAULT 'it''s ' || d.id PATH 'name', "o, o" FOR ORDINALITY"""
    )
    table = f"xmltable('//row[@n > 0]' PASSING d.doc {columns}) AS x"
    named = "xmltable(XMLNAMESPACES('http://x.y/?' AS z), '//z:row' PASSING d.doc COLUMNS price numeric(5,2) PATH '@p')"
    queries = {
        "rows": f"SELECT d.id, x.* FROM docs AS d, {table} WHERE x.n > d.least",
        "groups": f"SELECT x.n, count(*) AS c FROM docs AS d LEFT JOIN {table} ON x.n > 1 GROUP BY x.n",
        "whole": f"SELECT d.id, row_to_json(x)::text AS j FROM docs AS d, {table}",
        "named": f"SELECT d.id, x.price FROM docs AS d, {named} AS x",
    }
    db.execute("CREATE TABLE docs (id int, least int, doc xml)")
    with local_client(db.dsn) as (client, _), db.connect() as connection:
        for name, query in queries.items():
            client.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
        client.tick()
        for change in (
            """INSERT INTO docs VALUES (1, 0, '<r><row n="1"><name>a</name></row><row n="2"/></r>'), (3, 0, NULL),
            (2, 0, '<r xmlns:z="http://x.y/?"><z:row p="3.125"/><row n="9"/></r>')""",
            """UPDATE docs SET doc = '<r><row n="5"/></r>' WHERE id = 1; UPDATE docs SET least = 9 WHERE id = 2""",
            "DELETE FROM docs WHERE id = 2",
        ):
            db.execute(change)
            assert {result.action for result in client.tick()} <= {"DIFFERENTIAL", "NO_DATA"}
            for name, query in queries.items():
                assert not differences(connection, name, query, True), (name, change)
