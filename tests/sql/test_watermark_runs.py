"""Random advances, idle marks, gates and ticks: nothing moves back, nothing is claimed that no loader asserted."""

import random
from datetime import datetime

import pytest

from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.repeats import first

SOURCES = ("orders", "lines", "rates")
CLAIMS = """
SELECT t.pgt_name, d.source_relid::text, d.frontier::text, t.effective_watermark, EXISTS (
    SELECT FROM pgtrickle.pgt_watermark_history AS h
    WHERE h.source_relid = d.source_relid AND h.watermark >= t.effective_watermark
        AND pgtrickle.cut_covers(d.frontier, h.cut))
FROM pgtrickle.pgt_stream_tables AS t, pgtrickle_private.upstream_tables(t.pgt_id) AS u
JOIN pgtrickle.pgt_dependencies AS d ON d.pgt_id = u.pgt_id AND d.source_type = 'TABLE'
WHERE t.effective_watermark IS NOT NULL
"""
CUTS = """
SELECT t.pgt_name, d.source_relid::text
FROM pgtrickle.pgt_stream_tables AS t JOIN pgtrickle.pgt_dependencies AS d USING (pgt_id)
WHERE t.watermark_gating = 'hold_back' AND d.source_type = 'TABLE' AND (d.frontier).snapshot IS NOT NULL
    AND NOT EXISTS (SELECT FROM pgtrickle.pgt_watermark_history AS h
                    WHERE h.source_relid = d.source_relid AND h.cut::text = d.frontier::text)
"""
MOVED_BACK = """
SELECT d.pgt_id, d.source_relid FROM pgtrickle.pgt_dependencies AS d JOIN before AS b USING (pgt_id, source_relid)
WHERE NOT pgtrickle.cut_covers(d.frontier, b.frontier)
"""


@pytest.fixture
def warehouse(db: Database) -> Database:
    """One group over three sources; tables that hold back or gate, alone, as a chain, and one over the other."""
    for name in SOURCES:
        db.execute(f"CREATE TABLE {name} (id integer, k integer)")
    db.execute("SELECT pgtrickle.create_watermark_group('g', ARRAY['orders', 'lines', 'rates'], '2 minutes')")
    join = "SELECT o.id, l.id AS line, r.id AS rate FROM orders o JOIN lines l USING (k) LEFT JOIN rates r USING (k)"
    tables = {
        "held": (join, "hold_back"),
        "exact": (join, "hold_back"),
        "a": ("SELECT id, k FROM orders", "hold_back"),
        "b": ("SELECT l.id, r.id AS rate, k FROM lines l JOIN rates r USING (k)", "hold_back"),
        "chain": ("SELECT a.id, b.rate FROM a JOIN b USING (k)", "hold_back"),
        "gated": (join, "gate"),
        "over": ("SELECT id, count(*) AS n FROM chain GROUP BY id", "gate"),
    }
    for name, (query, mode) in tables.items():
        db.execute(
            "SELECT pgtrickle.create_stream_table(%s, %s, watermark_gating => %s, require_watermark => true)",
            *(name, query, mode),
        )
    db.execute("SELECT pgtrickle.alter_stream_table('exact', watermark_tolerance => '0', gate_deadline => '1 hour')")
    db.execute("SELECT pgtrickle.alter_stream_table('gated', gate_deadline => '1 hour')")
    return db


def step(db: Database, numbers: random.Random, minutes: dict[str, int]) -> None:
    """Do one thing that a loader or an operator may do."""
    source = numbers.choice(SOURCES)
    match numbers.randrange(12):
        case 0 | 1:
            db.execute("SELECT pgtrickle.mark_idle(%s)", source)
        case 2:
            db.execute("SELECT pgtrickle.gate_source(%s)", source)
        case 3 | 4:
            db.execute("SELECT pgtrickle.ungate_source(%s)", source)
        case 5:
            db.execute("UPDATE pgtrickle.pgt_stream_tables SET gated_since = gated_since - interval '2 hours'")
        case 6:
            db.execute(f"INSERT INTO {source} VALUES (%s, %s)", numbers.randrange(99), numbers.randrange(4))
        case _:
            load(db, numbers, source, minutes)


def load(db: Database, numbers: random.Random, source: str, minutes: dict[str, int]) -> None:
    """Load a row, and perhaps take one away, through a later minute; sometimes catch up with the others."""
    minutes[source] = numbers.choice([minutes[source] + numbers.randrange(1, 4), max(minutes.values())])
    with db.connect() as loader, loader.transaction():
        loader.execute(f"INSERT INTO {source} VALUES (%s, %s)", (numbers.randrange(99), numbers.randrange(4)))
        loader.execute(f"DELETE FROM {source} WHERE id = %s", (numbers.randrange(99),))
        loader.execute(
            "SELECT pgtrickle.advance_watermark(%s, timestamptz '2026-03-01 00:00+00' + make_interval(mins => %s))",
            (source, minutes[source]),
        )


def effective(db: Database) -> dict[str, datetime]:
    return dict(
        db.execute(
            "SELECT pgt_name, effective_watermark FROM pgtrickle.pgt_stream_tables "
            "WHERE effective_watermark IS NOT NULL"
        )
    )


@pytest.mark.parametrize("seed", first(1, range(4), then=1))
def test_nothing_moves_back_and_nothing_is_claimed_that_was_not_asserted(warehouse: Database, seed: int) -> None:
    db, numbers = warehouse, random.Random(seed)
    minutes = dict.fromkeys(SOURCES, 0)
    for source in SOURCES:
        load(db, numbers, source, minutes)
    seen: dict[str, datetime] = {}
    db.execute("CREATE TABLE before AS SELECT pgt_id, source_relid, frontier FROM pgtrickle.pgt_dependencies")
    with local_client(db.dsn) as (client, _):
        for _ in range(25):
            for _ in range(numbers.randrange(1, 4)):
                step(db, numbers, minutes)
            assert not [result for result in client.tick() if result.error]
            now = effective(db)
            assert {name: at for name, at in seen.items() if now[name] < at} == {}, "an effective watermark moved back"
            seen = now
            assert [claim for claim in db.execute(CLAIMS) if not claim[-1]] == [], "claimed and never asserted"
            assert db.execute(CUTS) == [], "held back at no cut"
            assert db.execute(MOVED_BACK) == [], "a frontier moved back"
            db.execute("TRUNCATE before")
            db.execute("INSERT INTO before SELECT pgt_id, source_relid, frontier FROM pgtrickle.pgt_dependencies")
        found = {table.stream_table: client.verify(table.stream_table).matches for table in client.stream_tables()}
        assert all(found.values()), found
    assert len(seen) >= 5, "most tables got somewhere"
