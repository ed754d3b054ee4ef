"""For how long a way is followed of which nobody knows what it takes, and when it is tried at all."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from pytrickle.catalog.definition import Evidence, PastRefresh
from pytrickle.plan.apply_plan import Action
from pytrickle.plan.auto import MARGIN, choose_action, expected
from pytrickle.plan.placement import Standing, Way, choose_way
from pytrickle.plan.quote import Quote
from pytrickle.plan.trial import AGAIN, PLANNING, SHARE, SOONER
from pytrickle.refresh.remembered import RENEWED, Remembered

ROWS = 5_000
WHOLE, DELTA = (PastRefresh(True, ROWS, 1.0),) * 2, (PastRefresh(False, ROWS, 0.3),) * 2
CHEAP, DEAR = Quote(whole=1e5, delta=1e3), Quote(whole=1e5, delta=1e7)


def standing(may_give_up: bool = True, spark: bool = False) -> Standing:
    return Standing(True, None, "AUTO", "update", None, False, ROWS, spark, may_give_up=may_give_up)


def evidence(refreshes: Sequence[PastRefresh] = (), load: float = 1.0, reading: float | None = 0.9) -> Evidence:
    return Evidence(1_000_000, 10, tuple(refreshes), load, False, reading=reading)


def way(evidence: Evidence, quote: Quote, stands: Standing | None = None) -> Way:
    return choose_way(stands or standing(), evidence, quote)


def test_changes_that_were_never_read_may_take_about_as_long_as_the_whole() -> None:
    found = way(evidence(), CHEAP)
    whole = expected(evidence(), False, CHEAP).whole
    assert found.action is Action.DIFFERENTIAL and "tried" not in found.reason
    assert found.most_seconds == pytest.approx(MARGIN * whole + PLANNING) and whole > 0.5


@pytest.mark.parametrize(
    ("known", "stands"),
    [
        (evidence(DELTA), standing()),
        (evidence(load=0.09, reading=0.05), standing()),
        (evidence(), standing(may_give_up=False)),
    ],
    ids=["known", "little to lose", "no other way"],
)
def test_otherwise_nothing_is_limited(known: Evidence, stands: Standing) -> None:
    found = way(known, CHEAP, stands)
    assert (found.action, found.most_seconds) == (Action.DIFFERENTIAL, None)


def test_what_spark_reads_is_not_limited() -> None:
    slow = [PastRefresh(False, 300, 1.0, spark=True)]
    assert way(evidence(slow), CHEAP, standing(spark=True)).most_seconds is None


def test_what_only_the_planner_holds_for_slow_is_tried_for_a_share_of_the_whole() -> None:
    found = way(evidence(WHOLE), DEAR)
    assert choose_action(ROWS, evidence(WHOLE), False, 1, DEAR).action is Action.FULL
    assert found.action is Action.DIFFERENTIAL and found.most_seconds == pytest.approx(SHARE * 1.0)
    assert "a whole refresh is expected to take 1.0 s" in found.reason and found.reason.endswith("is tried for 300 ms")
    untried = evidence((*WHOLE, PastRefresh(False, ROWS, 9.0)))
    assert way(untried, DEAR).action is Action.FULL and way(untried, DEAR).most_seconds is None
    assert way(evidence(WHOLE), DEAR, standing(may_give_up=False)).action is Action.FULL


@pytest.mark.parametrize("refreshes", [WHOLE[:1], ()], ids=["one whole refresh", "none"])
def test_it_is_tried_at_once_for_a_share_of_what_the_whole_takes(refreshes: Sequence[PastRefresh]) -> None:
    known = evidence(refreshes)
    found, costs = way(known, DEAR), expected(known, False, DEAR)
    assert costs.favours_whole(ROWS)
    assert found.action is Action.DIFFERENTIAL and found.most_seconds == pytest.approx(SHARE * costs.whole)


def test_it_is_not_tried_where_much_of_everything_has_changed() -> None:
    for rows, action in ((50_000, Action.DIFFERENTIAL), (50_001, Action.FULL)):
        stands = replace(standing(), delta_rows=rows)
        assert way(evidence(WHOLE), Quote(whole=1e5, delta=1e9), stands).action is action


def test_what_is_long_to_plan_is_tried_for_as_much_longer() -> None:
    found = way(evidence(WHOLE), replace(DEAR, length=90_000))
    assert found.action is Action.DIFFERENTIAL and found.most_seconds == pytest.approx(SHARE * 1.0 + 0.09)


@pytest.mark.parametrize(
    ("whole", "times", "length", "action"),
    [
        (0.05, 1.5, 5_000, Action.DIFFERENTIAL),
        (0.05, 2.5, 5_000, Action.FULL),
        (0.05, 1.5, 40_000, Action.FULL),
        (0.028, 1.5, 5_000, Action.FULL),
    ],
    ids=["nearly as quick", "slower", "long to plan", "too little to gain"],
)
def test_instead_of_a_short_whole_refresh_what_may_be_as_quick_is_tried(
    whole: float, times: float, length: int, action: Action
) -> None:
    known = evidence((PastRefresh(True, ROWS, whole),) * 2, load=whole, reading=whole / 2)
    plain = Quote(length=length, whole=1e3, delta=0.0)
    below = expected(known, False, plain).differential(ROWS)
    grown = next(
        replace(plain, delta=cost)
        for cost in range(1_000, 10_000_000, 1_000)
        if expected(known, False, replace(plain, delta=cost)).differential(ROWS) > times * whole
    )
    assert below < times * whole
    found = way(known, grown)
    assert (found.action, found.most_seconds is None) == (action, action is Action.FULL)
    assert action is Action.FULL or found.most_seconds == pytest.approx(SHARE * whole + 0.005)


def test_what_was_given_up_is_not_tried_again() -> None:
    given_up = PastRefresh(False, ROWS, 3.0, limit=0.3)
    found = way(evidence((given_up, *WHOLE)), DEAR)
    assert (found.action, found.most_seconds) == (Action.FULL, None)
    assert "a differential one more than 300 ms" in found.reason


def test_what_was_given_up_too_soon_is_tried_again_for_longer() -> None:
    given_up = PastRefresh(False, ROWS, 2.0, limit=SHARE / AGAIN)
    found = way(evidence((given_up, *WHOLE)), DEAR)
    assert found.action is Action.DIFFERENTIAL and found.most_seconds == pytest.approx(SHARE)


def test_a_whole_refresh_is_tried_where_the_planner_holds_it_for_far_quicker_than_changes_were() -> None:
    slow = (PastRefresh(False, ROWS, 0.5),) * 2
    quick = Quote(whole=1e3)
    cold = evidence(slow, load=9.0, reading=8.0)
    found = way(cold, quick)
    assert choose_action(ROWS, cold, False, 1, quick).action is Action.DIFFERENTIAL
    assert found.action is Action.FULL and found.most_seconds == pytest.approx(SHARE * 0.5)
    assert found.reason.endswith("is tried for 150 ms") and found.other_seconds is None
    given_up = PastRefresh(True, ROWS, 6.5, limit=0.65)
    again = way(evidence((given_up, *slow), load=9.0, reading=8.0), quick)
    assert (again.action, again.tries) == (Action.DIFFERENTIAL, False)
    assert "a whole one more than 650 ms" in again.reason


def test_a_whole_refresh_that_may_only_be_somewhat_quicker_is_timed_after_the_changes() -> None:
    """To try it before would delay them by more than it can gain."""
    slow = (PastRefresh(False, ROWS, 0.06),) * 2
    known, quick = replace(evidence(slow, reading=0.5), quick=0.001), Quote(whole=1e3)
    assert expected(known, False, quick).whole_may_be_quicker(ROWS)
    found = way(known, quick)
    assert (found.action, found.most_seconds) == (Action.DIFFERENTIAL, None)
    assert found.other_seconds == pytest.approx(0.06 / MARGIN)
    assert way(known, quick, standing(may_give_up=False)).other_seconds is None


def test_a_whole_refresh_that_was_given_up_is_timed_again_after_changes_that_take_longer() -> None:
    soon, later = PastRefresh(True, 4, 0.6, limit=0.06), PastRefresh(True, ROWS, 5.6, limit=0.56)
    slow = (PastRefresh(False, ROWS, 0.73),) * 2
    found = way(evidence((soon, *slow)), Quote())
    assert (found.action, found.other_seconds) == (Action.DIFFERENTIAL, pytest.approx(0.73 / MARGIN))
    assert "a whole one more than 60 ms" in found.reason
    again = way(evidence((later, *slow)), Quote())
    assert (again.action, again.tries) == (Action.DIFFERENTIAL, False)
    assert "a whole one more than 560 ms" in again.reason
    # A delta must not go on taking more than MARGIN times what may end soon after the limit.
    busy = replace(later, limit=0.73 / MARGIN / SOONER)
    assert way(evidence((busy, *slow)), Quote()).other_seconds is not None


def test_of_another_size_the_delta_is_still_tried() -> None:
    given_up = PastRefresh(False, 4, 3.0, limit=0.3)
    assert way(evidence((given_up, *WHOLE)), DEAR).action is Action.DIFFERENTIAL


def test_what_was_given_up_is_forgotten_after_a_hundred_refreshes() -> None:
    past, changed, known = Remembered(), frozenset({1}), evidence(WHOLE)
    past.give_up(7, False, ROWS, 0.3, changed)
    assert past.about(7, known, changed).refreshes[0].limit == 0.3
    assert past.about(7, known, frozenset({1, 2})).refreshes[0].limit == 0.3
    assert past.about(7, known, frozenset({2})) is known and past.about(8, known, changed) is known
    for _ in range(RENEWED - 1):
        past.add(7, WHOLE[0], changed)
    assert past.about(7, known, changed) is not known
    past.add(7, WHOLE[0], changed)
    assert past.about(7, known, changed) is known
