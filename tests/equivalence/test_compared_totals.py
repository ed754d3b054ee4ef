"""Rows compared with an aggregate of all rows: which of them its change concerns is asked once, not for each row."""

from collections import Counter
from random import Random

import pytest

from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences
from tests.repeats import first

TABLES = """
CREATE TABLE lines (id int PRIMARY KEY, amount numeric, name text, f float8, day date);
CREATE TABLE others (id int PRIMARY KEY, bound numeric, at timestamptz);
CREATE INDEX ON lines (amount);
INSERT INTO lines SELECT g, g % 8, 'n' || g % 3, g % 5, date '2026-01-01' + g % 9 FROM generate_series(1, 40) AS g;
"""
TOTALS = {
    "greater": "SELECT id FROM lines WHERE amount > (SELECT avg(amount) FROM lines)",
    "at_most": "SELECT name, count(*) FROM lines WHERE amount <= (SELECT avg(bound) FROM others) GROUP BY name",
    "unequal": "SELECT id FROM lines WHERE amount IS DISTINCT FROM (SELECT max(bound) FROM others)",
    "even_of_none": "SELECT id FROM lines WHERE amount > coalesce((SELECT min(bound) FROM others), 3)",
    "none_there": "SELECT id FROM lines WHERE amount > 2 AND ((SELECT max(bound) FROM others) IS NULL OR f < 5)",
    "two_totals": """SELECT l.id FROM lines AS l, (SELECT min(bound) AS low, max(bound) AS high FROM others) AS o
        WHERE l.amount > o.low AND l.amount < o.high + l.f""",
    "a_column_and_more": """SELECT l.id FROM lines AS l, (SELECT max(bound) AS high FROM others) AS o
        WHERE l.amount < o.high AND l.f + 1 > o.high - 2""",
    "in_a_text": """SELECT l.id FROM lines AS l, (SELECT max(id) AS high FROM others) AS o
        WHERE l.name || '"o"."high"' > o.high::text""",
    "floats": "SELECT id FROM lines WHERE f + 1 >= (SELECT max(f) FROM lines WHERE id > 4)",
    "counted": "SELECT id FROM lines WHERE id % 5 > (SELECT count(*) % 4 FROM others)",
    "of_enough": """SELECT id FROM lines
        WHERE amount > (SELECT avg(bound) FROM others HAVING count(*) > 2) OR f < (SELECT max(id) FROM others)""",
    "of_enough_alone": "SELECT id FROM lines WHERE f < (SELECT max(id) FROM others HAVING count(*) > 1)",
    "with_others": """SELECT name, count(*) FROM lines AS l WHERE amount < (SELECT avg(bound) FROM others)
        AND NOT EXISTS (SELECT FROM others AS o WHERE o.id = l.id) GROUP BY name""",
    "with_neither": """SELECT l.id, l.f FROM lines AS l
        WHERE l.name <> 'n1' AND l.amount < (SELECT avg(bound) FROM others)
        AND NOT EXISTS (SELECT FROM others AS o WHERE o.id = l.id AND o.bound > 3)
        AND NOT EXISTS (SELECT FROM lines AS m WHERE m.id = l.f AND m.amount > l.f)""",
    "of_groups_twice": """WITH g AS (SELECT id % 12 AS k, max(amount) AS most FROM lines GROUP BY 1
            HAVING max(amount) < (SELECT avg(bound) + 4 FROM others))
        SELECT a.k, a.most, b.most AS again FROM g AS a JOIN g AS b ON a.k = b.k""",
}
ONES = {
    "one_of_few": "SELECT id, amount FROM lines WHERE amount > (SELECT bound FROM others WHERE id = 1) - 1",
    "the_other_way": "SELECT id, f FROM lines WHERE (SELECT bound FROM others WHERE id = 1) >= f",
    "of_integers": "SELECT f, count(*) FROM lines WHERE id < (SELECT 5 * bound FROM others WHERE id = 2) GROUP BY f",
    "the_same": "SELECT id, name FROM lines WHERE amount = (SELECT bound FROM others WHERE id = 1) + 0",
    "of_the_same_names": """SELECT name, count(*) FROM lines
        WHERE name = 'n' || (SELECT coalesce(round(bound), 1) FROM others WHERE id = 1) GROUP BY name""",
    "of_days": "SELECT id, day FROM lines WHERE day <= (SELECT at - interval '12 hours' FROM others WHERE id = 2)",
    "of_two_bounds": """SELECT id, amount, day FROM lines WHERE amount < (SELECT max(bound) FROM others)
        AND day >= (SELECT max(at) FROM others) - interval '1 day'""",
    "within_bounds": """SELECT name, sum(amount) FROM lines
        WHERE amount >= (SELECT bound FROM others WHERE id = 2) AND amount < (SELECT bound + 3 FROM others WHERE id = 2)
        GROUP BY name""",
    "of_names": "SELECT id FROM lines WHERE name > (SELECT 'n' || coalesce(round(bound), 1) FROM others WHERE id = 1)",
    "of_names_by_bytes": """SELECT id FROM lines
        WHERE name > (SELECT 'n' || coalesce(round(bound), 1) FROM others WHERE id = 1) COLLATE "C" """,
    "on_both_sides": "SELECT id FROM lines WHERE amount - (SELECT min(bound) FROM others) > 1",
    "on_both_sides_of_one": "SELECT id FROM lines WHERE amount - (SELECT bound FROM others WHERE id = 1) > 1",
}
# Terms of theirs would look for the same rows several times.
SHARED = {"with_others", "with_neither"}
OTHERWISE = {"on_both_sides_of_one", "of_names_by_bytes"}
VALUES = ("NULL", "1", "2.5", "3", "'NaN'", "-1", "7.25", "0", "2", "4")
DAYS = ("NULL", "'2026-01-03 12:00Z'", "'2026-01-06'", "'infinity'", "'-infinity'")
FLOATS = ("NULL", "0", "-0.0", "1.5", "'NaN'", "'Infinity'")


