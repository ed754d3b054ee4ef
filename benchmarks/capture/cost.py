"""What capture costs a writer: COPY of many rows and INSERT of single ones, with capture and without."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from psycopg import sql

from benchmarks.clock import Timing, stopwatch

PLAIN, CAPTURED = "capture_cost.plain", "capture_cost.captured"

TABLES = """
CREATE SCHEMA capture_cost;
CREATE TABLE capture_cost.plain (
    id bigint PRIMARY KEY,
    customer_id integer NOT NULL,
    amount numeric(12, 2) NOT NULL,
    placed_at timestamptz NOT NULL
);
CREATE TABLE capture_cost.captured (LIKE capture_cost.plain INCLUDING ALL);
"""

# Runs inside the server, where a statement of PL/pgSQL is prepared once: no network and no commit is measured. The
# server's clock ticks in microseconds, so a hundred statements are timed together.
INSERT_ONE_BY_ONE = """
CREATE FUNCTION pg_temp.insert_one_by_one(inserts integer) RETURNS double precision LANGUAGE plpgsql AS $$
DECLARE
    begun timestamptz;
    taken double precision[];
BEGIN
    FOR hundred IN 1..inserts / 100 LOOP
        begun := clock_timestamp();
        FOR number IN hundred * 100..hundred * 100 + 99 LOOP
            INSERT INTO {table} VALUES (number, number % 1000, 12.34, begun);
        END LOOP;
        taken[hundred] := extract(epoch FROM clock_timestamp() - begun) / 100;
    END LOOP;
    RETURN (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) FROM unnest(taken) AS seconds);
END
$$
"""


@dataclass(frozen=True, slots=True)
class CaptureCost:
    """Seconds for one COPY, and for a median single-row INSERT, without capture and with it."""

    copied_rows: int
    plain_copy: Timing
    captured_copy: Timing
    plain_insert: Timing
    captured_insert: Timing

    @property
    def copy_ratio(self) -> float:
        """Return how many times longer a captured COPY takes."""
        return self.captured_copy.median / self.plain_copy.median

    @property
    def insert_surplus(self) -> float:
        """Return the seconds that capture adds to the INSERT of one row."""
        return self.captured_insert.median - self.plain_insert.median


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is written: rows of a COPY, single rows, and how often each is repeated."""

    copied_rows: int
    single_inserts: int
    rounds: int


def measure_capture(connection: psycopg.Connection, sizes: Sizes) -> CaptureCost:
    """Measure both tables in turns, so that whatever disturbs the machine disturbs both."""
    with capture_tables(connection) as buffer:
        rows = rows_of(sizes.copied_rows)
        copies: dict[str, list[float]] = {PLAIN: [], CAPTURED: []}
        inserts: dict[str, list[float]] = {PLAIN: [], CAPTURED: []}
        for table in (PLAIN, CAPTURED) * (sizes.rounds + 1):
            empty(connection, buffer)
            copies[table].append(stopwatch(copy_rows, connection, table, rows))
        for table in (PLAIN, CAPTURED) * (sizes.rounds + 1):
            empty(connection, buffer)
            inserts[table].append(insert_one_by_one(connection, table, sizes.single_inserts))
        # The first repetition of each warms up and does not count.
        timings = [Timing(tuple(seconds[1:])) for seconds in (*copies.values(), *inserts.values())]
        return CaptureCost(sizes.copied_rows, *timings)


@contextmanager
def capture_tables(connection: psycopg.Connection) -> Iterator[sql.Composable]:
    """Hold the two tables, one of them captured because a stream table reads two of its columns; yield its buffer."""
    connection.execute(TABLES)
    query = f"SELECT customer_id, sum(amount) AS amount FROM {CAPTURED} GROUP BY customer_id"
    connection.execute("SELECT pgtrickle.create_stream_table('capture_cost.report', %s)", [query])
    row = connection.execute("SELECT 'pgtrickle_changes.changes_' || %s::regclass::oid", [CAPTURED]).fetchone()
    assert row is not None
    try:
        yield sql.SQL(row[0])
    finally:
        connection.execute("SELECT pgtrickle.drop_stream_table('capture_cost.report')")
        connection.execute("DROP SCHEMA capture_cost CASCADE")


def rows_of(count: int) -> bytes:
    """Return so many rows as COPY takes them."""
    return b"".join(
        b"%d\t%d\t%d.%02d\t2026-01-01 00:00:00+00\n" % (number, number % 1000, number % 997, number % 100)
        for number in range(count)
    )


def empty(connection: psycopg.Connection, buffer: sql.Composable) -> None:
    """Empty both tables and the buffer."""
    # TRUNCATE of the captured table would itself be captured, so the buffer goes last.
    connection.execute(f"TRUNCATE {PLAIN}, {CAPTURED}")
    connection.execute(sql.SQL("TRUNCATE {}").format(buffer))
    connection.execute("CHECKPOINT")


def copy_rows(connection: psycopg.Connection, table: str, rows: bytes) -> None:
    """Copy rows into one of the tables."""
    with connection.cursor() as cursor, cursor.copy(sql.SQL("COPY {} FROM STDIN").format(sql.SQL(table))) as copy:
        copy.write(rows)


def insert_one_by_one(connection: psycopg.Connection, table: str, inserts: int) -> float:
    """Insert so many rows by single statements, and return the median seconds of one."""
    connection.execute("DROP FUNCTION IF EXISTS pg_temp.insert_one_by_one(integer)")
    connection.execute(sql.SQL(INSERT_ONE_BY_ONE).format(table=sql.SQL(table)))
    row = connection.execute("SELECT pg_temp.insert_one_by_one(%s)", [inserts]).fetchone()
    assert row is not None
    return float(row[0])
