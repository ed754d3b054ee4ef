"""PostgreSQL 18 knows the extremes of rows, which are rows of no named type: no table of ours can hold them."""

import pytrickle
from tests.conftest import Database
from tests.repeats import only_on_18

QUERIES = {
    "rows": "SELECT c, max(p)::text AS m FROM t GROUP BY c",
    "whole": "SELECT max(t)::text AS m, count(*) AS n FROM t",
    "labels": "SELECT c, min(k) AS m FROM t GROUP BY c",
    "numbers": "SELECT c, max(d) AS m FROM t GROUP BY c",
}


@only_on_18
def test_extremes_of_rows_are_read_whole_and_those_of_other_types_are_kept(every_db: Database) -> None:
    every_db.execute("CREATE TYPE pair AS (x int, y text)")
    every_db.execute("CREATE TYPE kind AS ENUM ('z', 'a')")
    every_db.execute("CREATE DOMAIN small AS int")
    every_db.execute("CREATE TABLE t (id int, c text, p pair, k kind, d small)")
    every_db.execute("INSERT INTO t VALUES (1, 'x', '(1,a)', 'z', 1), (2, 'x', '(2,b)', 'a', 2)")
    with pytrickle.connect(every_db.dsn, engine="postgres") as client:
        for name, query in QUERIES.items():
            client.create_stream_table(name, query)
        for change in ("SELECT", "INSERT INTO t VALUES (3, 'y', '(5,)', 'a', 5)", "DELETE FROM t WHERE id = 2"):
            every_db.execute(change)
            assert [result.error for result in client.tick()] == [None] * len(QUERIES)
            assert all(found.matches for found in client.verify())
        every_db.execute("INSERT INTO t VALUES (2, 'x', '(2,c)', 'z', 7)")
        actions = {result.stream_table.removeprefix("public."): result.action for result in client.tick()}
        assert actions == {"rows": "FULL", "whole": "FULL", "labels": "DIFFERENTIAL", "numbers": "DIFFERENTIAL"}
