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
