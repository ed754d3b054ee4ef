"""Batch n stands for the event time n seconds after the year 2000 began: then both kinds must decide the very same.

Two worlds in one database, of which one goes by event time and the other by batch numbers. Whatever is done to the one
is done to the other; then all that is decided, shown and stored about them is compared word by word.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.repeats import first
from tests.sql.loaders import age

SOURCES = ("orders", "lines", "rates")
EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
LAST = 2**63 - 1
WORLDS = ("by_time", "by_batch")
JOIN = (
    "SELECT o.id, l.id AS line, r.id AS rate "
    "FROM {w}.orders o JOIN {w}.lines l USING (k) LEFT JOIN {w}.rates r USING (k)"
)
TABLES = {
    "held": (JOIN, "hold_back", True),
    "exact": (JOIN, "hold_back", True),
    "eager": ("SELECT count(*) AS n FROM {w}.orders JOIN {w}.lines USING (k)", "hold_back", False),
    "a": ("SELECT id, k FROM {w}.orders", "hold_back", True),
    "chain": ("SELECT a.id, l.id AS line FROM {w}.a JOIN {w}.lines l USING (k)", "hold_back", True),
    "gated": (JOIN, "gate", True),
    "auto": ("SELECT id FROM {w}.orders UNION ALL SELECT id FROM {w}.rates", "auto", False),
    "over": ("SELECT id, count(*) AS n FROM {w}.chain GROUP BY id", "gate", True),
}

DECISIONS = """
SELECT t.pgt_name, t.status, t.effective_watermark, t.effective_batch, t.last_skip_reason, g.*,
    (SELECT jsonb_object_agg(d.source_relid::regclass::text, (
        SELECT jsonb_agg(COALESCE(h.watermark::text, h.batch::text)) FROM pgtrickle.pgt_watermark_history AS h
        WHERE h.source_relid = d.source_relid AND h.cut::text = d.frontier::text))
     FROM pgtrickle.pgt_dependencies AS d WHERE d.pgt_id = t.pgt_id) AS frontiers,
    (SELECT jsonb_object_agg(c.key::oid::regclass::text, (
        SELECT jsonb_agg(COALESCE(h.watermark::text, h.batch::text)) FROM pgtrickle.pgt_watermark_history AS h
        WHERE h.source_relid = c.key::oid AND to_jsonb(h.cut) = c.value))
     FROM jsonb_each(g.caps) AS c) AS capped_at
