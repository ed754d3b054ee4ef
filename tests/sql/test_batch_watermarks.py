"""Watermarks that count batches: which arguments mean one, and that a source and a group keep their kind."""

from __future__ import annotations

from datetime import date
from typing import Any

import psycopg
import pytest

from tests.conftest import Database
from tests.sql.batches import LATEST, NOON, advance
from tests.sql.checks import catalog_state, refused

MARKS = "SELECT watermark, batch FROM pgtrickle.pgt_watermarks WHERE source_relid = 'a'::regclass"


@pytest.mark.parametrize(
    "argument", ["42", "42::smallint", "42::integer", "42::bigint", "(SELECT max(x) FROM (VALUES (42)) AS v (x))"]
)
def test_numbers_are_batches(sources: Database, argument: str) -> None:
    sources.execute(f"SELECT pgtrickle.advance_batch('a', {argument})")
    assert sources.execute(MARKS) == [(None, 42)]


@pytest.mark.parametrize(
    "argument",
    [
        "'2026-01-01 12:00+00'",
        "timestamptz '2026-01-01 12:00+00'",
        "timestamp '2026-01-01 12:00'",
        "to_timestamp(1767268800)",
    ],
)
def test_literals_in_quotes_and_times_are_event_times(sources: Database, argument: str) -> None:
    sources.execute(f"SELECT pgtrickle.advance_watermark('a', {argument})")
    assert sources.execute(MARKS) == [(NOON, None)]


@pytest.mark.parametrize("cursor", [psycopg.Cursor, psycopg.ClientCursor])
@pytest.mark.parametrize(
    ("watermark", "stored"),
    [
        *((number, (None, number)) for number in (-(2**63), -1, 0, 7, 70_000, 2**40, LATEST)),
        *((at, (NOON, None)) for at in (NOON, NOON.replace(tzinfo=None), "2026-01-01 12:00+00")),
        (date(2026, 1, 1), (NOON.replace(hour=0), None)),
    ],
)
def test_parameters_are_taken_by_their_type(sources: Database, cursor: type, watermark: Any, stored: Any) -> None:
    connection = sources.connect(options="-c TimeZone=UTC", cursor_factory=cursor)
    name, argument = ("advance_batch", "batch") if isinstance(watermark, int) else ("advance_watermark", "watermark")
    for call in (f"{name}(%s, %s)", f"{name}(source => %s, {argument} => %s)"):
        connection.execute(f"SELECT pgtrickle.{call}", ("a", watermark))
        assert sources.execute(MARKS) == [stored]


@pytest.mark.parametrize("call", ["advance_batch('a', 4.5)", "advance_watermark('a', 42)", "advance_batch('a', now())"])
def test_a_fraction_is_no_batch_and_neither_function_takes_the_kind_of_the_other(sources: Database, call: str) -> None:
    with pytest.raises(psycopg.errors.UndefinedFunction):
        sources.execute(f"SELECT pgtrickle.{call}")


def test_batches_move_forwards_only(sources: Database) -> None:
    advance(sources, a=7)
    seen = "SELECT last_seen_at, advanced_at, cut::text FROM pgtrickle.pgt_watermarks"
    ((before, *rest),) = sources.execute(seen)
    advance(sources, a=7)
    ((after, *same),) = sources.execute(seen)
    assert after > before and rest == same, "an equal number is a sign of life"
    state = catalog_state(sources)
    for number, sqlstate in ((6, "22000"), (-(2**63), "22000"), (None, "22004")):
        with refused(sqlstate):
            sources.execute("SELECT pgtrickle.advance_batch('a', %s::bigint)", number)
    with refused("22000", message="public.a cannot move back from batch 7 to batch 6"):
        advance(sources, a=6)
    assert catalog_state(sources) == state
    advance(sources, a=8)
    history = "SELECT watermark, batch FROM pgtrickle.watermark_history('a')"
    assert sources.execute(history) == [(None, 8), (None, 7)]


@pytest.mark.parametrize(
    ("first", "other", "hint"),
    [(7, NOON, "advance_batch('public.a', 42)"), (NOON, 7, "advance_watermark('public.a', now())")],
)
def test_a_source_keeps_the_kind_of_its_first_watermark(sources: Database, first: Any, other: Any, hint: str) -> None:
    advance(sources, a=first)
    state = catalog_state(sources)
    with refused("42804", hint, message="the watermark of public.a goes by"):
        advance(sources, a=other)
    assert catalog_state(sources) == state


def test_a_number_in_quotes_is_no_event_time(sources: Database) -> None:
    advance(sources, a=7)
    for literal, sqlstate in (("8", "22007"), ("20260101", "42804")):
        with pytest.raises(psycopg.Error) as raised:
            sources.execute(f"SELECT pgtrickle.advance_watermark('a', '{literal}')")
        assert raised.value.sqlstate == sqlstate
    assert sources.execute(MARKS) == [(None, 7)]


def test_a_reset_source_may_take_the_other_kind(sources: Database) -> None:
    advance(sources, a=NOON)
    sources.execute("SELECT pgtrickle.create_watermark_group('g', ARRAY['a'])")
    with refused("55000", "Drop the group"):
        sources.execute("SELECT pgtrickle.reset_watermark('a')")
    sources.execute("SELECT pgtrickle.drop_watermark_group('g')")
    sources.execute("SELECT pgtrickle.reset_watermark('a')")
    assert sources.execute("SELECT * FROM pgtrickle.watermark_history('a')") == []
    advance(sources, a=3)
    assert sources.execute(MARKS) == [(None, 3)]


@pytest.mark.parametrize(
    ("group", "first", "ok"),
    [("", NOON, True), ("", 7, False), (", batch_tolerance => 0", 7, True), (", batch_tolerance => 0", NOON, False)],
)
@pytest.mark.parametrize("order", ["group first", "watermark first", "altered"])
def test_a_group_has_one_kind_whatever_comes_first(
    sources: Database, group: str, first: Any, ok: bool, order: str
) -> None:
    steps = [
        lambda: sources.execute(f"SELECT pgtrickle.create_watermark_group('g', ARRAY['b', 'a']{group})"),
        lambda: advance(sources, a=first),
    ]
    if order == "watermark first":
        steps.reverse()
    if order == "altered":
        sources.execute(f"SELECT pgtrickle.create_watermark_group('g', ARRAY['b']{group})")
        steps = [steps[1], lambda: sources.execute("SELECT pgtrickle.alter_watermark_group('g', ARRAY['b', 'a'])")]
    steps[0]()
    state = catalog_state(sources)
    if ok:
        steps[1]()
        assert catalog_state(sources) != state
    else:
        with refused("42804", "batch"):
            steps[1]()
        assert catalog_state(sources) == state


def test_groups_that_share_a_source_are_of_one_kind(sources: Database) -> None:
    sources.execute("SELECT pgtrickle.create_watermark_group('times', ARRAY['a', 'b'])")
    sources.execute("SELECT pgtrickle.create_watermark_group('batches', ARRAY['c'], batch_tolerance => 1)")
    for call in (
        "create_watermark_group('more', ARRAY['c', 'b'], batch_tolerance => 1)",
        "create_watermark_group('more', ARRAY['c', 'b'])",
        "alter_watermark_group('times', ARRAY['a', 'c'])",
        "alter_watermark_group('batches', ARRAY['c', 'a'])",
    ):
        with refused("42804", "batch", message="in group"):
            sources.execute(f"SELECT pgtrickle.{call}")
    sources.execute("SELECT pgtrickle.create_watermark_group('more', ARRAY['a', 'b'])")
