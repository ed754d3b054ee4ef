"""Many outer joins in one query, with more products than a delta could be made of: stars, chains, mixed sides."""

from random import Random

import pytest

from pytrickle.errors import NotDifferentiable
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences
from tests.equivalence.played import batches, follow
from tests.repeats import first

KEYS = range(6)
FILLED = "; ".join(
    f"INSERT INTO d{i} SELECT j, (j * 5 + {i}) % 8, 'n' || j % 4, j % 2 FROM generate_series(1, 7) AS j" for i in KEYS
)
TABLES = f"""
CREATE TABLE facts (id int PRIMARY KEY, {", ".join(f"k{i} int" for i in KEYS)}, amount numeric(8, 2), note numeric);
INSERT INTO facts SELECT i, {", ".join(f"nullif((i * {7 + k}) % 9, 0)" for k in KEYS)}, i % 5, (i % 3)::numeric / 2
FROM generate_series(1, 40) AS i;
{"; ".join(f"CREATE TABLE d{i} (id int PRIMARY KEY, up int, name text, level numeric)" for i in KEYS)};
{FILLED};
CREATE TABLE twice (id int, name text);
CREATE VIEW levels AS SELECT up, max(id) AS level FROM d4 WHERE id < 7 GROUP BY up;
CREATE VIEW flagged AS SELECT id, coalesce(up, 0) AS shown, true AS found FROM d5;
INSERT INTO twice SELECT j % 5, 't' || j FROM generate_series(1, 9) AS j;
"""
STAR = " ".join(f"LEFT JOIN d{i} ON d{i}.id = facts.k{i}" for i in KEYS)
FOUR, _, _ = STAR.partition(" LEFT JOIN d4")
CHAIN = " ".join(f"LEFT JOIN d{i} ON d{i}.id = d{i - 1}.up" for i in KEYS if i)
NAMES = ", ".join(f"d{i}.name AS n{i}" for i in KEYS)
QUERIES = {
    "star": f"SELECT facts.id, facts.note, {NAMES} FROM facts {STAR}",
    "summed": f"""SELECT d1.name, d5.level, count(*) AS n, sum(facts.amount) AS s, max(d3.up) AS m
        FROM facts {STAR} GROUP BY 1, 2""",
    "chain": f"SELECT d0.id, {NAMES} FROM d0 {CHAIN}",
    "filtered": f"SELECT facts.id, {NAMES} FROM facts {STAR} WHERE d2.name IS NULL OR d5.up > d3.up",
    "several": f"SELECT facts.id, t.name AS t, u.name AS u, {NAMES} FROM facts {STAR}"
    " LEFT JOIN twice t ON t.id = facts.k1 AND t.name > d2.name LEFT JOIN twice u ON u.id = d4.up",
    "inner_last": f"SELECT facts.id, z.name AS z, {NAMES} FROM facts {STAR} JOIN twice z ON z.id = d5.up",
    "in_parentheses": """SELECT facts.id, a.name AS a, e.name AS e, g.name AS g FROM facts
        LEFT JOIN (d0 a LEFT JOIN d1 b ON b.id = a.up LEFT JOIN d2 c ON c.id = b.up) ON a.id = facts.k0
        LEFT JOIN (d3 e JOIN d4 f ON f.id = e.up) ON e.id = facts.k3
        LEFT JOIN d5 g ON g.id = facts.k5 AND g.level < facts.amount LEFT JOIN d0 h ON h.id = g.up""",
    "sides": """SELECT facts.id, a.name AS a, b.id AS b, c.id AS c, d.name AS d, e.name AS e FROM facts
        LEFT JOIN d0 a ON a.id = facts.k0 FULL JOIN d1 b ON b.id = facts.k1 RIGHT JOIN d2 c ON c.id = b.up
        LEFT JOIN d3 d ON d.id = c.up LEFT JOIN d4 e ON e.id = facts.k4""",
    "by_name": """SELECT facts.id, d0.name AS a, d1.name AS b, d2.name AS c, d3.name AS d, d4.up AS e FROM facts
        LEFT JOIN d0 USING (id) LEFT JOIN d1 USING (id) LEFT JOIN d2 USING (id) LEFT JOIN d3 USING (id)
        LEFT JOIN d4 ON d4.id = facts.k4""",
    "of_queries": """WITH newest AS (SELECT id, max(name) AS name FROM twice GROUP BY id)
        SELECT facts.id, t1.n AS an, t2.s AS bs, c.name AS c, d.name AS d, e.level AS e, g.name AS g FROM facts
        LEFT JOIN (SELECT x.up, count(w.name) AS n FROM d0 x JOIN newest w ON w.id <= x.id GROUP BY x.up) AS t1
        ON t1.up = facts.k0
        LEFT JOIN (SELECT k1, sum(amount) FROM facts GROUP BY k1) AS t2 (k, s) ON t2.k = facts.k1
        LEFT JOIN newest AS c ON c.id = facts.k2 LEFT JOIN newest AS d ON d.id = t2.k
        LEFT JOIN levels AS e ON e.up = facts.k4
        LEFT JOIN (SELECT id, name FROM d5 UNION SELECT id, name FROM newest) AS g ON g.id = facts.k5""",
    "computed_below": """SELECT facts.k0, count(a.found) AS a, string_agg(b.shown::text, ',' ORDER BY facts.id) AS b,
        count(c.found) AS c, count(d.found) AS d, count(e.found) AS e, count(f.found) AS f FROM facts
        LEFT JOIN flagged a ON a.id = facts.k0 LEFT JOIN flagged b ON b.id = facts.k1
        LEFT JOIN flagged c ON c.id = facts.k2 LEFT JOIN flagged d ON d.id = facts.k3
        LEFT JOIN flagged e ON e.id = facts.k4 LEFT JOIN flagged f ON f.id = facts.k5 GROUP BY facts.k0""",
    "whole_rows": f"SELECT facts.id, to_jsonb(d1.*) AS j, d2.* IS NULL AS lacks FROM facts {FOUR}",
}


