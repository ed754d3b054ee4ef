"""Frozen rows: what is old enough below the effective watermark never changes, and the ledger has what it misses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytrickle.definitions.values import Project, StreamTableDefinition
from pytrickle.errors import LockTimeout
from pytrickle.refresh import refresher
from tests.acceptance.conftest import Shop, status
from tests.acceptance.events import BIN, advance, moment
from tests.acceptance.test_changed_meanwhile import Meanwhile, again, meanwhile
from tests.acceptance.test_verify import tamper
from tests.commands import commands
from tests.repeats import first

__all__ = ["again", "meanwhile"]

HOURLY = f"SELECT {BIN.format('at')} AS ends, page, count(*) AS clicks, sum(took) AS took FROM clicks GROUP BY 1, page"
PLAIN = "SELECT id, at, page, took FROM clicks"
LATEST = "SELECT page, max(at) AS at, count(*) AS clicks FROM clicks GROUP BY page"
UNIQUE = "SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indrelid = 'latest'::regclass AND indisunique"
LATE = "SELECT weight, change ->> 'id', closed_through FROM pgtrickle.late_changes('plain') ORDER BY 2, 1"


def add(shop: Shop, number: int, seconds: float, page: int = 1) -> None:
    shop.db.execute("INSERT INTO clicks VALUES (%s, %s, %s, 1)", number, moment(seconds), page)


def numbers(shop: Shop, name: str = "plain") -> set[int]:
    return {row[0] for row in shop.db.execute(f"SELECT id FROM {name}")}


@pytest.fixture
def plain(events: Shop) -> Shop:
    """Clicks 1 and 2, of which the first is frozen: the table is complete through 350 seconds."""
    events.db.execute("SELECT pgtrickle.set_event_time('clicks', 'at')")
    events.pt.create_stream_table("plain", PLAIN, frozen_after="100 seconds")
    add(events, 1, 0)
    add(events, 2, 300)
    advance(events, 350)
    events.tick()
    return events


def test_what_comes_too_late_is_in_the_ledger_and_in_the_counts(plain: Shop) -> None:
    shown = status(plain, "plain")
    assert (shown.effective_watermark, shown.frozen_before, shown.late_changes) == (moment(350), moment(250), 0)
    kept = plain.rows("plain")
    plain.db.execute("UPDATE clicks SET took = 1.0 WHERE id = 1")
    add(plain, 3, 200)
    add(plain, 4, 250)
    result = plain.tick()["plain"]
    assert (result.action, result.rows_inserted, result.rows_deleted) == ("DIFFERENTIAL", 1, 0)
    assert plain.rows("plain") == kept | {(4, moment(250), 1, 1)}
    assert plain.db.execute(LATE) == [(-1, "1", moment(250)), (1, "1", moment(250)), (1, "3", moment(250))]
    assert status(plain, "plain").late_changes == 3
    run = commands(plain.db.dsn)
    assert "Late changes in the ledger: public.plain 3" in run("status").stdout
    assert "but for 3 changes of frozen rows, which the ledger has" in run("verify", "plain").stdout
    explained = plain.pt.explain("plain")
    assert f"whose at is before {moment(250).isoformat()}; 3 changes in the ledger" in explained.text
    tamper(plain, "plain", "UPDATE plain SET took = 5 WHERE id = 1")
    found = plain.pt.verify("plain")
    assert (found.matches, found.missing, found.unexpected, found.withheld) == (False, 1, 1, 3), "also a frozen row"


def test_a_row_that_no_refresh_has_shown_is_not_frozen(plain: Shop) -> None:
    add(plain, 3, 260)
    advance(plain, 1000)
    plain.tick()
    assert numbers(plain) == {1, 2, 3}, "it came in time: only the refresh was late"
    assert status(plain, "plain").frozen_before == moment(900)
    advance(plain, 2000)
    plain.tick()
    assert status(plain, "plain").frozen_before == moment(1900), "an advance alone freezes rows"
    assert plain.db.execute(LATE) == []


def test_only_without_the_option_the_rows_follow_the_query_again(plain: Shop) -> None:
    for interval, before in (("200 seconds", 250), ("50 seconds", 300), ("100 seconds", 300)):
        plain.pt.alter_stream_table("plain", frozen_after=interval)
        assert status(plain, "plain").frozen_before == moment(before), "another interval thaws nothing"
    plain.db.execute("DELETE FROM clicks WHERE id = 1")
    plain.tick()
    assert numbers(plain) == {1, 2} and len(plain.db.execute(LATE)) == 1
    plain.pt.alter_stream_table("plain", reset=["frozen_after"])
    assert plain.db.execute(LATE) == []
    result = plain.tick()["plain"]
    assert (result.action, "its rows are not frozen any more" in result.reason) == ("REINITIALIZE", True)
    assert numbers(plain) == {2} and status(plain, "plain").frozen_before is None
    plain.db.execute("DELETE FROM clicks WHERE id = 2")
    assert plain.tick()["plain"].action == "DIFFERENTIAL" and numbers(plain) == set()
    plain.assert_verified()


def test_another_query_leaves_frozen_rows_as_they_are(plain: Shop) -> None:
    plain.pt.alter_stream_table("plain", query=PLAIN.replace("page, took", "page + 5 AS page, took"))
    plain.tick()
    assert {row[::2] for row in plain.rows("plain")} == {(1, 1), (2, 6)}
    assert plain.db.execute(LATE) == [], "the earlier query is no late change"
    add(plain, 3, 240)
    plain.db.execute("SELECT pgtrickle.repair_capture('clicks')")
    plain.tick()
    assert {row[::2] for row in plain.rows("plain")} == {(1, 1), (2, 6)}
    plain.assert_verified()


def test_a_key_whose_row_was_frozen_is_there_once_more_when_it_changes(events: Shop) -> None:
    events.pt.create_stream_table("latest", LATEST, window_end="at", frozen_after="3000 years")
    for number, page in ((1, 1), (2, 2)):
        add(events, number, 0, page)
    add(events, 5, 0, 5)
    advance(events, 200)
    events.tick()
    events.db.execute("DELETE FROM clicks WHERE id = 5")
    events.tick()
    before = status(events, "latest").frozen_before
    assert before is not None and before.year == 1, "PostgreSQL knows moments before Christ, Python does not"
    events.pt.alter_stream_table("latest", frozen_after="100 seconds")
    add(events, 3, 300, 1)
    events.tick()
    assert events.rows("latest") == {(1, moment(0), 1), (2, moment(0), 1), (1, moment(300), 2)}
    assert events.db.value(UNIQUE).endswith("(page, at) NULLS NOT DISTINCT")
    events.assert_verified()
    events.pt.alter_stream_table("latest", reset=["frozen_after"])
    events.tick()
    assert events.rows("latest") == {(2, moment(0), 1), (1, moment(300), 2)}
    assert events.db.value(UNIQUE).endswith("(page) NULLS NOT DISTINCT")
    events.pt.alter_stream_table("latest", frozen_after="0 seconds")
    assert events.db.value(UNIQUE).endswith("(page, at) NULLS NOT DISTINCT")
    add(events, 4, 400, 2)
    events.tick()
    assert events.rows("latest") == {(2, moment(0), 1), (2, moment(400), 2), (1, moment(300), 2)}


def test_a_stream_table_is_complete_no_further_than_those_it_reads(plain: Shop) -> None:
    plain.pt.create_stream_table("below", "SELECT id, at FROM plain", frozen_after="0 seconds")
    plain.pt.create_stream_table("held", PLAIN, watermark_gating="hold_back")
    plain.pt.create_stream_table("below_held", "SELECT id, at FROM held", frozen_after="0", watermark_gating="none")
    plain.tick()
    advance(plain, 380)
    plain.tick()
    plain.tick()
    plain.db.execute("SELECT pgtrickle.pause_stream_table('plain')")
    add(plain, 3, 390)
    plain.pt.advance_watermark("clicks", moment(400))
    plain.tick()
    plain.tick()
    found = {name: status(plain, name).frozen_before for name in ("below", "below_held")}
    assert found == {"below": moment(380), "below_held": moment(380)}
    plain.db.execute("SELECT pgtrickle.resume_stream_table('plain')")
    plain.pt.advance_watermark("views", moment(400))
    plain.tick()
    plain.tick()
    assert numbers(plain, "below") == numbers(plain, "below_held") == {1, 2, 3}
    assert {status(plain, name).frozen_before for name in ("below", "below_held")} == {moment(400)}


@pytest.mark.parametrize("reset", first(1, [[], ["frozen_after"]]), ids=["fewer were", "none were"])
def test_rows_that_are_frozen_meanwhile_are_not_changed(
    plain: Shop, meanwhile: Meanwhile, again: bool, reset: list[str]
) -> None:
    plain.pt.alter_stream_table("plain", reset=reset)
    plain.tick()
    if again:
        plain.db.execute("UPDATE clicks SET took = 2 WHERE id = 2")
        plain.tick()
    shown = plain.rows("plain")
    plain.db.execute("UPDATE clicks SET took = 9 WHERE id = 2")
    meanwhile("SELECT pgtrickle.alter_stream_table('plain', frozen_after => '0')")
    plain.pt.tick()
    plain.tick()
    assert plain.rows("plain") == shown and status(plain, "plain").frozen_before == moment(350)
    assert len(plain.db.execute(LATE)) == 2
    plain.assert_verified()


@pytest.mark.repeats
def test_the_key_is_not_waited_for_for_long(events: Shop) -> None:
    events.pt.create_stream_table("latest", LATEST, window_end="at", frozen_after="0")
    events.pt.alter_stream_table("latest", reset=["frozen_after"])
    add(events, 1, 0)
    events.tick()
    with events.db.connect(autocommit=False) as reader, pytest.raises(LockTimeout) as refused:
        reader.execute("SELECT FROM latest")
        events.pt.alter_stream_table("latest", frozen_after="0")
    assert "could not lock" in str(refused.value) and "try again later" in str(refused.value.hint)
    assert events.db.value(UNIQUE).endswith("(page) NULLS NOT DISTINCT")


def test_a_first_load_that_knows_of_no_frozen_rows_is_not_committed(
    events: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    events.pt.create_stream_table("latest", LATEST, window_end="at", frozen_after="1 day")
    events.pt.alter_stream_table("latest", reset=["frozen_after"])
    add(events, 1, 0)
    left = ["SELECT pgtrickle.alter_stream_table('latest', frozen_after => '0')"]
    committed = refresher.commit

    def after_another(*arguments: Any) -> Any:
        if left:
            events.db.execute(left.pop())
        return committed(*arguments)

    monkeypatch.setattr(refresher, "commit", after_another)
    events.pt.tick()
    assert not left and events.rows("latest") == set()
    events.tick()
    assert events.db.value(UNIQUE).endswith("(page, at) NULLS NOT DISTINCT")


def test_what_came_to_nothing_goes_with_the_history(plain: Shop) -> None:
    add(plain, 3, 200)
    plain.tick()
    plain.db.execute("DELETE FROM clicks WHERE id = 3 OR id = 1")
    plain.tick()
    assert len(plain.db.execute(LATE)) == 3
    plain.pt._call("SELECT pgtrickle.trim_history('0')")
    assert plain.db.execute(LATE) == [(-1, "1", moment(250))]
    plain.assert_verified()


def test_the_ledger_has_every_value_as_its_type_reads_it(events: Shop) -> None:
    events.db.execute(
        "CREATE TABLE odd (id int, at timestamptz, plain json, binary_json jsonb, padded char(5), many text[],"
        " number numeric, bytes bytea, nothing text, length interval, pair views)"
    )
    events.db.execute("SELECT pgtrickle.set_event_time('odd', 'at')")
    events.pt.create_stream_table("odd_rows", "SELECT * FROM odd", frozen_after="0", watermark_gating="hold_back")
    values = (
        "'{\"a\": 1,  \"a\": 2}', '\"text\"', 'ab', '{NULL,\"x y, \\\\\"}', 'NaN', '\\x00ff', NULL, '1 mon -3 s',"
        " ROW(NULL, NULL, NULL)::views"
    )
    events.db.execute(f"INSERT INTO odd VALUES (1, '{moment(0)}', {values})")
    for seconds in (50, 100):
        events.pt.advance_watermark("odd", moment(seconds))
        events.tick()
        assert status(events, "odd_rows").frozen_before == moment(seconds), "without a group nothing holds it back"
    events.db.execute("DELETE FROM odd")
    events.db.execute(f"INSERT INTO odd VALUES (2, '{moment(1)}', {values}), (2, '{moment(1)}', {values})")
    events.tick()
    assert events.db.value("SELECT count(*) FROM odd_rows WHERE id = 1") == 1
    assert events.db.execute("SELECT weight FROM pgtrickle.late_changes() ORDER BY weight") == [(-1,), (2,)]
    (found,) = events.pt.verify()
    assert (found.matches, found.withheld) == (True, 2)


def test_a_project_defines_frozen_rows(plain: Shop, tmp_path: Path) -> None:
    tables = (
        StreamTableDefinition("first", PLAIN, {"frozen_after": "36 hours"}, "first.sql"),
        StreamTableDefinition("second", "SELECT id, at AS seen_at FROM first", {"frozen_after": "1 day"}, "second.sql"),
    )
    plain.pt.apply(Project("clicks", tables))
    assert not plain.pt.plan(Project("clicks", tables))
    assert plain.db.execute("SELECT frozen_by FROM pgtrickle.stream_tables_info ORDER BY pgt_id") == [
        ("at",),
        ("at",),
        ("seen_at",),
    ]
    plain.pt.export("clicks", tmp_path / "written")
    assert not plain.pt.plan(tmp_path / "written")
    plain.pt.apply(Project("clicks", (replace(tables[0], options={}), tables[1])))
    assert plain.db.value("SELECT frozen_after IS NULL FROM pgtrickle.stream_tables_info WHERE pgt_name = 'first'")


def test_whole_refreshes_again_and_again_record_each_late_change_once(plain: Shop) -> None:
    plain.pt.alter_stream_table("plain", refresh_mode="FULL")
    plain.db.execute("UPDATE clicks SET took = 1.0 WHERE id = 1")
    add(plain, 3, 200)
    plain.tick()
    late = plain.db.execute(LATE)
    assert late == [(-1, "1", moment(250)), (1, "1", moment(250)), (1, "3", moment(250))]
    for number in (4, 5):
        add(plain, number, 300)
        assert plain.tick()["plain"].action == "FULL"
        assert plain.db.execute(LATE) == late
    assert plain.pt.verify("plain").matches
