"""AUTO's choice between a differential and a whole refresh: bounded by the measured past, and steady."""

from dataclasses import replace
from itertools import pairwise
from math import sqrt
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytrickle.catalog.definition import Evidence, PastRefresh
from pytrickle.plan.apply_plan import Action
from pytrickle.plan.auto import (
    GAIN,
    LARGE,
    LONG,
    MARGIN,
    SLOW,
    SMALL,
    WORTH_ASKING,
    choose_action,
    expected,
    is_unfamiliar,
    least_worth_asking,
)
from pytrickle.plan.cost import PATIENCE
from pytrickle.plan.quote import Quote

seconds = st.floats(0.0, 10_000.0)
pasts = st.builds(PastRefresh, st.booleans(), st.integers(WORTH_ASKING, 10**9), seconds)
evidences = st.builds(
    Evidence,
    st.integers(0, 10**10),
    st.integers(0, 10**9),
    st.lists(pasts, max_size=12).map(tuple),
    st.none() | seconds,
)
sizes = st.integers(0, 10**9)
units = st.floats(0, 1e9)
quotes = st.none() | st.builds(Quote, st.integers(0, 10**6), units | st.none(), units | st.none())


@given(evidences, st.tuples(sizes, sizes), st.booleans(), quotes, st.sampled_from([1, WORTH_ASKING]))
def test_more_changes_never_turn_full_into_differential(
    evidence: Evidence, rows: tuple[int, int], grouped: bool, quote: Quote | None, least: int
) -> None:
    if choose_action(min(rows), evidence, grouped, least, quote).action is Action.FULL:
        assert choose_action(max(rows), evidence, grouped, least, quote).action is Action.FULL


@given(evidences, st.integers(0, WORTH_ASKING - 1), st.booleans())
def test_few_changes_are_always_differential(evidence: Evidence, delta_rows: int, grouped: bool) -> None:
    assert choose_action(delta_rows, evidence, grouped).action is Action.DIFFERENTIAL


@given(evidences, st.booleans())
def test_the_choice_switches_exactly_where_it_says(evidence: Evidence, grouped: bool) -> None:
    least = least_worth_asking(evidence)
    rows = expected(evidence, grouped).switch_rows(least)
    assert choose_action(rows, evidence, grouped, least).action is Action.FULL
    assert rows == least or choose_action(rows - 1, evidence, grouped, least).action is Action.DIFFERENTIAL


def test_few_changes_of_small_tables_leave_no_choice_unless_the_delta_is_long() -> None:
    assert least_worth_asking(Evidence(SMALL, 1)) == 1
    assert least_worth_asking(Evidence(SMALL - 1, 1), length=LONG - 1) == WORTH_ASKING
    assert least_worth_asking(Evidence(SMALL - 1, 1), length=LONG) == 1


def test_spark_is_asked_about_few_changes_after_a_slow_refresh_of_a_large_table() -> None:
    slow, quick = PastRefresh(False, 10, SLOW), PastRefresh(False, 10, SLOW / 2)
    whole = PastRefresh(True, 10, SLOW)
    assert least_worth_asking(Evidence(LARGE, 1, (whole, slow, quick)), spark=True) == 1
    assert least_worth_asking(Evidence(LARGE - 1, 1, (whole, slow, quick)), spark=True) == WORTH_ASKING
    assert least_worth_asking(Evidence(LARGE, 1, (whole, quick, slow)), spark=True) == WORTH_ASKING
    assert least_worth_asking(Evidence(LARGE, 1, (whole,)), spark=True) == WORTH_ASKING


def test_what_was_measured_for_about_as_many_changes_is_familiar() -> None:
    known = Evidence(SMALL, 1, (PastRefresh(False, 50, 1.0), PastRefresh(True, 2_000, 1.0)))
    assert {rows: is_unfamiliar(rows, known) for rows in (40, 50, 70, 2_000)} == {
        40: False,
        50: False,
        70: True,
        2_000: True,
    }
    assert not is_unfamiliar(70, replace(known, source_rows=SMALL - 1))


