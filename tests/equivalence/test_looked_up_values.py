"""Values that scalar subqueries look up, by a unique key or without one, shown, compared and added up."""

from random import Random

import psycopg
import pytest

from pytrickle.errors import PytrickleError
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences
from tests.equivalence.played import batches, follow
from tests.repeats import first

TABLES = """
CREATE TABLE rates (cur text PRIMARY KEY, rate numeric(9, 3));
CREATE TABLE people (id int PRIMARY KEY, place int, name text);
CREATE TABLE places (id int UNIQUE, name text);
CREATE TABLE loose (k int, factor numeric);
CREATE TABLE orders (id int PRIMARY KEY, cur varchar(3), person int, amount numeric, n int);
INSERT INTO rates VALUES ('EUR', 1), ('USD', 0.9), ('JPY', NULL);
INSERT INTO people SELECT n, NULLIF(n % 3, 0), 'p' || n FROM generate_series(1, 5) AS n;
INSERT INTO places VALUES (1, 'here'), (NULL, 'nowhere'), (NULL, 'elsewhere');
INSERT INTO loose SELECT n, n / 2.0 FROM generate_series(1, 4) AS n;
INSERT INTO orders SELECT n, (ARRAY['EUR', 'USD', 'JPY', NULL, 'XXX'])[n % 5 + 1], n % 7, n * 1.50, n
    FROM generate_series(1, 20) AS n;
"""
RATE = "(SELECT r.rate FROM rates r WHERE r.cur = o.cur)"
OWN = {
    "shown": f"SELECT o.id, {RATE} AS rate FROM orders o",
    "multiplied": f"SELECT o.id, o.amount * {RATE} AS value FROM orders o",
    "added_up": f"SELECT o.person, sum(o.amount * {RATE}) AS value, count({RATE}) AS n FROM orders o GROUP BY o.person",
    "by_a_constant": """SELECT person, sum(amount * (SELECT rate FROM rates WHERE cur = 'USD')) AS value
        FROM orders GROUP BY person""",
    "compared": f"SELECT o.id FROM orders o WHERE o.n > {RATE} * 10",
    "by_way_of_another": """SELECT o.id, (SELECT p.name FROM people q JOIN places p ON p.id = q.place
        WHERE q.id = o.person) AS place FROM orders o""",
    "filtered": f"""SELECT o.cur, sum(o.n) FILTER (WHERE {RATE} IS NOT NULL) AS n, max({RATE}) AS rate
        FROM orders o GROUP BY o.cur HAVING count(*) > 1""",
    "of_two_columns": """SELECT o.id FROM orders o
        WHERE (o.n, o.person) = (SELECT q.id, q.place FROM people q WHERE q.id = o.n)""",
    "of_the_only_one": """SELECT o.id, (SELECT q.name FROM people q WHERE q.id = o.person LIMIT 1) AS name,
        (SELECT r.rate FROM rates r WHERE r.cur = 'EUR' ORDER BY r.rate DESC LIMIT 5) AS rate FROM orders o""",
    "of_no_group": f"SELECT sum(o.amount * {RATE}) AS value FROM orders o",
    "beside_a_join": f"""SELECT p.name, sum(o.n * {RATE}) AS value
        FROM orders o LEFT JOIN people p ON p.id = o.person GROUP BY p.name""",
    "below": f"SELECT max(x.v) AS v FROM (SELECT o.person, sum({RATE}) AS v FROM orders o GROUP BY o.person) AS x",
}
LOOSE = {
    "without_a_key": "SELECT o.id, (SELECT l.factor FROM loose l WHERE l.k = o.person) AS f FROM orders o",
    "added_up_without_a_key": """SELECT o.cur, sum(o.amount * (SELECT l.factor FROM loose l WHERE l.k = o.person)) AS f
        FROM orders o GROUP BY o.cur""",
    "in_a_call": """SELECT o.cur, count(*) FILTER (WHERE o.person IN (SELECT l.k FROM loose l)) AS n,
        sum((SELECT max(l.factor) FROM loose l WHERE l.k >= o.person)) AS f FROM orders o GROUP BY o.cur""",
}
QUERIES = OWN | LOOSE
ONE_FOR_ALL = {"by_a_constant", "of_the_only_one"}


def a_change(random: Random) -> str:
    """Write one statement that leaves one row at most for each key."""
    cur = random.choice(("'EUR'", "'USD'", "'JPY'", "'XXX'"))
    key, n = random.randint(1, 7), random.choice(("NULL", "1", "2.50", "2.5", "3"))
    return random.choice(
        (
            f"INSERT INTO rates VALUES ({cur}, {n}) ON CONFLICT (cur) DO UPDATE SET rate = excluded.rate",
            f"DELETE FROM rates WHERE cur = {cur}",
            f"INSERT INTO people VALUES ({key}, {n}::numeric::int, 'x') ON CONFLICT (id) DO UPDATE SET place = 1",
            f"DELETE FROM people WHERE id = {key}",
            f"UPDATE places SET id = CASE WHEN id IS NULL THEN NULL ELSE {key} END, name = name || '+'",
            f"UPDATE loose SET factor = {n} WHERE k = {key}",
            f"DELETE FROM loose WHERE k = {key}",
            f"INSERT INTO loose SELECT {key}, {n} WHERE NOT EXISTS (SELECT FROM loose WHERE k = {key})",
            f"UPDATE orders SET cur = {cur}, person = {key} WHERE id % 6 = {random.randrange(6)}",
            f"DELETE FROM orders WHERE id = {random.randint(1, 24)}",
            f"INSERT INTO orders VALUES ({random.randint(21, 24)}, {cur}, {key}, {n}, 5) ON CONFLICT DO NOTHING",
        )
    )


