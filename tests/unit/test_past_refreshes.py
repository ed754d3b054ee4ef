"""What the history says about ways that were given up."""

from pytrickle.catalog.definition import PastRefresh
from pytrickle.catalog.past_refreshes import RENEWED, given_up

WHOLE, DELTA = PastRefresh(True, 100, 0.5), PastRefresh(False, 100, 0.5)
NONE = (None, None)


def test_the_newest_of_each_kind_counts_with_how_many_were_made_since() -> None:
    refreshes = (DELTA, WHOLE, WHOLE, PastRefresh(True, 100_000, 0.5))
    others = [(300.0, None), (100.0, None), (200.0, None), (400.0, 250.0)]
    assert list(given_up(refreshes[1:], others[1:])) == [
        (0, PastRefresh.given_up(False, 100, 0.1)),
        (2, PastRefresh(False, 100_000, 0.25)),
    ]
    # A delta of 100 rows was made since; the whole refresh that was given up then is older than none.
    assert list(given_up(refreshes, others)) == [
        (0, PastRefresh.given_up(True, 100, 0.3)),
        (3, PastRefresh(False, 100_000, 0.25)),
    ]


def test_what_was_made_since_is_known_and_what_is_long_ago_is_tried_again() -> None:
    assert list(given_up((WHOLE, DELTA), [NONE, (300.0, None)])) == []
    assert list(given_up((DELTA, WHOLE), [NONE, (100.0, None)])) == []
    assert len(list(given_up((WHOLE,) * RENEWED, [NONE] * (RENEWED - 1) + [(100.0, None)]))) == 1
    assert list(given_up((WHOLE,) * (RENEWED + 1), [NONE] * RENEWED + [(100.0, None)])) == []


def test_what_was_timed_later_counts_instead_of_what_was_given_up() -> None:
    assert list(given_up((WHOLE,) * 3, [NONE, (None, 120.0), (100.0, None)])) == [(1, PastRefresh(False, 100, 0.12))]
