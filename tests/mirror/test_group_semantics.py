"""What watermark groups promise: one source alone, none at all, and a source that was dropped."""

from __future__ import annotations

from contextlib import closing

import psycopg
import pytest

import pytrickle
from pytrickle.catalog import install
from pytrickle.cli.remedies import on_the_command_line
from pytrickle.inspect.doctor import server
from tests.conftest import Database
from tests.sql.checks import refused

JOIN = "'SELECT o.id FROM orders AS o JOIN lines AS l USING (id)'"
DROPPED = "source public.staging of group g was dropped"


@pytest.fixture
def db(every_db: Database) -> Database:
    """A gated and a held-back stream table over two sources, in a group with a staging table that nobody reads."""
    for name in ("orders", "lines", "staging"):
        every_db.execute(f"CREATE TABLE {name} (id integer)")
    every_db.execute("SELECT pgtrickle.create_watermark_group('g', ARRAY['orders', 'lines', 'staging'])")
    for gating in ("gate", "hold_back"):
        every_db.execute(f"SELECT pgtrickle.create_stream_table('by_{gating}', {JOIN}, watermark_gating => '{gating}')")
    return every_db


def decisions(db: Database) -> dict[str, tuple[str, str]]:
    found = "SELECT t.pgt_name, d.decision, d.reason FROM pgtrickle.pgt_stream_tables AS t,"
    return {name: (made, why) for name, made, why in db.execute(f"{found} pgtrickle.gating_decision(t.pgt_id) AS d")}


def advance(db: Database, *sources: str) -> None:
    for source in sources:
        db.execute("SELECT pgtrickle.advance_watermark(%s, '2026-03-01 12:00Z')", source)


def test_a_group_of_one_source_gates_its_reader_until_that_is_loaded(db: Database) -> None:
    db.execute("CREATE TABLE fx_rates (id integer)")
    db.execute("SELECT pgtrickle.create_watermark_group('fx', ARRAY['fx_rates'])")
    db.execute("SELECT pgtrickle.create_stream_table('rates', 'SELECT id FROM fx_rates')")
    assert decisions(db)["rates"] == ("gated", "fx: public.fx_rates never advanced")
    advance(db, "fx_rates")
    assert decisions(db)["rates"][0] == "run"


def test_holding_back_without_a_group_is_warned_of_and_called_uncapped(db: Database) -> None:
    db.execute("CREATE TABLE alone (id integer)")
    heard: list[tuple[str | None, str | None]] = []
    with closing(db.connect()) as connection:
        connection.add_notice_handler(lambda notice: heard.append((notice.severity, notice.message_primary)))
        connection.execute("SELECT pgtrickle.create_stream_table('s', 'SELECT id FROM alone')")
        connection.execute("SELECT pgtrickle.alter_stream_table('s', watermark_gating => 'hold_back')")
        connection.execute("SELECT pgtrickle.alter_stream_table('s', tier => 'warm')")
    assert heard == [("WARNING", "public.s holds nothing back: no watermark group concerns it")]
    assert decisions(db)["s"] == ("run", "uncapped: no group")


def test_a_dropped_source_is_named_to_those_it_gates_and_holds_back(db: Database) -> None:
    advance(db, "orders", "lines", "staging")
    assert {made for made, _ in decisions(db).values()} == {"run"}
    db.execute("DROP TABLE staging")
    found = decisions(db)
    assert found["by_gate"][0] == "gated" and DROPPED in found["by_gate"][1]
    assert found["by_hold_back"][0] == "run" and DROPPED in found["by_hold_back"][1]
    with psycopg.connect(db.dsn) as connection:
        check = server.check_catalog(connection, install.verify)
    assert check.detail == DROPPED and on_the_command_line(check.remedy or "") == (
        "If it was created again: pytrickle source adopt public.staging, else pytrickle source forget public.staging."
    )
    with pytrickle.connect(db.dsn, engine="postgres") as pt:
        db.execute("CREATE TABLE staging (id integer)")
        pt.adopt_source("staging")
        assert decisions(db)["by_gate"][0] == "run"
        db.execute("DROP TABLE staging")
        assert pt.forget_source("public.staging") == 1
    assert db.value("SELECT sources::text FROM pgtrickle.pgt_watermark_groups") == "{orders,lines}"


def test_a_dropped_source_has_its_name_in_every_report(db: Database) -> None:
    advance(db, "orders", "lines", "staging")
    db.execute("SELECT pgtrickle.advance_watermark('staging', '2026-03-01 13:00Z')")
    number = db.value("SELECT 'staging'::regclass::oid::text")
    db.execute("DROP TABLE staging")
    assert "public.staging" in [name for (name,) in db.execute("SELECT source FROM pgtrickle.watermarks()")]
    assert ["public.staging"] in [
        names[-1:] for (names,) in db.execute("SELECT sources FROM pgtrickle.watermark_groups()")
    ]
    reason = db.value("SELECT reason FROM pgtrickle.watermark_status()")
    assert "behind public.staging" in reason
    told = [reason, *(sentence for _, sentence in decisions(db).values())]
    assert [sentence for sentence in told if number in sentence] == []


