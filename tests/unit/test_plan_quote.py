"""AUTO where PostgreSQL's planner is asked, and where planning a delta takes its time."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytrickle.catalog.definition import Evidence, PastRefresh
from pytrickle.plan.apply_plan import Action
from pytrickle.plan.auto import choose_action, expected
from pytrickle.plan.quote import Quote

units = st.floats(0, 1e9)


@given(st.integers(0, 10**6), units, units, units, st.floats(0, 1e6))
def test_a_delta_that_costs_more_is_never_expected_to_take_less(
    length: int, cost: float, more: float, whole: float, seconds: float
) -> None:
    one, other = (Quote(length, delta, whole).of_delta(seconds) for delta in (cost, cost + more))
    assert 0 <= one <= other


def test_the_planner_is_asked_only_where_it_may_know_better() -> None:
    asked = expected(Evidence(1_000_000, 250), True, Quote(1_000))
    assert asked.whole > 0.4 and asked.is_worth_asking_about(50)
    quick = expected(Evidence(1_000_000, 250, first_load=0.019), True, Quote(1_000))
    assert not quick.is_worth_asking_about(50), "the whole takes a few milliseconds"
    long = expected(Evidence(1_000_000, 250), True, Quote(2_000_000))
    assert long.favours_whole(50) and not long.is_worth_asking_about(50), "planning takes longer than the whole"
    known = expected(Evidence(1_000_000, 250, (PastRefresh(False, 50, 0.3),)), True, Quote(1_000))
    assert not known.is_worth_asking_about(50), "it was measured"


def test_the_planner_decides_what_was_never_measured() -> None:
    loaded = Evidence(1_000_000, 250, first_load=1.0, loaded_by_spark=False)
    for delta, action in ((1e3, Action.DIFFERENTIAL), (1e7, Action.FULL)):
        chosen = choose_action(50, loaded, True, least=1, quote=Quote(5_000, delta, whole=1e5))
        assert (chosen.action, chosen.reason.endswith("by PostgreSQL's planner")) == (action, True)
    measured = replace(loaded, refreshes=(PastRefresh(False, 50, 0.01),))
    chosen = choose_action(50, measured, True, least=1, quote=Quote(5_000, 1e7, whole=1e5))
    assert (chosen.action, "planner" in chosen.reason) == (Action.DIFFERENTIAL, False)


def test_asking_about_a_delta_that_takes_as_long_to_plan_as_the_whole_takes_does_not_pay() -> None:
    whole = (PastRefresh(True, 50, 0.1),)
    loaded = Evidence(1_000_000, 1, whole, first_load=0.1, loaded_by_spark=False)
    for length, worth in ((60_000, True), (120_000, False)):
        costs = expected(loaded, True, Quote(length, whole=1e5, kept=True))
        assert not costs.favours_whole(50) and costs.is_worth_asking_about(50) is worth


@pytest.mark.parametrize(
    ("kept", "seconds", "share"), [(True, 0.05, (1, 1 / 2, 1 / 3)), (False, 0.05, (1, 1, 1)), (True, 0.5, (1 / 4,) * 3)]
)
def test_a_plan_that_is_kept_serves_as_many_refreshes_more_as_there_were(
    kept: bool, seconds: float, share: tuple[float, ...]
) -> None:
    """What comes for the first time may never come again; where the whole takes long, more is to be gained."""
    whole, quote = PastRefresh(True, 50, seconds), Quote(30_000, whole=seconds / 3e-6, kept=kept)
    unplanned = expected(Evidence(100_000, 1), True).differential(50)
    for times, part in enumerate(share):
        costs = expected(Evidence(100_000, 1, (whole,) * times), True, quote)
        assert costs.differential(50) == pytest.approx(unplanned + part * quote.planning)
    measured = Evidence(100_000, 1, (PastRefresh(False, 50, 0.02),))
    assert expected(measured, True, quote).differential(50) == pytest.approx(0.02)
    assert expected(measured, True, quote).differential(5_000) > unplanned + share[0] * quote.planning
