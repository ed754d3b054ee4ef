"""Every table fits a screen of 80 columns without breaking a word, and a pipe gets all of it, a line for each row."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from pytrickle.catalog import late_reports, reports, trouble_reports
from pytrickle.catalog.freshness_reports import AlertLimitsRow, FreshnessRow
from pytrickle.cli import values
from pytrickle.cli.console import console
from pytrickle.cli.show import render, render_freshness, render_late, render_sources
from pytrickle.cli.show.columns import columns
from pytrickle.inspect.as_of import AsOf
from pytrickle.inspect.verify import VerifyResult
from tests.unit.cli_recorder import NOON, table

TABLE = "warehouse_reporting.daily_revenue_per_region_and_category"
SOURCE = "warehouse_landing_zone.order_lines_with_discounts_2026"
GROUP = "order_pipeline_of_the_warehouse_in_the_north"
ROLE = "nightly_loader_of_the_warehouse_in_the_north"
REASON = f"{GROUP}: {SOURCE} is 5 min behind {TABLE}, and the tolerance is 30 s"
HOUR = timedelta(hours=1)

STATUS = table(stream_table=TABLE, refresh_mode="DIFFERENTIAL", decision="gated", reason=REASON, last_engine="postgres")
WATERMARK = reports.WatermarkRow(SOURCE, NOON, NOON, NOON, ROLE, "0/16B3748")
STANDING = reports.WatermarkStatusRow(GROUP, NOON, NOON, HOUR, HOUR, False, NOON, SOURCE, REASON)
GATE = reports.SourceGateRow(SOURCE, NOON, ROLE, "a reload of the whole year", (TABLE, SOURCE))
ALERT = trouble_reports.AlertRow("stale_source", SOURCE, GROUP, NOON, REASON, NOON, None)
RAN = reports.HistoryRow(
    *(7, TABLE, "REINITIALIZE", "COMPLETED", "SCHEDULER", REASON, NOON, NOON + HOUR),
    *(12345, 12345, 12345, NOON, NOON, None),
)
BOOTSTRAP = reports.BootstrapRow(SOURCE, True, NOON, ROLE, None, NOON, NOON, TABLE, False, "gated", REASON)
LATE = late_reports.LateRow(
    *(7, SOURCE, NOON, NOON, HOUR, {"id": "1", "note": "one of a few words"}, NOON, ROLE, "kept_out", None, None)
)
METRICS = late_reports.WatermarkMetrics(SOURCE, NOON, HOUR, HOUR, False, 0.5, 12, 0.9, HOUR, HOUR, HOUR, 5, 2, 0.01)
BEHIND = FreshnessRow(
    *(7, TABLE, "behind", HOUR, NOON, "capture", HOUR, *[timedelta(0)] * 6, "watermark", SOURCE, REASON)
)
LIMITS = AlertLimitsRow(SOURCE, None, HOUR, 0.05, 0.5, None)
SCREENS: dict[str, Any] = {
    "status": render.status(reports.Status((STATUS,), (STANDING,), (WATERMARK,), NOON, (GATE,), (ALERT,))),
    "groups": render.groups([STANDING]),
    "watermarks": render.watermarks([WATERMARK], NOON),
    "stream tables": render.stream_tables([STATUS]),
    "history": render.history([RAN]),
    "watermark history": render.watermark_history([reports.HistoryEntry(NOON, NOON, ROLE, "0/16B3748")]),
    "group list": render.group_list([reports.WatermarkGroupRow(GROUP, (SOURCE, TABLE), HOUR, NOON, HOUR)]),
    "refresh groups": render.refresh_group_list([reports.RefreshGroupRow(GROUP, (TABLE, SOURCE), "read", NOON)]),
    "verified": render.verified([VerifyResult(TABLE, False, 3, 4), VerifyResult(SOURCE, False, 0, 0, error=REASON)]),
    "as of": render.as_of(AsOf(TABLE, {SOURCE: NOON}, (TABLE, "total"), ((SOURCE, 17),))),
    "gates": render_sources.gates([GATE]),
    "alerts": render_sources.alerts([ALERT]),
    "freshness": render_freshness.freshness([BEHIND]),
    "alert limits": render_freshness.alert_limits([LIMITS]),
    "bootstrap": render_sources.bootstrap([BOOTSTRAP]),
    "event times": render_late.event_times([late_reports.EventTimeRow(SOURCE, GROUP, ROLE, HOUR, NOON, ROLE, REASON)]),
    "late rows": render_late.late_rows([LATE]),
    "metrics": render_late.metrics([METRICS]),
}


def printed(content: Any, width: int | None = None) -> str:
    """Return what a terminal of this width shows, or what a pipe gets."""
    stream = io.StringIO()
    target = console(stream)
    if width is not None:
        target.width = width
    target.print(content, crop=False)
    return stream.getvalue()


@pytest.mark.parametrize("screen", SCREENS)
def test_no_table_breaks_a_word_on_80_columns_or_is_wider(screen: str) -> None:
    known = set(printed(SCREENS[screen]).split())
    narrow = printed(SCREENS[screen], 80)
    headings = {word for name in columns_of(SCREENS[screen]) for word in name.split()}
    told = {word for line in narrow.splitlines() if line.startswith("Not shown") for word in line.split()}
    labels = {f"{word}:" for word in headings}
    assert set(narrow.split()) - told - headings - labels <= known
    assert [line for line in narrow.splitlines() if len(line) > 80 and " " in line.strip()] == []


def columns_of(content: Any) -> set[str]:
    parts = getattr(content, "renderables", [content])
    return {name for part in parts for name in getattr(part, "names", ())}


@pytest.mark.parametrize("screen", SCREENS)
def test_a_pipe_gets_every_column_a_line_for_each_row_and_no_spaces_at_the_end(screen: str) -> None:
    piped = printed(SCREENS[screen])
    assert "Not shown" not in piped
    assert all(line == line.rstrip() for line in piped.splitlines())
    content = SCREENS[screen]
    if not hasattr(content, "renderables"):
        assert len(piped.splitlines()) == len(content.rows) + 1


def test_what_is_least_important_is_left_out_first_and_named() -> None:
    drawn = columns("name", "state", "size", "by", spare=("by", "size"))
    drawn.add_row("a" * 20, "ok", "12 MB", "somebody")
    assert printed(drawn, 40).splitlines() == [
        "name                  state  size",
        "aaaaaaaaaaaaaaaaaaaa  ok     12 MB",
        "Not shown for want of room: by.",
    ]
    assert printed(drawn, 29).splitlines() == [
        "name                  state",
        "aaaaaaaaaaaaaaaaaaaa  ok",
        "Not shown for want of room: size, by.",
    ]


def test_a_sentence_stands_beside_the_rest_beneath_it_or_in_a_list() -> None:
    drawn = columns("name", "reason", sentences=("reason",))
    drawn.add_row("totals", "one two three four five six seven eight nine ten")
    assert printed(drawn, 60).splitlines() == [
        "name    reason",
        "totals  one two three four five six seven eight nine ten",
    ]
    assert printed(drawn, 42).splitlines() == [
        "name    reason",
        "totals  one two three four five six seven",
        "        eight nine ten",
    ]
    assert printed(drawn, 30).splitlines() == [
        "name",
        "totals",
        "    one two three four five",
        "    six seven eight nine ten",
    ]
    assert printed(drawn, 5).splitlines()[:4] == ["totals", "    reason", "        one", "        two"]


def test_wide_characters_and_line_breaks_do_not_shift_columns() -> None:
    drawn = columns("name", "state")
    drawn.add_row("売上", "ok")
    drawn.add_row("a\nb\x1b", "ok")
    assert printed(drawn).splitlines() == ["name       state", "売上       ok", "a b\\u001b  ok"]


def test_a_moment_is_local_on_a_terminal_and_in_utc_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    moment = datetime(2026, 1, 1, 12, 0, 0, 999999, tzinfo=UTC)
    local = moment.astimezone().isoformat(" ", "seconds")
    assert (values.moment(moment), values.jsonable(moment)) == (
        "2026-01-01 12:00:00+00:00",
        "2026-01-01T12:00:00.999999+00:00",
    )
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert values.moment(moment) == local
    assert values.moment(replace_zone(moment)) == local


def replace_zone(moment: datetime) -> datetime:
    """Return the same moment as somebody two hours east writes it."""
    return moment.astimezone(timezone(timedelta(hours=2)))
