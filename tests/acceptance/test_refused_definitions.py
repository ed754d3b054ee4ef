"""What stands against a project is told before it is applied, and of the file that it stands in."""

from __future__ import annotations

from pathlib import Path

import pytest

import pytrickle
from pytrickle.errors import InvalidArgument, PytrickleError
from tests.acceptance.projects import LARGE, LEFT, SETTINGS, TOTALS, project, pt, shop, write
from tests.commands import commands
from tests.conftest import Database

__all__ = ["project", "pt", "shop"]

# A setting of the groups of the project, another one, and what is said of that.
GROUPS = (
    ('"5 minutes"', '"-5 minutes"', "pipeline: '-00:05:00' is not a valid tolerance"),
    ('"5 minutes"', '"soonish"', "pipeline: 'soonish' is not an interval"),
    ('"1 day"', '"1 dya"', "pipeline: '1 dya' is not an interval"),
    ('idle_after = "1 day"', 'on_stale = "cry"', "pipeline: 'cry' is not a valid on_stale"),
    ('"1 day"', '"-1 day"', "pipeline: '-1 days' is not a valid idle_after"),
    ('"lines"', '"orders"', r"pipeline: source public\.orders appears twice"),
    ("members", 'isolation = "chaos"\nmembers', "both: 'chaos' is not a valid isolation"),
    ('"large", "totals"', '"large"', "both is no refresh group"),
    ('"large", "totals"', '"large", "large"', "both is no refresh group"),
)


@pytest.mark.parametrize(("now", "wrong", "said"), GROUPS)
def test_a_plan_refuses_the_values_that_apply_refuses(
    pt: pytrickle.Client, project: Path, now: str, wrong: str, said: str
) -> None:
    assert now in SETTINGS
    write(project, {"pytrickle.toml": SETTINGS.replace(now, wrong)})
    with pytest.raises(InvalidArgument, match=said) as refused:
        pt.plan(project)
    assert "server's log" not in str(refused.value.hint)


def test_a_dry_run_fails_where_apply_would_and_leaves_nothing(
    shop: Database, pt: pytrickle.Client, project: Path
) -> None:
    before = shop.execute(LEFT)
    assert pt.apply(project, dry_run=True) == pt.plan(project) and shop.execute(LEFT) == before
    gated = {"a_part/large.sql": "hold_back", "totals.sql": "none"}
    queries = {"a_part/large.sql": LARGE, "totals.sql": TOTALS}
    write(project, {name: f"-- pytrickle: watermark_gating = {gated[name]}\n{queries[name]}" for name in gated})
    said = r"public\.large cannot hold back: it reads public\.totals, which shows more"
    for dry_run in (True, False):
        with pytest.raises(InvalidArgument, match=said):
            pt.apply(project, dry_run=dry_run)
    assert shop.execute(LEFT) == before
    assert commands(shop.dsn)("apply", "--dry-run", str(project)).exit_code == 1


@pytest.mark.parametrize(
    ("now", "wrong", "said"),
    [
        ("warm", "tepid", "'tepid' is not a valid tier"),
        ("5m", "5 lightyears", "schedule"),
        ("orders", "ordes", 'relation "ordes" does not exist'),
    ],
)
def test_the_file_that_is_wrong_is_named_and_not_one_that_reads_it(
    pt: pytrickle.Client, project: Path, now: str, wrong: str, said: str
) -> None:
    write(project, {"totals.sql": TOTALS.replace(now, wrong)})
    for do in (pt.plan, pt.apply):
        with pytest.raises(PytrickleError, match=rf"^totals\.sql: .*{said}"):
            do(project)


def test_an_option_that_is_said_twice_is_refused(pt: pytrickle.Client, project: Path) -> None:
    write(project, {"totals.sql": "-- pytrickle: tier = cold\n" + TOTALS})
    with pytest.raises(InvalidArgument, match=r"totals\.sql says tier twice"):
        pt.plan(project)
