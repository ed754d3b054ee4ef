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