def test_a_source_that_never_advanced_is_named_as_well(db: Database) -> None:
    db.execute("DROP TABLE staging")
    assert decisions(db)["by_gate"][0] == "gated" and DROPPED in decisions(db)["by_gate"][1]


def test_a_dropped_source_is_forgotten_when_somebody_says_so(db: Database) -> None:
    db.execute("SELECT pgtrickle.create_watermark_group('alone', ARRAY['staging'])")
    advance(db, "orders", "lines", "staging")
    with refused("42704", "alter_watermark_group()"):
        db.execute("SELECT pgtrickle.forget_source('staging')")
    db.execute("DROP TABLE staging")
    for misspelled in ("stagin", "public.stagin"):
        meant = misspelled.replace("stagin", "staging")
        with refused("42704", f"Did you mean {meant}?"):
            db.execute(f"SELECT pgtrickle.forget_source('{misspelled}')")
    assert db.value("SELECT pgtrickle.forget_source('staging')") == 2
    assert {made for made, _ in decisions(db).values()} == {"run"}
    groups = db.execute("SELECT group_name, source_names FROM pgtrickle.pgt_watermark_groups")
    assert groups == [("g", ["public.orders", "public.lines"])]
    assert db.value("SELECT count(*) FROM pgtrickle.pgt_watermark_history") == 2


@pytest.mark.parametrize("advanced", [True, False])
def test_a_table_that_was_created_again_is_adopted_by_its_owner(db: Database, advanced: bool) -> None:
    advance(db, "orders", "lines", "staging")
    db.execute("DROP TABLE staging; CREATE TABLE staging (id integer)")
    assert decisions(db)["by_gate"][0] == "gated", "the same name does not make it the same table"
    mallory = db.connect(user=db.create_role("mallory"))
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        mallory.execute("SELECT pgtrickle.adopt_source('staging')")
    if advanced:
        db.execute("SELECT pgtrickle.advance_watermark('staging', '2026-03-01 11:00Z')")
    db.execute("SELECT pgtrickle.adopt_source('staging')")
    made, reason = decisions(db)["by_gate"]
    assert (made, "dropped" in reason) == ("gated" if advanced else "run", False)
    clocks = "SELECT extract(hour FROM watermark AT TIME ZONE 'UTC') FROM pgtrickle.watermark_history('staging')"
    assert db.execute(clocks) == [(11 if advanced else 12,)]
    with refused("55000", "nothing to take over"):
        db.execute("SELECT pgtrickle.adopt_source('staging'::regclass)")


def test_a_stranger_who_creates_a_table_under_the_name_of_a_dropped_one_does_not_take_its_place(db: Database) -> None:
    mallory, etl = db.create_role("mallory"), db.create_role("etl")
    db.execute(f"GRANT CREATE ON SCHEMA public TO {mallory}, {etl}; ALTER TABLE staging OWNER TO {etl}")
    db.execute("SELECT pgtrickle.alter_watermark_group('g', tolerance => '1 hour')")
    advance(db, "orders", "lines", "staging")
    db.execute("DROP TABLE staging")
    squatter = db.connect(user=mallory)
    squatter.execute("CREATE TABLE staging (id integer)")
    squatter.execute("SELECT pgtrickle.advance_watermark('staging', '2026-03-01 13:00Z')")
    with refused("42501", f"Only {etl}, which owned that"):
        squatter.execute("SELECT pgtrickle.adopt_source('staging')")
    assert DROPPED in decisions(db)["by_gate"][1]
    db.execute("DROP TABLE staging")
    with db.connect(user=etl) as owner:
        owner.execute("CREATE TABLE staging (id integer)")
        owner.execute("SELECT pgtrickle.adopt_source('staging')")
    assert {made for made, _ in decisions(db).values()} == {"run"}


def test_of_two_dropped_sources_of_a_group_one_is_adopted_and_the_other_forgotten(db: Database) -> None:
    db.execute("CREATE TABLE prices (id integer)")
    db.execute("SELECT pgtrickle.create_watermark_group('h', ARRAY['orders', 'prices', 'staging'])")
    db.execute("DROP TABLE staging, prices; CREATE TABLE staging (id integer)")
    names = "SELECT source_names FROM pgtrickle.pgt_watermark_groups WHERE group_name = 'h'"
    db.execute("SELECT pgtrickle.adopt_source('staging')")
    assert db.value(names) == ["public.orders", "public.prices", "public.staging"]
    assert db.value("SELECT pgtrickle.forget_source('prices')") == 1
    assert db.value(names) == ["public.orders", "public.staging"]


def test_a_name_that_several_dropped_sources_had_forgets_none_of_them(db: Database) -> None:
    db.execute("CREATE SCHEMA shop; CREATE TABLE shop.staging (id integer)")
    db.execute("SELECT pgtrickle.create_watermark_group('shop', ARRAY['shop.staging', 'orders'])")
    db.execute("DROP TABLE staging, shop.staging")
    with refused("42P09", "with its schema", message="'staging' may be any of public.staging, shop.staging"):
        db.execute("SELECT pgtrickle.forget_source('staging')")
    assert db.value("SELECT pgtrickle.forget_source('shop.staging')") == 1
    assert db.value("SELECT pgtrickle.forget_source('staging')") == 1