def test_a_slow_database_is_expected_to_take_longer_either_way() -> None:
    usual = Evidence(1_000_000, 250, quick=0.01)
    slow = replace(usual, quick=0.04)
    quote = Quote(10_000, 500.0, whole=10_000.0)
    costs, slower = expected(usual, True, quote), expected(slow, True, quote)
    assert slower.whole == pytest.approx(2 * costs.whole)
    assert slower.differential(50) == pytest.approx(2 * costs.differential(50))


def test_where_nothing_was_measured_the_lower_estimate_decides() -> None:
    """A margin favours the way that is known to be taken; at first there is none."""
    loaded, quote = Evidence(50_000, 1), Quote(18_000, whole=4_000.0)
    costs = expected(loaded, True, quote)
    assert costs.whole + GAIN < costs.differential(50) < MARGIN * costs.whole
    assert choose_action(50, loaded, True, least=1, quote=quote).action is Action.FULL
    taken = replace(loaded, refreshes=(PastRefresh(False, 50, costs.differential(50)),))
    assert choose_action(50, taken, True, least=1, quote=quote).action is Action.DIFFERENTIAL


@given(evidences, st.integers(WORTH_ASKING, 10**8), st.booleans())
def test_what_was_done_last_is_done_again_for_as_many_changes(evidence: Evidence, rows: int, grouped: bool) -> None:
    """Hysteresis: whatever the past, having refreshed one way never makes the other way likelier."""
    after = {
        whole: choose_action(rows, replace(evidence, refreshes=steered), grouped).action
        for whole in (False, True)
        if (steered := _ended(evidence, whole))
    }
    if after.get(False) is Action.FULL and True in after:
        assert after[True] is Action.FULL


def _ended(evidence: Evidence, whole: bool) -> tuple[PastRefresh, ...]:
    """Move the newest refresh of one kind to the front, which changes the order of the kinds only."""
    first = next((past for past in evidence.refreshes if past.whole is whole), None)
    return () if first is None else (first, *(past for past in evidence.refreshes if past is not first))


@given(st.integers(0, 2**32), st.floats(1e-6, 1e-4), st.floats(0.2, 60.0), st.floats(1.0, 1.12))
def test_sizes_that_alternate_around_the_break_even_do_not_make_it_flip_flop(
    seed: int, per_change: float, whole: float, spread: float
) -> None:
    """A world whose refreshes take what they take, give or take a tenth, in turns a bit below and above break-even."""
    rng = Random(seed)
    break_even = max(int((whole - 0.1) / per_change), WORTH_ASKING * 2)
    refreshes: tuple[PastRefresh, ...] = ()
    for number in range(60):
        rows = int(break_even * spread if number % 2 else break_even / spread)
        evidence = Evidence(1_000_000, 250, refreshes)
        chosen = choose_action(rows, evidence, True).action is Action.FULL
        taken = (whole if chosen else 0.1 + per_change * rows) * rng.uniform(0.95, 1.05)
        refreshes = (PastRefresh(chosen, rows, taken), *refreshes)
    turns = sum(one.whole is not other.whole for one, other in pairwise(refreshes))
    assert turns <= 3, [past.whole for past in reversed(refreshes)]


def test_a_bad_guess_is_corrected_at_the_next_refresh() -> None:
    slow, quick = PastRefresh(False, 50, 4.6), PastRefresh(True, 50, 0.1)
    past: tuple[PastRefresh, ...] = ()
    actions = []
    for _ in range(4):
        actions.append(choose_action(50, Evidence(100_000, 10, past), True, least=1).action.value)
        past = (slow if actions[-1] == "DIFFERENTIAL" else quick, *past)
    assert actions == ["DIFFERENTIAL", "FULL", "FULL", "FULL"]


