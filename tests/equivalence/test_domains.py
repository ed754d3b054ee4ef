"""Columns of domains, of which a query shows what nobody may write: NULL, and values from before a constraint."""

import pytest

from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences
from tests.equivalence.runs import disable_jit
from tests.repeats import first

TABLES = """
CREATE DOMAIN named AS text NOT NULL; CREATE DOMAIN again AS named;
CREATE DOMAIN known AS int CHECK (VALUE IS NOT NULL);
CREATE DOMAIN amount AS numeric(8, 2); CREATE DOMAIN letters AS varchar(4) COLLATE "C" NOT NULL;
CREATE TABLE a (id int PRIMARY KEY, x again, k known, v amount); CREATE TABLE b (id int, aid int, y named, l letters);
INSERT INTO a VALUES (1, 'a', 1, -5), (2, 'b', 2, -6.5), (3, 'a', 3, 3), (4, 'd', 4, NULL);
INSERT INTO b VALUES (1, 1, 'y', 'p'), (2, 1, 'z', 'q'), (3, 9, 'y', 'p'), (4, NULL, 'w', 'P');
ALTER DOMAIN amount ADD CONSTRAINT positive CHECK (VALUE > 0) NOT VALID;
CREATE FUNCTION shout(named) RETURNS text IMMUTABLE LANGUAGE sql RETURN upper(COALESCE($1, 'none'))
"""
QUERIES = {
    "violated": "SELECT id, v FROM a",
    "violating_groups": "SELECT v, count(*) AS n FROM a GROUP BY v",
    "extremes": "SELECT max(v) AS most, min(v) AS least, sum(v) AS s FROM a",
    "unmatched": "SELECT a.id, b.y, b.l FROM a LEFT JOIN b ON b.aid = a.id",
    "both": "SELECT a.x, a.k, b.y FROM a FULL JOIN b ON b.aid = a.id",
    "united": "SELECT x, a.id, q.bid FROM a FULL JOIN (SELECT y AS x, id AS bid FROM b) AS q USING (x)",
    "unmatched_groups": "SELECT b.y, count(*) AS n, count(a.id) AS m FROM a LEFT JOIN b ON b.aid = a.id GROUP BY b.y",
    "totals": "SELECT x, k, count(*) AS n FROM a GROUP BY ROLLUP (x, k)",
    "subqueries": "SELECT id, (SELECT max(b.y) FROM b WHERE b.aid = a.id) AS y FROM a",
    "one_of_each": "SELECT id, (SELECT b.y FROM b WHERE b.id = a.id + 1) AS y FROM a",
    "neighbours": "SELECT id, lag(x) OVER (ORDER BY id) AS x, lead(k) OVER (ORDER BY id) AS k FROM a",
    "distinct_rows": "SELECT DISTINCT b.y, b.l FROM a LEFT JOIN b ON b.aid = a.id",
    "union_of": "SELECT b.y FROM a LEFT JOIN b ON b.aid = a.id UNION SELECT x FROM a",
    "foremost": "SELECT b.y, a.id FROM a LEFT JOIN b ON b.aid = a.id ORDER BY b.y NULLS FIRST, a.id LIMIT 2",
    "grouped_below": "SELECT a.id, q.y, q.n FROM a LEFT JOIN (SELECT y, aid, count(*) AS n FROM b GROUP BY y, aid) AS q"
    " ON q.aid = a.id",
    "called": "SELECT a.id, shout(b.y) AS y FROM a LEFT JOIN b ON b.aid = a.id",
    "collected": "SELECT string_agg(b.y, ',' ORDER BY b.y) AS ys, a.x FROM a LEFT JOIN b ON b.aid = a.id GROUP BY a.x",
}
ABOVE = "SELECT y, count(*) AS n FROM st_unmatched GROUP BY y"
BATCHES = (
    "UPDATE a SET id = 11 WHERE id = 1; INSERT INTO b VALUES (5, 3, 'v', 'r')",
    "DELETE FROM a WHERE id = 2; UPDATE b SET aid = 3",
    "ALTER DOMAIN named ADD CONSTRAINT late CHECK (VALUE <> 'a') NOT VALID; DELETE FROM b WHERE id < 3",
    "DELETE FROM a WHERE x = 'a'; DELETE FROM b",
    "ALTER DOMAIN amount DROP CONSTRAINT positive; INSERT INTO a VALUES (5, 'e', 5, -1), (6, 'e', 6, NULL)",
)


@pytest.mark.parametrize("small", first(1, (20_000, 0)), ids=lambda rows: f"small={rows}")
def test_what_a_query_shows_of_a_domain_need_not_fit_it(every_db: Database, small: int) -> None:
    db = every_db
    disable_jit(db)
    db.execute(TABLES)
    queries = {f"st_{name}": query for name, query in QUERIES.items()} | {"st_above": ABOVE}
    with local_client(db.dsn, small_delta_rows=small) as (client, _), db.connect() as connection:
        for name, query in queries.items():
            client.create_stream_table(name, query, refresh_mode="AUTO" if "shout" in query else "DIFFERENTIAL")
        for batch in ("SELECT", *BATCHES):
            db.execute(batch)
            # Before the tick they are compared at their frontiers: sources are read as they were.
            assert [result for result in client.verify() if not (result.matches or result.pending)] == []
            assert [result.error for result in client.tick() if result.error] == [], batch
            wrong = {name for name, query in queries.items() if differences(connection, name, query, True)}
            assert wrong == set(), batch
    types = "SELECT array_agg(format_type(atttypid, atttypmod) ORDER BY attnum) FROM pg_attribute"
    stored = db.value(f"{types} WHERE attrelid = 'st_unmatched'::regclass AND attnum > 0")
    assert stored == ["integer", "text", "character varying(4)"]