def a_change(random: Random) -> str:
    """Write one statement; numbers change by how they look, too."""
    table, key, other = f"d{random.choice(KEYS)}", random.randint(1, 9), random.randint(0, 8)
    fact, column = random.randint(1, 45), f"k{random.choice(KEYS)}"
    return random.choice(
        (
            f"INSERT INTO {table} VALUES ({key}, {other}, 'n{other % 4}', {random.choice(('1', '1.0', 'NULL'))})"
            " ON CONFLICT DO NOTHING",
            f"DELETE FROM {table} WHERE id = {key}",
            f"UPDATE {table} SET up = {other}, level = level + 0.0 WHERE id = {key}",
            f"UPDATE {table} SET id = id + 20 WHERE id = {key}",
            f"UPDATE facts SET {column} = nullif({other}, 0), note = note + 0.00 WHERE id % 7 = {fact % 7}",
            f"INSERT INTO facts (id, {column}, amount) VALUES ({fact}, {key}, {other}) ON CONFLICT DO NOTHING",
            f"DELETE FROM facts WHERE id = {fact}",
            f"INSERT INTO twice VALUES ({other}, 't{key}')",
            f"DELETE FROM twice WHERE id = {other}",
        )
    )


@pytest.mark.parametrize("seed", first(1, (0, 1)))
def test_many_outer_joins_are_differential(every_db: Database, seed: int) -> None:
    every_db.execute(TABLES)
    named = {f"q_{name}": query for name, query in QUERIES.items()}
    follow(every_db, named, batches(seed, a_change, 4, range(1, 4)))


@pytest.mark.parametrize("name", first(1, ("of_queries", "star")))
def test_what_a_watermark_holds_back_is_not_read(db: Database, name: str) -> None:
    db.execute(TABLES)
    random, query = Random(1), QUERIES[name]
    with local_client(db.dsn) as (client, _), db.connect() as connection:
        client.create_watermark_group("loads", ["facts", "d0"])
        client.create_stream_table("result", query, refresh_mode="DIFFERENTIAL", watermark_gating="hold_back")
        for number in range(1, 7):
            db.execute(a_change(random))
            for source in ("facts", "d0"):
                db.execute(f"SELECT pgtrickle.advance_watermark('{source}', '2024-01-0{number}Z')")
            shown = db.execute(f"SELECT q::text FROM ({query}) AS q ORDER BY 1")
            for statement in ("UPDATE facts SET k1 = 3 WHERE id % 4 = 1", "DELETE FROM facts WHERE id % 11 = 5"):
                db.execute(statement)
            client.tick()
            if number % 2:
                assert db.execute("SELECT q::text FROM result AS q ORDER BY 1") == shown
        for source in ("facts", "d0"):
            db.execute(f"SELECT pgtrickle.advance_watermark('{source}', '2024-02-01Z')")
        client.tick()
        assert not differences(connection, "result", query, True)


@pytest.mark.parametrize(
    "chosen",
    (
        "SELECT DISTINCT ON (id) id, name FROM twice ORDER BY id",
        "SELECT id, name FROM twice ORDER BY id LIMIT 3",
        "SELECT id, name FROM (SELECT id, name, row_number() OVER (PARTITION BY id) AS n FROM twice) AS w WHERE n = 1",
        "SELECT id, min(name) AS name, array_agg(name ORDER BY length(name)) AS names FROM twice GROUP BY id",
        "SELECT up AS id, max(level) AS name FROM d1 GROUP BY up",
        "SELECT DISTINCT level AS id, 'x' AS name FROM d1",
    ),
)
def test_what_postgresql_may_choose_otherwise_is_not_read_as_it_is_written(db: Database, chosen: str) -> None:
    """A delta chooses among rows that tie, and among equal values, in its own way: it would not fit what is read so."""
    db.execute(TABLES)
    query = f"SELECT facts.id, x.name AS x, {NAMES} FROM facts LEFT JOIN ({chosen}) AS x ON x.id = facts.k0 {STAR}"
    with local_client(db.dsn) as (client, _), pytest.raises(NotDifferentiable, match="over 256 products"):
        client.create_stream_table("chosen", query, refresh_mode="DIFFERENTIAL")