OVERWRITING = "ON CONFLICT (id) DO UPDATE SET bound = excluded.bound, at = excluded.at"


def a_change(random: Random, others: int) -> str:
    """Write one statement; now and then the totals are those of no rows."""
    number, value, day = random.randrange(12), random.choice(VALUES), random.choice(DAYS)
    other = random.randrange(others)
    return random.choice(
        (
            f"UPDATE lines SET amount = {value}, f = {random.choice(FLOATS)} WHERE id % 12 = {number}",
            f"DELETE FROM lines WHERE id = {number}",
            *(f"INSERT INTO others VALUES ({other}, {value}, {day}) {OVERWRITING}",) * 3,
            f"DELETE FROM others WHERE id = {other}",
            "DELETE FROM others",
        )
    )


@pytest.mark.parametrize(("named", "others"), [(TOTALS, 12), (ONES, 3)], ids=["totals", "ones"])
@pytest.mark.parametrize("seed", first(1, range(2)))
def test_rows_that_are_compared_with_a_total_follow_it(
    db: Database, named: dict[str, str], others: int, seed: int
) -> None:
    db.execute(TABLES)
    random, changed = Random(seed), Counter[str]()
    with local_client(db.dsn) as (client, _), db.connect() as connection:
        for name, query in named.items():
            client.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
            client.refresh(name)
        for _ in range(15):
            for _ in range(random.randrange(1, 3)):
                db.execute(a_change(random, others))
            for name, query in named.items():
                result = client.refresh(name)
                assert result.action in ("DIFFERENTIAL", "NO_DATA"), result
                assert not differences(connection, name, query, True), name
                changed[name] += result.rows_inserted + result.rows_deleted
    assert all(changed[name] > 1 for name in named), changed


def test_what_a_change_of_the_total_concerns_is_asked_once(db: Database) -> None:
    """But not of an expression over a row and one of few. What terms have in common is looked for once."""
    db.execute(TABLES)
    with local_client(db.dsn) as (client, _):
        for name, query in (TOTALS | ONES).items():
            client.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
            client.refresh(name)
        db.execute("INSERT INTO others VALUES (1, 4); UPDATE lines SET amount = amount + 1, f = f + 1")
        written = {name: str(client.explain(name).data["sql"]) for name in TOTALS | ONES}
    assert {name for name, sql in written.items() if "IS TRUE) <> ((" in sql} == set(TOTALS | ONES) - OTHERWISE
    assert {name for name, sql in written.items() if "pgt_moved_" in sql} == SHARED
    assert written["with_others"].count("pgt_moved_") == 3, "one entry, which two terms read"
