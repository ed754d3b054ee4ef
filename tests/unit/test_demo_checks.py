"""The demo's verdict: every broken guarantee is named, and so is a demo that proves nothing."""

from dataclasses import replace
from datetime import timedelta

import pytest

from pytrickle.demo.checks import Observation, Tally, broken_promises
from pytrickle.demo.loaders import ORDER_LINES_PACE, ORDERS_PACE

COMPLETE = Tally().plus(Observation(shown=10, incomplete=0, age=timedelta(seconds=2)))
INCOMPLETE = COMPLETE.plus(Observation(shown=12, incomplete=3, age=timedelta(seconds=1)))
GOOD = {"none": INCOMPLETE, "gate": COMPLETE, "hold_back": COMPLETE}
MATCHES = dict.fromkeys(GOOD, True)


def test_a_demo_whose_guarantees_held_breaks_nothing() -> None:
    assert broken_promises(GOOD, MATCHES) == ()


@pytest.mark.parametrize("mode", ["gate", "hold_back"])
def test_an_order_shown_without_its_lines_breaks_a_guarantee(mode: str) -> None:
    (sentence,) = broken_promises({**GOOD, mode: INCOMPLETE}, MATCHES)
    assert f"report_{mode} showed up to 3 orders without their lines" in sentence


@pytest.mark.parametrize("mode", GOOD)
def test_a_report_that_differs_from_its_query_breaks_a_guarantee(mode: str) -> None:
    (sentence,) = broken_promises(GOOD, {**MATCHES, mode: False})
    assert f"report_{mode} differs" in sentence


def test_a_failed_refresh_breaks_a_guarantee() -> None:
    assert broken_promises(GOOD, MATCHES, ["report_none failed: no space"]) == (
        "the refresh of report_none failed: no space",
    )


def test_a_demo_without_a_single_incomplete_order_proves_nothing() -> None:
    (sentence,) = broken_promises({**GOOD, "none": COMPLETE}, MATCHES)
    assert "prove nothing" in sentence


@pytest.mark.parametrize("mode", ["gate", "hold_back"])
def test_a_report_that_stayed_empty_proves_nothing(mode: str) -> None:
    empty = replace(COMPLETE, last=Observation(0, 0, None))
    (sentence,) = broken_promises({**GOOD, mode: empty}, MATCHES)
    assert f"report_{mode} showed no order" in sentence


def test_a_tally_counts_looks_and_averages_the_age_over_those_that_saw_an_order() -> None:
    tally = Tally().plus(Observation(0, 0, None)).plus(Observation(5, 2, timedelta(seconds=1)))
    tally = tally.plus(Observation(6, 0, timedelta(seconds=4)))
    assert (tally.looks, tally.looks_incomplete, tally.worst) == (3, 1, 2)
    assert tally.mean_age == timedelta(seconds=2.5)


def test_the_two_watermarks_agree_after_one_load_of_lines_and_not_after_the_next() -> None:
    def orders_watermark_at(moment: timedelta) -> timedelta:
        return moment // ORDERS_PACE.every * ORDERS_PACE.every

    agreed = [
        orders_watermark_at(ORDER_LINES_PACE.landed(load)) == ORDER_LINES_PACE.fetched(load) for load in (1, 2, 3, 4)
    ]
    assert agreed == [True, False, True, False]