FROM pgtrickle.pgt_stream_tables AS t, pgtrickle.gating_decision(t.pgt_id) AS g WHERE t.pgt_schema = '{w}' ORDER BY 1
"""
STATUS = "SELECT * FROM pgtrickle.watermark_status() WHERE group_name = '{w}'"
MEMBERS = """
SELECT m.source::text, (m.progress).*, m.idle
FROM pgtrickle.pgt_watermark_groups AS g, pgtrickle_private.group_members(g.group_id) AS m WHERE g.group_name = '{w}'
"""
HISTORY = """
SELECT qualified, h.watermark, h.batch FROM unnest(ARRAY['orders', 'lines', 'rates']) AS s,
LATERAL (SELECT '{w}.' || s AS qualified) AS q, pgtrickle.watermark_history(q.qualified::regclass) AS h
"""
GRAPH = (
    "SELECT relation, kind, watermark, batch, last_action FROM pgtrickle.dag() WHERE relation ~ '^{w}[.]' ORDER BY 1"
)


def spelled(number: int) -> tuple[datetime, int]:
    """Return the same watermark in both kinds."""
    return (datetime.max.replace(tzinfo=UTC) if number == LAST else EPOCH + timedelta(seconds=number), number)


def as_batches(text: str) -> str:
    """Say in batches what is said of seconds since the year 2000."""

    def batch(found: re.Match[str]) -> str:
        return f"batch {int((datetime.fromisoformat(found[0]) - EPOCH).total_seconds())}"

    def count(found: re.Match[str]) -> str:
        parts = re.findall(r"(\d+) (h|min|s)", found[0])
        number = sum(int(length) * {"h": 3600, "min": 60, "s": 1}[unit] for length, unit in parts)
        return f"{number} {'batch' if number == 1 else 'batches'}"

    text = re.sub(r"2000-01-\d\d \d\d:\d\d:\d\d\+00\b", batch, text.replace("infinity", f"batch {LAST}"))
    return (
        re.sub(r"\b\d+ (h|min|s)\b( \d+ (h|min|s)\b)*", count, text)
        .replace("event time", "batch")
        .replace("watermark_tol", "batch_tol")
    )


def normal(value: Any) -> Any:
    """Spell what one world says as the other one would."""
    match value:
        case datetime():
            return LAST if value.year == datetime.max.year else int((value - EPOCH).total_seconds())
        case timedelta():
            return int(value.total_seconds())
        case str():
            return as_batches(value.replace("by_time", "w").replace("by_batch", "w"))
        case list() | tuple():
            return [normal(item) for item in value]
        case dict():
            return {normal(key): normal(item) for key, item in value.items() if key != "caps"}
        case _:
            return value


def both(row: dict[str, Any]) -> dict[str, Any]:
    """Put what is reported under either name under one."""
    reached = row.pop("let_through", {}).values()
    row = {
        name: normal(value) for name, value in row.items() if name != "lag_secs"
    }  # the lag in batches has no seconds
    row["let_through"] = [number_of(value["watermark"] or value["batch"]) for value in reached]
    pairs = {"effective_watermark": "effective_batch", "min_watermark": "min_batch", "max_watermark": "max_batch"}
    pairs |= {"lag": "batch_lag", "tolerance": "batch_tolerance", "watermark": "batch"}
    pairs |= {"agreed_watermark": "agreed_batch"}
    for ours, theirs in pairs.items():
        if ours in row:
            given = {row[ours], row.pop(theirs)}
            assert len(given) == 1 or None in given, "no kind is reported under both names"
            row[ours] = next(iter(given - {None}), None)
    # Entries of the history are named by their watermarks: numbers in the one world, texts in the other.
    for name in {"frontiers", "capped_at"} & set(row):
        row[name] = {source: as_numbers(entries) for source, entries in (row[name] or {}).items()}
    row.pop("caps", None)
    return row


def number_of(reached: str | int) -> Any:
    return normal(datetime.fromisoformat(reached)) if isinstance(reached, str) and reached != "infinity" else reached


def as_numbers(entries: list[str] | None) -> list[str] | None:
    return entries and [entry.removeprefix("batch ") for entry in entries]


@pytest.fixture
def worlds(db: Database) -> Database:
    for world, tolerance in zip(WORLDS, ("tolerance => '3 seconds'", "batch_tolerance => 3"), strict=True):
        db.execute(f"CREATE SCHEMA {world}")
        for source in SOURCES:
            db.execute(f"CREATE TABLE {world}.{source} (id integer, k integer)")
        names = [f"{world}.{source}" for source in SOURCES]
        db.execute(f"SELECT pgtrickle.create_watermark_group(%s, %s, {tolerance})", world, names)
        for name, (query, gating, required) in TABLES.items():
            db.execute(
                "SELECT pgtrickle.create_stream_table(%s, %s, watermark_gating => %s, require_watermark => %s)",
                *(f"{world}.{name}", query.format(w=world), gating, required),
            )
        exact = "watermark_tolerance => '0'" if world == "by_time" else "batch_tolerance => 0"
        db.execute(f"SELECT pgtrickle.alter_stream_table('{world}.exact', {exact})")
    return db


def step(db: Database, numbers: random.Random, reached: dict[str, int]) -> None:
    """Do the same in both worlds: what a loader or an operator may do."""
    source = numbers.choice(SOURCES)
    if numbers.randrange(2):
        later = reached[source] + numbers.randrange(5)
        reached[source] = numbers.choice([later, later, max(reached.values())])
        load(db, numbers, source, reached[source])
    elif numbers.randrange(30) == 0:
        advance(db, source, LAST)
    else:
        operate(db, numbers, source)


def operate(db: Database, numbers: random.Random, source: str) -> None:
    """Do one of the things that are no load."""
    match numbers.randrange(8):
        case 0:
            twice(db, "SELECT pgtrickle.mark_idle(%s)", source)
        case 1:
            twice(db, "SELECT pgtrickle.gate_source(%s)", source)
        case 2 | 3:
            twice(db, "SELECT pgtrickle.ungate_source(%s)", source)
        case 4:
            twice(db, "SELECT pgtrickle.set_source_limits(%s, NULL, 'warn', '1 hour')", source)
            for world in WORLDS:
                age(db, f"{world}.{source}", "2 hours")
        case 5:
            tolerance = numbers.randrange(4)
            interval = timedelta(seconds=tolerance)
            db.execute("SELECT pgtrickle.alter_watermark_group('by_time', tolerance => %s)", interval)
            db.execute("SELECT pgtrickle.alter_watermark_group('by_batch', batch_tolerance => %s)", tolerance)
        case _:
            # What reads a stream table that stands still must not claim what that one does not show.
            twice(db, f"SELECT pgtrickle.{numbers.choice(['pause', 'resume'])}_stream_table(%s)", "chain")


def twice(db: Database, call: str, source: str) -> None:
    for world in WORLDS:
        db.execute(call, f"{world}.{source}")


def load(db: Database, numbers: random.Random, source: str, number: int) -> None:
    row, gone = (numbers.randrange(60), numbers.randrange(4)), numbers.randrange(60)
    for world in WORLDS:
        db.execute(f"INSERT INTO {world}.{source} VALUES (%s, %s)", *row)
        db.execute(f"DELETE FROM {world}.{source} WHERE id = %s", gone)
    advance(db, source, number)


def advance(db: Database, source: str, number: int) -> None:
    """Advance in both worlds; where it would move back, both refuse it."""
    refused = []
    for world, watermark in zip(WORLDS, spelled(number), strict=True):
        try:
            call = "advance_batch" if isinstance(watermark, int) else "advance_watermark"
            db.execute(f"SELECT pgtrickle.{call}(%s, %s)", f"{world}.{source}", watermark)
        except psycopg.Error as error:
            refused.append((error.sqlstate, normal(error.diag.message_primary)))
    assert len(refused) != 1 and len(set(refused)) <= 1, refused


def reports(reader: psycopg.Connection[Any], query: str) -> Iterator[list[dict[str, Any]]]:
    """Yield what each of the worlds says to a query, in the words of both."""
    for world in WORLDS:
        cursor = reader.execute(query.format(w=world).encode())
        names = [column.name for column in cursor.description or ()]
        yield sorted((both(dict(zip(names, row, strict=True))) for row in cursor), key=str)


def compare(reader: psycopg.Connection[Any]) -> int:
    """Compare all that is decided and reported; return how many stream tables have got somewhere."""
    for query in (STATUS, MEMBERS, HISTORY, GRAPH, DECISIONS):
        by_time, by_batch = reports(reader, query)
        assert by_time == by_batch
        assert by_time
    return sum(row["effective_watermark"] is not None for row in by_time)


@pytest.mark.parametrize("seed", first(0, range(2), then=1))
def test_batches_and_seconds_decide_the_same(worlds: Database, seed: int) -> None:
    db, numbers = worlds, random.Random(seed)
    reached, reader = dict.fromkeys(SOURCES, 100), db.connect(options="-c TimeZone=UTC")
    with local_client(db.dsn, max_concurrent_refreshes=1) as (client, _):
        for source in SOURCES:
            load(db, numbers, source, numbers.randrange(100, 104))
            compare(reader)
        for turn in range(30):
            for _ in range(numbers.randrange(1, 4)):
                step(db, numbers, reached)
            compare(reader)
            if turn % 3 == 0:
                assert not [result for result in client.tick() if result.error]
                compare(reader)
        finish(db, numbers, max(reached.values()) + 1)
        assert not [result for result in client.tick() if result.error]
        assert compare(reader) == len(TABLES), "all tables got somewhere"
        for name in TABLES:
            by_time, by_batch = (sorted(db.execute(f"SELECT * FROM {world}.{name}")) for world in WORLDS)
            assert by_time == by_batch
        db.execute("UPDATE pgtrickle.pgt_watermark_history SET advanced_at = advanced_at - interval '60 days'")
        assert db.value("SELECT pgtrickle.trim_history('30 days')") > 0
        compare(reader)


def finish(db: Database, numbers: random.Random, number: int) -> None:
    """Let nothing stand still, and bring all sources that are not exhausted to one watermark."""
    db.execute("SELECT pgtrickle.resume_stream_table()")
    for source in SOURCES:
        twice(db, "SELECT pgtrickle.ungate_source(%s)", source)
        load(db, numbers, source, number)
