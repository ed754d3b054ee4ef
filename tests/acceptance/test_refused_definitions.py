"""What stands against a project is told before it is applied, and of the file that it stands in."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

import pytrickle
from pytrickle.errors import CatalogError, InvalidArgument, PytrickleError
from tests.acceptance.projects import LARGE, LEFT, SETTINGS, TOTALS, project, pt, shop, write
from tests.commands import commands
from tests.conftest import Database

__all__ = ["project", "pt", "shop"]

# A setting of the groups of the project, another one, and what is said of that.
GROUPS = (
    ('"5 minutes"', '"-5 minutes"', "pipeline: '-00:05:00' is not a valid tolerance"),
    ('"5 minutes"', "true", "pipeline: True is not an interval"),
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


WRONG_LINES = ("-- pytrickle: tier warm", "-- what it is\n-- pytrickle: tier = warm", "-- pytrickle tier = warm")


@pytest.mark.parametrize("header", WRONG_LINES)
def test_a_line_of_the_header_that_says_nothing_is_refused(pt: pytrickle.Client, project: Path, header: str) -> None:
    write(project, {"totals.sql": f"{header}\nSELECT region FROM orders"})
    with pytest.raises(InvalidArgument, match=r"totals\.sql has a line that is no option: -- pytrickle"):
        pt.plan(project)
    write(project, {"totals.sql": "-- pytrickle fills it\nSELECT region, amount FROM orders"})
    pt.plan(project)


@pytest.mark.parametrize(
    ("said", "defined"),
    [
        (r"more\.py: the function of more returns no text", "@pytrickle.stream_table()\ndef more(): pass"),
        (r"more\.py: A stream table has no option 'bogus'", "@pytrickle.stream_table(bogus=1)\ndef more(): pass"),
        (r"more\.py cannot be run: ZeroDivisionError", "@pytrickle.stream_table()\ndef more(): return 1 / 0"),
    ],
)
def test_what_is_wrong_in_a_python_file_is_told_with_its_name(
    pt: pytrickle.Client, project: Path, said: str, defined: str
) -> None:
    write(project, {"more.py": f"import pytrickle\n{defined}\n"})
    with pytest.raises(InvalidArgument, match=said):
        pt.plan(project)


def test_the_mark_that_some_editors_put_before_utf8_is_no_part_of_a_file(pt: pytrickle.Client, project: Path) -> None:
    write(project, {"totals.sql": f"\ufeff{TOTALS}", "pytrickle.toml": f"\ufeff{SETTINGS}"})
    assert pt.plan(project).changes


def test_a_plan_refuses_a_definition_that_reads_what_would_be_dropped(
    shop: Database, pt: pytrickle.Client, project: Path
) -> None:
    pt.apply(project)
    pt.tick()
    write(project, {"pytrickle.toml": 'project = "shop"'})
    (project / "totals.sql").unlink()
    for do in (pt.plan, pt.apply):
        with pytest.raises(CatalogError, match=r"^a_part/large\.sql: it reads public\.totals, which the project"):
            do(project)
    write(project, {"a_part/large.sql": "SELECT region FROM orders"})
    assert [change.action for change in pt.apply(project).changes if change.kind == "stream table"] == ["drop", "alter"]
    assert [result.action for result in pt.tick()] == ["REINITIALIZE"] and pt.verify("large").matches


def test_no_query_at_all_is_refused_by_the_catalog(shop: Database) -> None:
    shop.execute("SET statement_timeout = '5s'")
    with pytest.raises(psycopg.Error, match="query must not be NULL"):
        shop.execute("SELECT pgtrickle_private.compare_definition('totals', NULL, '{}', 'public')")
