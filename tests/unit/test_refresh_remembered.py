"""What a process remembers of the past: read once, kept up with its own refreshes, and read again when that is due."""

from pytrickle.catalog.definition import Evidence, PastRefresh
from pytrickle.plan.quote import Quote
from pytrickle.refresh.remembered import KEPT, QUOTES, RENEWED, SLOW, Remembered, size_of

QUICK = SLOW / 2
A = frozenset({1})


class Database:
    """Counts how often it is asked."""

    def __init__(self, *refreshes: PastRefresh) -> None:
        self.refreshes, self.asked = refreshes, 0

    def read(self) -> Evidence:
        self.asked += 1
        return Evidence(1_000, 10, self.refreshes)


def test_the_database_is_asked_once_and_refreshes_are_added() -> None:
    database, past = Database(), Remembered()
    assert past.evidence(1, database.read).refreshes == ()
    past.add(1, PastRefresh(False, 5, QUICK), A)
    past.add(2, PastRefresh(False, 5, QUICK), A)
    assert past.evidence(1, database.read).refreshes == (PastRefresh(False, 5, QUICK),)
    assert (database.asked, set(past.evidences)) == (1, {1})


def test_the_database_is_asked_again_after_a_slow_refresh_a_load_and_many_refreshes() -> None:
    database, past = Database(), Remembered()
    for refresh in (PastRefresh(False, 5, SLOW), PastRefresh(True, 0, QUICK)):
        past.evidence(1, database.read)
        past.add(1, refresh, A)
    assert 1 not in past.evidences
    for _ in range(2 * RENEWED):
        past.evidence(1, database.read)
        past.add(1, PastRefresh(False, 5, QUICK), A)
    assert database.asked == 4


def test_only_the_newest_of_each_size_are_remembered() -> None:
    few, many = (tuple(PastRefresh(False, rows, number) for number in range(100)) for rows in (5, 5_000))
    known = Remembered().evidence(1, Database(*few, *many).read)
    assert known.refreshes == few[:KEPT] + many[:KEPT]


def test_what_changes_of_one_source_took_says_nothing_of_another() -> None:
    past = Remembered()
    known = Evidence(1_000, 10, (PastRefresh(False, 5, QUICK), PastRefresh(True, 5, QUICK)))
    both, dimension = frozenset({1, 2}), frozenset({3})
    assert past.about(7, known, dimension) == known, "nothing was measured by this process"
    past.add(7, PastRefresh(False, 5, QUICK), both)
    for changed in (A, both):
        assert past.about(7, known, changed) == known
    for changed in (dimension, both | dimension):
        assert past.about(7, known, changed).refreshes == (PastRefresh(True, 5, QUICK),)
    past.add(7, PastRefresh(True, 5, QUICK), dimension)
    assert past.about(7, known, dimension) != known, "it was not measured, but computed as a whole"
    past.add(7, PastRefresh(False, 5, QUICK), dimension)
    assert past.about(7, known, dimension) == known


def test_quotes_are_kept_for_a_shape_and_a_size_and_not_too_many() -> None:
    past, shape, other = Remembered(), object(), object()
    size = size_of(A, 5, 1_000)
    past.keep(7, shape, size, Quote(5))
    assert past.quote(7, shape, size_of(A, 7, 1_000)) == Quote(5)
    for unlike in (size_of(frozenset({1, 2}), 5, 1_000), size_of(A, 50, 1_000), size_of(A, 5, 9_000)):
        assert past.quote(7, shape, unlike) is None
    assert past.quote(7, other, size) is None
    for number in range(3 * QUOTES):
        past.keep(7, shape, (frozenset({number}), 1, 1), Quote(5))
    assert len(past.quotes[7][1]) <= QUOTES


def test_what_the_whole_costs_is_remembered_whatever_changed() -> None:
    past, shape = Remembered(), object()
    past.keep(7, shape, size_of(A, 5, 1_000), Quote(5))
    assert past.whole_cost(7, shape, 1_000) is None, "it was not asked"
    past.keep(7, shape, size_of(A, 50, 1_000), Quote(5, whole=3.0))
    assert past.whole_cost(7, shape, 1_001) == 3.0
    assert past.whole_cost(7, shape, 9_000) is None, "the sources have many more rows"
    assert past.whole_cost(7, object(), 1_000) is past.whole_cost(8, shape, 1_000) is None


def test_a_whole_refresh_that_was_given_up_is_so_whatever_changes_until_one_is_made() -> None:
    past, known, other = Remembered(), Evidence(1_000, 10, (PastRefresh(False, 5, QUICK),)), frozenset({2})
    past.give_up(7, False, 5, 0.1, other)
    past.give_up(7, True, 5, 0.2, A)
    past.give_up(7, True, 5_000, 0.4, A)
    assert [each.limit for each in past.about(7, known, frozenset({3})).refreshes] == [0.4, None]
    assert [each.limit for each in past.about(7, known, other).refreshes] == [0.1, 0.4, None]
    past.add(7, PastRefresh(True, 5, QUICK), A)
    assert [each.limit for each in past.about(7, known, other).refreshes] == [0.1, None]


def test_what_a_delta_would_have_taken_is_remembered_until_one_is_made() -> None:
    """It was timed only, and no refresh; a slow whole refresh has the history read anew."""
    past, whole, timed = Remembered(), PastRefresh(True, 5, 2 * SLOW), PastRefresh(False, 5, 0.5)
    known = Evidence(1_000, 10, (whole,))
    past.give_up(7, False, 5, 0.1, A)
    past.add(7, whole, A)
    assert past.is_due_again(7, A, 5)
    past.found_out(7, timed, A)
    for _ in range(2):
        assert past.about(7, known, A).refreshes == (timed, *known.refreshes)
        past.add(7, whole, A)
    assert not past.is_due_again(7, A, 5)
    past.add(7, PastRefresh(False, 5, QUICK), A)
    assert past.about(7, known, A).refreshes == known.refreshes


def test_what_other_processes_gave_up_holds_until_this_one_knows_better() -> None:
    """Which sources had changed then, nobody knows: it is taken for the same ones."""
    delta, whole = PastRefresh.given_up(False, 5, 0.1), PastRefresh.given_up(True, 5, 0.2)
    known = Evidence(1_000, 10, (PastRefresh(True, 5, QUICK),), given_up=(delta, whole), made_since=3)
    for learned in (
        lambda past: past.add(7, PastRefresh(False, 5, QUICK), A),
        lambda past: past.found_out(7, PastRefresh(False, 5, 0.5), A),
        lambda past: past.give_up(7, False, 5, 0.3, A),
    ):
        past = Remembered()
        past.evidence(7, lambda: known)
        assert past.about(7, known, A).refreshes == (delta, whole, *known.refreshes)
        assert past.is_due_again(7, A, 5) and not past.is_due_again(7, A, 5_000)
        learned(past)
        assert delta not in past.about(7, known, A).refreshes and whole in past.about(7, known, A).refreshes
        past.forget(7)
        past.evidence(7, lambda: known)
        assert delta not in past.about(7, known, A).refreshes
    past.add(7, PastRefresh(True, 5, QUICK), A)
    assert whole not in past.about(7, known, A).refreshes