@pytest.mark.parametrize("quick_is_whole", [False, True])
def test_what_became_slower_is_noticed_at_the_second_time_and_what_was_so_once_is_not(quick_is_whole: bool) -> None:
    """PostgreSQL may plan a delta as it never did before; a single refresh may have waited for something."""
    quick, slow = PastRefresh(quick_is_whole, 50_000, 1.0), PastRefresh(quick_is_whole, 50_000, 4.0)
    other = PastRefresh(not quick_is_whole, 50_000, 2.0)
    kept, left = (Action.FULL, Action.DIFFERENTIAL) if quick_is_whole else (Action.DIFFERENTIAL, Action.FULL)
    for times, action in ((1, kept), (2, left)):
        past = (slow,) * times + (quick,) * 5 + (other,) * 2
        assert choose_action(50_000, Evidence(5_000_000, 250, past), True).action is action


def test_a_single_slow_refresh_is_doubted_after_a_while_and_two_are_not() -> None:
    slow, whole = PastRefresh(False, 50, 60.0), PastRefresh(True, 50, 0.5)
    sizes = (5_000_000, 250)
    for times, single in ((PATIENCE - 1, Action.FULL), (PATIENCE, Action.DIFFERENTIAL)):
        for slow_ones, action in ((1, single), (2, Action.FULL)):
            past = (whole,) * times + (slow,) * slow_ones
            assert choose_action(50, Evidence(*sizes, past), True, least=1).action is action


def test_one_slow_refresh_of_spark_changes_nothing_and_two_do() -> None:
    slow = PastRefresh(False, 50_000, 60.0, spark=True)
    sizes = (5_000_000, 250)
    assert choose_action(50_000, Evidence(*sizes, (slow,)), True).action is Action.DIFFERENTIAL
    assert choose_action(50_000, Evidence(*sizes, (slow, slow)), True).action is Action.FULL


def test_what_many_changes_took_says_nothing_bad_of_few() -> None:
    evidence = Evidence(5_000_000, 250, (PastRefresh(False, 100_000, 60.0),) * 2, first_load=0.5)
    assert choose_action(100_000, evidence, True, least=1).action is Action.FULL
    for rows, action in ((50, Action.DIFFERENTIAL), (20_000, Action.FULL)):
        assert choose_action(rows, evidence, True, least=1).action is action


def test_what_few_changes_took_says_nothing_good_of_many() -> None:
    quick = Evidence(5_000_000, 250, (PastRefresh(False, 10, 0.002),) * 5)
    assert expected(quick, True).differential(10) < 0.004
    for rows in (10_000, 1_000_000):
        unlearned = expected(replace(quick, refreshes=()), True)
        assert expected(quick, True).differential(rows) == unlearned.differential(rows)
    slow = replace(quick, refreshes=(PastRefresh(False, 10, 30.0),) * 2)
    assert choose_action(10, slow, True, least=1).action is Action.FULL
    assert choose_action(1_000_000, slow, True).action is Action.FULL


def test_what_changes_took_tells_of_some_more_by_how_they_grew() -> None:
    """At 4 us for each change 30,000 would take 140 ms; those that were measured took 1 us."""
    evidence = Evidence(5_000_000, 1, (PastRefresh(False, 8_192, 0.018), PastRefresh(False, 512, 0.0105)))
    assert expected(evidence, False).differential(32_768) == pytest.approx(0.0426, rel=0.02)
    once = replace(evidence, refreshes=evidence.refreshes[:1])
    assert expected(once, False).differential(32_768) == pytest.approx(0.042, rel=0.02)
    steep = replace(evidence, refreshes=(PastRefresh(False, 8_192, 0.4), PastRefresh(False, 512, 0.01)))
    assert expected(steep, False).differential(32_768) > 1.2
    flat = replace(evidence, refreshes=(PastRefresh(False, 8_192, 0.01), PastRefresh(False, 512, 0.01)))
    assert expected(flat, False).differential(32_768) > 0.019, "more changes always take longer"
    # A short whole refresh is not left for what may come of it: there is too little to gain.
    short = replace(evidence, source_rows=100_000)
    assert expected(short, False).differential(32_768) == pytest.approx(sqrt(0.14 * 0.0426), rel=0.02)


