"""Cycles and watermarks: one gate, one cut, one claim."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.acceptance.companies import CONTROL, EXPECTED, INHERITED, Group, companies, create
from tests.conftest import Database


@pytest.fixture
def empty(db: Database) -> Iterator[Group]:
    """The tables, without stream tables."""
    with companies(db) as group:
        yield group


def test_one_gated_member_holds_the_whole_cycle(empty: Group) -> None:
    """Only `control` heeds the watermarks, although `inherited` could go on without them."""
    create(empty)
    empty.pt.alter_stream_table("inherited", watermark_gating="none")
    empty.pt.create_watermark_group("both", ["owners", "holdings"])
    empty.load("12:00", "INSERT INTO owners VALUES (1, 101)", "INSERT INTO holdings VALUES (3, 4)")
    assert empty.tick() == {"control": "FULL", "inherited": "FULL"}
    before = empty.state()
    empty.load("12:05", "INSERT INTO holdings VALUES (4, 5)")
    results = {r.stream_table.partition(".")[2]: r for r in empty.pt.tick()}
    assert {name: r.action for name, r in results.items()} == {"control": "SKIP", "inherited": "SKIP"}
    assert results["inherited"].reason.startswith("it is refreshed together with public.control: both:")
    assert empty.state() == before
    empty.load("12:05", "INSERT INTO owners VALUES (5, 102)")
    assert empty.tick() == {"control": "DIFFERENTIAL", "inherited": "DIFFERENTIAL"}
    assert empty.rows() == set(empty.db.execute(EXPECTED))
    assert empty.complete_through("control") == {"12:05"}


def test_a_cycle_that_holds_back_stands_at_one_cut_of_all_its_sources(empty: Group) -> None:
    empty.pt.create_watermark_group("both", ["owners", "holdings"])
    create(empty, watermark_gating="hold_back")
    empty.load("12:00", "INSERT INTO owners VALUES (5, 105)", "INSERT INTO holdings VALUES (3, 4)")
    agreed = set(empty.db.execute(EXPECTED))
    empty.load("12:05", "INSERT INTO holdings VALUES (4, 1), (5, 6)")
    empty.db.execute("DELETE FROM owners WHERE company = 1")
    assert empty.tick() == {"control": "FULL", "inherited": "FULL"}
    assert empty.rows() == agreed and empty.pt.verify("inherited").matches
    assert set(empty.tick().values()) == {"NO_DATA"}
    empty.load("12:05", "INSERT INTO owners VALUES (6, 106)")
    assert set(empty.tick().values()) == {"FULL"}
    assert empty.rows() == set(empty.db.execute(EXPECTED)) != agreed
    assert empty.complete_through() == {"12:05"}


def test_members_that_cannot_read_a_source_at_one_cut_wait(empty: Group) -> None:
    """Cuts of before a column was captured cannot be read by the one that reads it: the next advance can."""
    empty.db.execute("ALTER TABLE owners ADD COLUMN share int NOT NULL DEFAULT 1")
    empty.pt.create_watermark_group("both", ["owners", "holdings"])
    create(empty, watermark_gating="hold_back")
    empty.load("12:00", "INSERT INTO owners VALUES (5, 105)", "INSERT INTO holdings VALUES (3, 4)")
    empty.tick()
    before = empty.rows()
    empty.pt.alter_stream_table("inherited", query=f"{INHERITED} JOIN owners AS o ON o.share = 1 AND o.company = 1")
    empty.db.execute("INSERT INTO owners VALUES (7, 107)")
    results = empty.pt.tick()
    assert {r.action for r in results} == {"SKIP"}
    assert "has not advanced since its changes are captured" in results[0].reason + results[1].reason
    assert empty.rows() == before
    empty.load("12:05", "INSERT INTO owners VALUES (8, 108)", "INSERT INTO holdings VALUES (4, 5)")
    assert {r.error for r in empty.pt.tick()} == {None}
    assert empty.rows() == set(empty.db.execute(EXPECTED)) != before


def test_a_cycle_over_a_table_that_was_left_behind_claims_no_new_watermark(empty: Group) -> None:
    empty.pt.create_watermark_group("both", ["owners", "holdings"])
    empty.pt.create_stream_table("registered", "SELECT DISTINCT company, person FROM owners")
    create(empty)
    empty.pt.alter_stream_table("control", query=CONTROL.replace("owners", "registered"))
    empty.load("12:00", "INSERT INTO owners VALUES (5, 105)", "INSERT INTO holdings VALUES (3, 4)")
    empty.tick()
    empty.pt.pause("registered")
    empty.load("12:05", "INSERT INTO owners VALUES (6, 106)", "INSERT INTO holdings VALUES (4, 5)")
    assert empty.tick() == {"control": "DIFFERENTIAL", "inherited": "DIFFERENTIAL"}
    assert empty.complete_through() == {"12:00"}
    empty.pt.resume("registered")
    empty.tick()
    assert empty.complete_through() == {"12:05"}
    assert empty.rows() == set(empty.db.execute(EXPECTED))
