"""Which column says how old a row is, where rows are frozen, and what keeps a stream table from having frozen rows."""

from __future__ import annotations

import psycopg
import pytest
from psycopg.sql import Identifier

from tests.conftest import Database
from tests.repeats import on_both_servers

CREATE = "SELECT pgtrickle.create_stream_table(%s, %s, frozen_after => '1 day')"
COLUMN = "SELECT frozen_by FROM pgtrickle.stream_tables_info WHERE pgt_name = %s"
TABLES = """
CREATE TABLE orders (id int PRIMARY KEY, "Ordered } at" timestamptz, sent_at timestamptz, day date);
CREATE TABLE payments (id int PRIMARY KEY, order_id int, paid_at timestamptz);
CREATE VIEW young_orders AS SELECT "Ordered } at" AS at, id FROM orders WHERE sent_at IS NULL;
SELECT pgtrickle.set_event_time('orders', 'Ordered } at');
SELECT pgtrickle.set_event_time('payments', 'paid_at');
"""
AT = '"Ordered } at"'


def create_sources(db: Database) -> None:
    for statement in TABLES.strip().split(";\n"):
        db.execute(statement)


@pytest.fixture(scope="module")
def sources(steady_db: Database) -> Database:
    create_sources(steady_db)
    return steady_db


SHOWN = {
    "as it stands": (f"SELECT id, {AT} FROM orders", "Ordered } at"),
    "beside a subquery": (
        f'SELECT (SELECT max({AT}) FROM orders) AS newest, {AT} AS "a\\ {{b" FROM orders',
        "a\\ {b",
    ),
    "joined": (
        f"WITH o AS (SELECT {AT} AS at, id FROM orders) SELECT o.at, p.id FROM o JOIN payments p USING (id)",
        "at",
    ),
    "grouped": (f"SELECT {AT} AS at, count(*) AS n FROM orders GROUP BY 1 HAVING count(*) > (SELECT 0)", "at"),
    "by way of a view": ("SELECT x.at, sent_at FROM (SELECT at FROM young_orders) AS x, orders AS o", "at"),
}


# How PostgreSQL stores a view is another thing in each version.
@on_both_servers
def test_the_event_time_of_a_source_is_found_in_the_query(every_db: Database) -> None:
    create_sources(every_db)
    for way, (query, column) in SHOWN.items():
        with every_db.connect() as connection, connection.transaction(force_rollback=True):
            connection.execute(CREATE, ("s", query))
            assert connection.execute(COLUMN, ("s",)).fetchone() == (column,), way
            connection.execute(CREATE, ("t", f"SELECT s.{Identifier(column).as_string()} AS later FROM s"))
            assert connection.execute(COLUMN, ("t",)).fetchone() == ("later",), f"{way}, and of a stream table"


@pytest.mark.parametrize(
    ("query", "options", "hint"),
    [
        ("SELECT id, sent_at, day FROM orders", "", "No column of the query is the event time of a source"),
        (f"SELECT id, {AT} + interval '1 s' AS at FROM orders", "", "No column of the query is the event time"),
        (f"SELECT id, at + '1 s' AS at FROM (SELECT id, {AT} AS at FROM orders) AS o", "", "No column of the query is"),
        (f"SELECT {AT} AS at, paid_at FROM orders JOIN payments USING (id)", "", "at and paid_at are all event times"),
        (f"SELECT {AT} AS at FROM orders", "window_end => 'gone'", "Name the column of the query"),
        ("SELECT day FROM orders", "window_end => 'day'", "type date; cast it to timestamptz"),
        (f"SELECT {AT} AS at FROM orders", "frozen_after => '-1 s'", "Use an interval of zero or more"),
        (f"SELECT {AT} AS at FROM orders", "allow_circular => true", "leave allow_circular out"),
        (f"SELECT {AT} AS at FROM orders ORDER BY 1 LIMIT 3", "", "leave it out of the outermost query"),
        (f"SELECT {AT} AS at FROM orders ORDER BY 1 OFFSET 3", "", "leave it out of the outermost query"),
        (
            f"SELECT {AT} AS at FROM orders",
            "output_mode => 'append', window_end => 'at', watermark_gating => 'gate'",
            "never changes what it has emitted",
        ),
        (f"SELECT {AT} AS at FROM orders", "frozen_after => NULL, window_end => 'at'", "frozen_after may go by it"),
    ],
)
def test_what_is_missing_is_said_and_nothing_is_created(sources: Database, query: str, options: str, hint: str) -> None:
    given = options if "frozen_after" in options else ", ".join(filter(None, (options, "frozen_after => '1 day'")))
    with pytest.raises(psycopg.errors.InvalidParameterValue) as refused:
        sources.execute(f"SELECT pgtrickle.create_stream_table('refused', %s, {given})", query)
    assert hint in str(refused.value.diag.message_hint)
    assert refused.value.diag.constraint_name == "invalid_argument"
    assert sources.value("SELECT to_regclass('refused') IS NULL")


def test_it_is_altered_reset_and_written_down(sources: Database) -> None:
    stored = "SELECT frozen_after::text, frozen_by, window_end FROM pgtrickle.pgt_stream_tables WHERE pgt_name = 's'"
    with sources.connect() as connection, connection.transaction(force_rollback=True):
        connection.execute("SELECT pgtrickle.create_stream_table('s', %s)", (f"SELECT id, {AT} AS at FROM orders",))
        connection.execute("SELECT pgtrickle.alter_stream_table('s', frozen_after => '90 minutes')")
        assert connection.execute(stored).fetchone() == ("01:30:00", "at", None)
        with pytest.raises(psycopg.errors.InvalidParameterValue), connection.transaction():
            connection.execute("SELECT pgtrickle.alter_stream_table('s', allow_circular => true)")
        (text,) = connection.execute("SELECT pgtrickle.export_definition('s')").fetchone() or ("",)
        assert "frozen_after => '01:30:00'" in text
        connection.execute("SELECT pgtrickle.alter_stream_table('s', reset => '{frozen_after}')")
        assert connection.execute(stored).fetchone() == (None, None, None)


def test_a_limit_before_the_first_moment_freezes_nothing(sources: Database) -> None:
    limit = "SELECT pgtrickle_private.frozen_limit(%s, %s)"
    assert sources.value(limit, "2026-03-29 03:00+00", "1 day").isoformat() == "2026-03-28T03:00:00+00:00"
    assert sources.value(limit, "2026-01-01", "900000 years") is None
    assert sources.value(limit, None, "1 day") is None
    assert sources.value(f"SELECT ({limit})::text", "infinity", "1 day") == "infinity"