def test_the_margin_holds_for_as_many_changes_as_were_measured_and_for_fewer() -> None:
    deltas = (PastRefresh(False, 500, 1.0),) * 2
    whole = expected(Evidence(1_000_000, 1, deltas), False).differential(2_000) / 1.15
    known = Evidence(1_000_000, 1, (*deltas, *(PastRefresh(True, 500, whole),) * 2))
    for rows, action in ((500, Action.DIFFERENTIAL), (2_000, Action.FULL)):
        assert choose_action(rows, known, False, least=1).action is action
    measured = replace(known, refreshes=(*(PastRefresh(False, 2_000, 1.15 * whole),) * 2, *known.refreshes))
    assert choose_action(2_000, measured, False, least=1).action is Action.DIFFERENTIAL


def test_what_was_measured_once_is_expected_again() -> None:
    """Of about as many changes: what a class of sizes took is not blurred by the others."""
    taken = {30: 0.5, 4_000: 0.6, 300_000: 9.0}
    refreshes = tuple(PastRefresh(False, rows, seconds) for rows, seconds in taken.items() for _ in range(3))
    costs = expected(Evidence(5_000_000, 250, refreshes), True)
    assert {rows: pytest.approx(costs.differential(rows)) for rows in taken} == taken


def test_a_whole_refresh_that_took_long_is_not_chosen_again() -> None:
    long = PastRefresh(True, 1_000_000, 100.0)
    assert choose_action(1_000_000, Evidence(5_000_000, 250), True).action is Action.FULL
    chosen = choose_action(1_000_000, Evidence(5_000_000, 250, (long,)), True)
    assert chosen.action is Action.DIFFERENTIAL
    assert chosen.reason == "1000000 changed rows: a differential refresh is expected to take 4.0 s, a whole one 99.9 s"


def test_a_slow_way_is_left_for_a_trial_and_for_good_where_that_pays() -> None:
    """A whole refresh that takes a quarter of the default, or nothing less, beside differential ones of 1 s."""
    sizes, slow = (5_000_000, 250), PastRefresh(False, 1_000, 1.0)
    assert expected(Evidence(*sizes), True).whole > 2
    assert choose_action(1_000, Evidence(*sizes, (slow, slow)), True, least=1).action is Action.FULL
    for taken, action in ((0.5, Action.FULL), (0.9, Action.DIFFERENTIAL), (2.0, Action.DIFFERENTIAL)):
        tried = Evidence(*sizes, (PastRefresh(True, 1_000, taken), slow, slow))
        assert choose_action(1_000, tried, True, least=1).action is action
    endless = Evidence(*sizes, (slow, slow), first_load=600.0)
    assert choose_action(1_000, endless, True, least=1).action is Action.DIFFERENTIAL


def test_what_differential_refreshes_do_as_quickly_as_by_default_is_not_tried_whole() -> None:
    usual = PastRefresh(False, 100_000, expected(Evidence(5_000_000, 250), True).differential(100_000))
    assert choose_action(100_000, Evidence(5_000_000, 250, (usual,) * 5), True).action is Action.DIFFERENTIAL
    slower = replace(usual, seconds=usual.seconds * 2)
    assert choose_action(100_000, Evidence(5_000_000, 250, (slower,) * 5), True).action is Action.FULL


@pytest.mark.parametrize(
    ("ways", "factor"), [("WW", 1 / MARGIN), ("WDW", 1 / MARGIN), ("DWW", MARGIN), ("WDD", MARGIN), ("DD", 1.0)]
)
def test_the_margin_favours_the_way_of_the_last_refresh_unless_it_was_a_trial(ways: str, factor: float) -> None:
    few, many = WORTH_ASKING - 1, WORTH_ASKING
    costs = expected(Evidence(1, 1, (PastRefresh(False, few, 1.0), *_gone(ways, many))), False)
    assert costs.factor(many) == factor
    assert costs.factor(few) == (MARGIN if "W" in ways else 1.0), "a whole refresh is tried once if it may be as quick"
    small = expected(Evidence(1, 1, _gone(ways, few)), False)
    assert small.factor(few) == small.factor(many) == factor


def _gone(ways: str, rows: int) -> tuple[PastRefresh, ...]:
    return tuple(PastRefresh(way == "W", rows, 1.0) for way in ways)
