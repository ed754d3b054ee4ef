"""Limits and event times of sources beside the code: planned, applied and exported with their project."""

from __future__ import annotations

from pathlib import Path

import pytest

import pytrickle
from pytrickle.errors import CatalogError, PytrickleError
from tests.acceptance.projects import project, pt, shop, told, write
from tests.conftest import Database

__all__ = ["project", "pt", "shop"]


SOURCES = """project = "shop"

[sources.lines]
stale_after = "90 minutes"
on_stale = "hold"
event_time = "placed_at"
too_late = "1 day"

[sources."public.orders"]
idle_after = 86400
"""
SAID = (
    "SELECT source_relid::text, stale_after::text, on_stale, idle_after::text, project"
    " FROM pgtrickle.pgt_source_limits ORDER BY 1",
    "SELECT source_relid::text, column_name, too_late::text, project FROM pgtrickle.pgt_event_times",
)


def test_a_project_owns_limits_and_event_times_of_sources(shop: Database, pt: pytrickle.Client, tmp_path: Path) -> None:
    shop.execute("ALTER TABLE lines ADD COLUMN placed_at timestamptz")
    pt.set_source_limits("orders", stale_after="1 hour", on_stale="hold")
    write(tmp_path, {"pytrickle.toml": SOURCES})
    changes = [
        ("alter", "source limits", "public.orders"),
        ("create", "source limits", "public.lines"),
        ("create", "event time", "public.lines"),
    ]
    assert sorted(told(pt.plan(tmp_path))) == sorted(told(pt.apply(tmp_path))) == sorted(changes)
    assert not pt.plan(tmp_path)
    limits = [("lines", "01:30:00", "hold", None, "shop"), ("orders", None, "warn", "24:00:00", "shop")]
    assert shop.execute(SAID[0]) == limits
    assert shop.execute(SAID[1]) == [("lines", "placed_at", "1 day", "shop")]
    pt.set_source_limits("orders", idle_after="2 days")
    (change,) = pt.plan(tmp_path).changes
    assert change.details == ("idle_after: 2 days → 24:00:00",)
    pt.export("shop", tmp_path / "written")
    assert not pt.plan(tmp_path / "written")
    write(tmp_path, {"pytrickle.toml": SOURCES.replace('"shop"', '"other"')})
    with pytest.raises(CatalogError, match="belongs to the project shop"):
        pt.plan(tmp_path)
    write(tmp_path, {"pytrickle.toml": 'project = "shop"'})
    assert {change.action for change in pt.apply(tmp_path).changes} == {"drop"}
    assert shop.execute(SAID[0]) == shop.execute(SAID[1]) == []
    pt.apply(tmp_path / "written")
    assert (
        shop.value("SELECT idle_after::text FROM pgtrickle.pgt_source_limits WHERE idle_after IS NOT NULL") == "2 days"
    )


def test_what_cannot_be_said_of_a_source_is_refused_by_the_plan(
    shop: Database, pt: pytrickle.Client, project: Path
) -> None:
    twice = '[sources.orders]\nidle_after = "1 day"\n[sources."public.orders"]\nidle_after = "1 day"'
    wrong = (
        ('[sources.orders]\nstale_after = "-1 hour"', "stale_after"),
        ('[sources.orders]\nstale_afer = "1 hour"', "stale_afer"),
        ('[sources.orders]\non_stale = "hold"', "on_stale alone"),
        ('[sources.orders]\ntoo_late = "1 day"', "too_late without event_time"),
        ('[sources.orders]\nevent_time = "amount"', "no event time"),
        ('[sources.nowhere]\nidle_after = "1 day"', "no table nowhere"),
        ('[sources.totals]\nidle_after = "1 day"', "not a table that a loader fills"),
        (twice, "defined twice"),
        ('[sources]\norders = "1 day"', "is no table"),
    )
    for said, match in wrong:
        write(project, {"pytrickle.toml": f'project = "shop"\n{said}\n'})
        with pytest.raises(PytrickleError, match=match):
            pt.plan(project)
