"""What the tests of late data share: a source with an event time, and what its ledger says."""

from typing import Any

from tests.conftest import Database

EVENTS = "CREATE TABLE events (id integer, at timestamptz, note text)"
PARTITIONED = (
    "CREATE TABLE events (id integer, at timestamptz, note text) PARTITION BY RANGE (at);\n"
    "CREATE TABLE early (note text, gone integer, at timestamptz, id integer);\n"
    "ALTER TABLE early DROP COLUMN gone;\n"
    "ALTER TABLE events ATTACH PARTITION early FOR VALUES FROM (MINVALUE) TO ('2026-03-01 12:00+00');\n"
    "CREATE TABLE later PARTITION OF events FOR VALUES FROM ('2026-03-01 12:00+00') TO (MAXVALUE)"
)
INSERT = "INSERT INTO events VALUES (%s, %s)"


def at(clock: str) -> str:
    """Return a moment of the one day that the tests know."""
    return clock if clock == "infinity" else f"2026-03-01 {clock}+00"


def declared(db: Database, table: str = EVENTS, watermark: str | None = "12:00", **options: Any) -> Database:
    """Create events with `at` as their event time, and advance them."""
    for statement in filter(str.strip, table.split(";\n")):
        db.execute(statement)
    set_event_time(db, **options)
    if watermark is not None:
        advance(db, watermark)
    return db


def set_event_time(db: Database, source: str = "events", column_name: str = "at", **options: Any) -> None:
    given = "".join(f", {name} => %s" for name in options)
    db.execute(f"SELECT pgtrickle.set_event_time(%s, %s{given})", source, column_name, *options.values())


def advance(db: Database, clock: str, source: str = "events") -> None:
    db.execute("SELECT pgtrickle.advance_watermark(%s, %s)", source, at(clock))


def ledger(db: Database, *columns: str, source: str = "events") -> list[tuple[Any, ...]]:
    """Return entries of the ledger in order of their ids: the id of the row, its status and whatever else is asked."""
    listed = ", ".join(("(row_data ->> 'id')::int", "status", *columns))
    return db.execute(f"SELECT {listed} FROM pgtrickle.late_rows(%s, max_rows => 10000) ORDER BY 1, late_id", source)


def ids(db: Database, table: str = "events") -> list[int]:
    return [number for (number,) in db.execute(f"SELECT id FROM {table} ORDER BY id")]
