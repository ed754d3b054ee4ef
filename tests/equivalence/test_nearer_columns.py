"""Subqueries that refer to rows further around, past the rows right around them that have the same values."""

from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences
from tests.equivalence.played import assert_differential
from tests.equivalence.test_delta_cost import World, world

__all__ = ["world"]

TABLES = """
CREATE TABLE users (id int, since int, rate numeric);
CREATE TABLE visits (no int PRIMARY KEY, uid int, big bigint, at int, rate numeric);
INSERT INTO users SELECT i, i % 5, i % 4 FROM generate_series(1, 20) AS i;
INSERT INTO users VALUES (NULL, 3, NULL), (7, 9, 2.00), (8, 1, 3.0);
INSERT INTO visits SELECT i, i % 17, i % 17, i * 7 % 60, i % 5 FROM generate_series(1, 90) AS i;
INSERT INTO visits VALUES (91, NULL, 3, 4, NULL), (92, 3, 3, NULL, 1.00);
"""
LAST = "SELECT max(p.at) FROM visits p WHERE p.uid = u.id"
QUERIES = {
    "second": f"SELECT u.id, (SELECT max(v.at) FROM visits v WHERE v.uid = u.id AND v.at < ({LAST})) FROM users u",
    "before": f"SELECT u.id, (SELECT max(v.at) FROM visits v WHERE v.at < ({LAST}) AND v.uid = u.id) FROM users u",
    "later": """SELECT u.id, u.since FROM users u WHERE EXISTS (SELECT FROM visits v WHERE v.uid = u.id
        AND NOT EXISTS (SELECT FROM visits p WHERE p.uid = u.id AND p.at > v.at) AND u.since < 9)""",
    "listed": """SELECT u.id, (SELECT count(*) FROM visits v WHERE v.uid = u.id
        AND v.at IN (SELECT p.at + 7 FROM visits p WHERE u.id = p.uid)) AS n FROM users u""",
    "either": f"""SELECT u.id, (SELECT count(*) FROM visits v
        WHERE (v.uid = u.id OR v.at = 3) AND v.at < ({LAST})) AS n FROM users u""",
    "wider": """SELECT u.id, (SELECT count(*) FROM visits v WHERE v.big = u.id
        AND v.at < (SELECT max(p.at) FROM visits p WHERE p.uid = u.id)) AS n FROM users u""",
}
# Equal values that look different: the subquery asks how the outermost one looks.
DIGITS = """SELECT u.id, (SELECT count(*) FROM visits v WHERE v.rate = u.rate
    AND EXISTS (SELECT FROM visits p WHERE p.no = v.no AND length(u.rate::text) < 4)) AS n FROM users u"""
CHANGES = (
    "INSERT INTO visits VALUES (100, 7, 7, 99, 2.000), (101, 30, 30, 5, 1)",
    "UPDATE visits SET at = at + 3 WHERE no % 7 = 0",
    "UPDATE users SET since = since - 2, rate = rate + 0.00; DELETE FROM visits WHERE uid = 5",
    "INSERT INTO users VALUES (30, 1, 1.0), (NULL, NULL, 0)",
    "UPDATE visits SET uid = nullif(uid + 1, 9), rate = rate + 1 WHERE no % 5 = 0",
    "DELETE FROM users WHERE id % 3 = 0",
)


def test_references_past_the_rows_right_around_are_exact(db: Database) -> None:
    assert_differential(db, TABLES, QUERIES, CHANGES)


def test_values_that_only_equal_each_other_are_told_apart(db: Database) -> None:
    db.execute(TABLES)
    with local_client(db.dsn) as (client, _), db.connect() as connection:
        client.create_stream_table("digits", DIGITS)
        client.tick()
        assert len(db.execute("SELECT DISTINCT n FROM digits")) > 1
        for change in CHANGES:
            db.execute(change)
            client.tick()
            assert not differences(connection, "digits", DIGITS, True), change


def test_a_subquery_tied_to_the_outermost_rows_reads_what_changed(world: World) -> None:
    world.create(
        "SELECT o.id, (SELECT max(l.n) FROM lines l WHERE l.order_id = o.id"
        " AND l.n < (SELECT max(x.n) FROM lines x WHERE x.order_id = o.id)) AS second FROM orders o"
    )
    world.db.execute("UPDATE lines SET n = n + 1 WHERE id % 3000 = 0")
    read = world.rows_read()
    assert 0 < read["lines"] <= 3_000 and read["compared"] <= 3_000
    world.refresh()


COLLATED = """
CREATE TABLE users (id int PRIMARY KEY, name text);
CREATE TABLE visits (no int PRIMARY KEY, of text COLLATE "en-x-icu");
CREATE TABLE marks (no int PRIMARY KEY, mark text);
INSERT INTO users VALUES (1, 'B'); INSERT INTO visits VALUES (1, 'B'); INSERT INTO marks VALUES (2, 'a')"""


def test_texts_are_compared_by_their_own_collation(db: Database) -> None:
    query = """SELECT u.id, EXISTS (SELECT FROM visits v WHERE v.of = u.name
        AND EXISTS (SELECT FROM marks m WHERE m.mark > u.name AND m.no > v.no)) AS found FROM users u"""
    db.execute(COLLATED)
    with local_client(db.dsn) as (client, _), db.connect() as connection:
        client.create_stream_table("marked", query)
        client.tick()
        for change in ("INSERT INTO users VALUES (2, 'B')", "UPDATE marks SET mark = 'C'", "DELETE FROM visits"):
            db.execute(change)
            client.tick()
            assert not differences(connection, "marked", query, True), change