@pytest.mark.parametrize("seed", first(1, range(3)))
def test_values_follow_what_they_are_looked_up_in(db: Database, seed: int) -> None:
    db.execute(TABLES)
    follow(db, QUERIES, batches(seed, a_change, 12, range(1, 4)))


def test_a_unique_key_leads_to_one_row_and_sums_take_it_in(db: Database) -> None:
    db.execute(TABLES)
    with local_client(db.dsn) as (client, _):
        for name, query in QUERIES.items():
            client.create_stream_table(name, query)
            client.refresh(name)
            explained = str(client.explain(name))
            # One value for all rows is compared with them as such, so that it stays an operation of its own.
            assert ("scalar(" in explained) is (name in ONE_FOR_ALL or "without_a_key" in name), explained
            assert "rows(" not in explained or name in LOOSE, "nothing is consolidated in case that it may fail"
            assert ("aggregate(" in explained) is (name in ("below", "in_a_call")), explained


# What the table of the rates is like, where two rows may agree in what is looked up.
UNSURE = {
    "no key": "ALTER TABLE rates DROP CONSTRAINT rates_pkey",
    "a part of the rows": "ALTER TABLE rates DROP CONSTRAINT rates_pkey;"
    " CREATE UNIQUE INDEX ON rates (cur) WHERE rate IS NOT NULL",
    "an expression": "ALTER TABLE rates DROP CONSTRAINT rates_pkey; CREATE UNIQUE INDEX ON rates (lower(cur))",
    "more columns": "ALTER TABLE rates DROP CONSTRAINT rates_pkey; CREATE UNIQUE INDEX ON rates (cur, rate)",
    "at the end of a transaction": "ALTER TABLE rates DROP CONSTRAINT rates_pkey, ADD UNIQUE (cur) DEFERRABLE",
    "another order": "ALTER TABLE rates DROP CONSTRAINT rates_pkey;"
    " CREATE UNIQUE INDEX ON rates (cur text_pattern_ops)",
    "children": "CREATE TABLE further (CHECK (true)) INHERITS (rates)",
    "another equality": "CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false);"
    " ALTER TABLE rates DROP CONSTRAINT rates_pkey, ALTER cur TYPE text COLLATE blind;"
    ' CREATE UNIQUE INDEX ON rates (cur COLLATE "C")',
}


@pytest.mark.parametrize("case", UNSURE)
def test_without_a_sure_key_a_second_row_is_an_error_as_in_the_query(db: Database, case: str) -> None:
    db.execute(TABLES)
    try:
        db.execute(UNSURE[case])
    except psycopg.errors.UndefinedObject:
        pytest.skip("this server has no ICU collations")
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("shown", OWN["shown"])
        client.refresh("shown")
        assert "scalar(" in str(client.explain("shown"))


def test_a_key_that_is_dropped_is_not_relied_on_any_more(db: Database) -> None:
    db.execute(TABLES)
    with local_client(db.dsn) as (client, _), db.connect() as connection:
        for name in ("shown", "added_up"):
            client.create_stream_table(name, OWN[name], refresh_mode="DIFFERENTIAL")
            client.refresh(name)
        db.execute("ALTER TABLE rates DROP CONSTRAINT rates_pkey; INSERT INTO rates VALUES ('USD', 7)")
        for name in ("shown", "added_up"):
            with pytest.raises(PytrickleError, match="more than one row"):
                client.refresh(name)
        db.execute("DELETE FROM rates WHERE rate = 7; UPDATE rates SET rate = 3 WHERE cur = 'EUR'")
        for name in ("shown", "added_up"):
            client.refresh(name)
            assert not differences(connection, name, OWN[name], True)


def test_a_key_that_came_later_says_nothing_of_a_watermark_before_it(db: Database) -> None:
    db.execute(TABLES)
    db.execute("ALTER TABLE rates DROP CONSTRAINT rates_pkey; CREATE TABLE other (a int)")
    db.execute("SELECT pgtrickle.create_watermark_group('g', ARRAY['rates', 'other'])")
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("shown", OWN["shown"], watermark_gating="hold_back")
        for source in ("rates", "other"):
            db.execute("SELECT pgtrickle.advance_watermark(%s::regclass, '2026-01-01')", source)
        client.refresh("shown")
        db.execute("INSERT INTO rates VALUES ('USD', 7); SELECT pgtrickle.advance_watermark('rates', '2026-01-02')")
        db.execute("DELETE FROM rates WHERE rate = 7; ALTER TABLE rates ADD PRIMARY KEY (cur)")
        db.execute("SELECT pgtrickle.advance_watermark('other', '2026-01-02')")
        with pytest.raises(PytrickleError, match="more than one row"):
            client.refresh("shown")
