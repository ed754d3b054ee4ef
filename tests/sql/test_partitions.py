"""advance_partitions: what it refuses, who may say and see what, and what is forgotten."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest

from tests.conftest import Database

SAID = "SELECT pgtrickle.advance_partitions('events', %s::jsonb, {})"
KEPT = "SELECT partition_name, watermark::text FROM pgtrickle.pgt_source_partitions ORDER BY 1"


@pytest.fixture
def events(every_db: Database) -> Database:
    every_db.execute("CREATE TABLE events (shard text, at timestamptz)")
    return every_db


def say(db: Database, more: str = "at => '2026-03-02 12:00Z'", **heard: str | None) -> Any:
    return db.value(SAID.format(more), json.dumps(heard))


@pytest.mark.parametrize(
    ("heard", "more", "message"),
    [
        ("[]", "'1 minute'", "Give a JSON object"),
        ("null", "'1 minute'", "Give a JSON object"),
        ('{"a": "-infinity"}', "'1 minute'", "years 1 to 9999"),
        ('{"a": "9999-12-31 23:59:59.999999Z"}', "'1 minute'", "years 1 to 9999"),
        ('{"a": {}}', "'1 minute'", "years 1 to 9999|invalid input syntax"),
        ('{"a": "soon"}', "'1 minute'", "invalid input syntax"),
        ("{}", "'0'", "longer than zero"),
        ("{}", "expected => NULL", "Give names of partitions"),
        ("{}", "expected => ARRAY['a', NULL]", "Give names of partitions"),
        ("{}", "expected => ARRAY[repeat('a', 1001)]", "at most 1000 characters"),
        ("{}", "at => 'infinity'", "years 1 to 9999"),
        ("{}", "at => '294276-01-01'", "years 1 to 9999"),
    ],
)
def test_what_cannot_be_said_of_partitions_is_refused_and_changes_nothing(
    steady_db: Database, heard: str, more: str, message: str
) -> None:
    steady_db.execute("CREATE TABLE IF NOT EXISTS events (shard text, at timestamptz)")
    with pytest.raises(psycopg.errors.DataError) as refused:
        steady_db.execute(SAID.format(more), heard)
    told = f"{refused.value.diag.message_primary} {refused.value.diag.message_hint}"
    assert any(part in told for part in message.split("|")), told
    assert steady_db.execute("SELECT * FROM pgtrickle.pgt_partitioned_sources") == []


def test_only_a_loader_speaks_of_partitions_and_only_a_reader_sees_them(events: Database) -> None:
    loader, reader = events.create_role("loader"), events.create_role("reader")
    events.execute("GRANT INSERT ON events TO loader; GRANT SELECT ON events TO reader")
    calls = (SAID.format("'1 minute'") % "'{}'", "SELECT pgtrickle.forget_partition('events', 'a')")
    with events.connect() as connection:
        connection.execute("SET ROLE reader")
        for call in calls:
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="events"):
                connection.execute(call.encode())
        connection.execute("SET ROLE loader")
        connection.execute(SAID.format("'1 minute'").encode(), ('{"customer 7": "2026-03-02 12:00Z"}',))
        seen = "SELECT partition_name FROM pgtrickle.partitions() UNION ALL SELECT partition_name"
        for role, names in ((loader, []), (reader, ["customer 7"] * 2)):
            connection.execute(f"SET ROLE {role}".encode())
            found = connection.execute(f"{seen} FROM pgtrickle.pgt_readable_partitions".encode()).fetchall()
            assert [name for (name,) in found] == names, role
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute("SELECT * FROM pgtrickle.pgt_source_partitions")
    with pytest.raises(psycopg.errors.DataError, match="b") as refused:
        events.execute("SELECT pgtrickle.forget_partition('events', 'b')")
    assert "has no such partition" in str(refused.value.diag.message_hint)


def test_what_is_said_twice_or_behind_moves_nothing_and_the_server_says_who_is_waited_for(events: Database) -> None:
    assert say(events, a="2026-03-02 12:00Z", b="2026-03-02 11:00Z") == say(events, b="2026-03-02 10:00Z")
    waited = "SELECT partition_name FROM pgtrickle.partitions('events') WHERE waited_for"
    assert events.execute(waited) == []
    assert say(events, "'1 minute'", a=None, b=None).hour == 11
    assert events.execute(waited) == [("b",)]
    assert say(events, "'1 minute', ARRAY['c']").hour == 11
    assert events.execute(waited) == [("c",)], "c is expected and said nothing yet"
    assert say(events, a="infinity", b="infinity", c="infinity").year == 9999, "Python's infinity"
    states = "SELECT DISTINCT state, waited_for FROM pgtrickle.partitions('events')"
    assert events.execute(states) == [("exhausted", False)]


def test_a_source_that_counts_batches_has_no_partitions(events: Database) -> None:
    events.execute("SELECT pgtrickle.advance_batch('events', 1)")
    for heard in ({}, {"a": "2026-03-02 12:00Z"}):
        with pytest.raises(psycopg.errors.DatatypeMismatch, match="goes by batch numbers"):
            say(events, **heard)
    assert events.execute(KEPT) == []


def test_partitions_that_are_done_with_are_forgotten_and_too_many_others_refused(events: Database) -> None:
    many = "(SELECT jsonb_object_agg(n::text, '2026-03-02 12:00Z') FROM generate_series(1, {}) AS n)"
    call = "SELECT pgtrickle.advance_partitions('events', {}, at => %s)"
    events.execute(call.format(many.format(1500)), "2026-03-02 12:00Z")
    assert len(events.execute(KEPT)) == 1500, "all of them are active"
    events.execute(call.format("'{\"new\": null}'"), "2026-03-02 12:00:30Z")
    events.execute(call.format("'{\"new\": null}'"), "2026-03-02 12:01:20Z")
    assert len(events.execute(KEPT)) == 1001
    with pytest.raises(psycopg.errors.ProgramLimitExceeded, match="more than 10000 partitions"):
        events.execute(call.format(many.format(10_001)), "2026-03-02 12:02Z")
    assert len(events.execute(KEPT)) == 1001
    events.execute("SELECT pgtrickle.reset_watermark('events')")
    assert events.execute(KEPT) == []


def test_partitions_follow_a_source_that_is_created_again(events: Database) -> None:
    events.execute("SELECT pgtrickle.create_watermark_group('alone', ARRAY['events'])")
    say(events, a="2026-03-02 12:00Z")
    events.execute("DROP TABLE events; CREATE TABLE events (shard text, at timestamptz)")
    events.execute("SELECT pgtrickle.adopt_source('events')")
    kept = "SELECT source_relid = 'events'::regclass, partition_name FROM pgtrickle.pgt_source_partitions"
    assert events.execute(kept) == [(True, "a")]
    events.execute("SELECT pgtrickle.drop_watermark_group('alone'); DROP TABLE events")
    events.execute("SELECT pgtrickle.trim_history('1 day')")
    assert events.execute(KEPT) == []


def test_a_wrong_watermark_of_a_partition_does_not_come_back_once_it_was_taken_back(events: Database) -> None:
    say(events, a="2026-03-02 11:00Z", b="2026-03-02 11:30Z")
    say(events, a="2027-03-02 11:00Z", b="2027-03-02 11:00Z")
    events.execute("SELECT pgtrickle.reset_watermark('events', '2026-03-02 11:00Z')")
    assert {str(kept) for _, kept in events.execute(KEPT)} == {"2026-03-02 11:00:00+00"}
    assert str(say(events, a="2026-03-02 11:40Z")).startswith("2026-03-02 11:00:00")
    assert str(say(events, b="2026-03-02 11:50Z")).startswith("2026-03-02 11:40:00")
