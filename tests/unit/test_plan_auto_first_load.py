"""What the first load tells AUTO of a whole refresh."""

from dataclasses import replace

import pytest

from pytrickle.catalog.definition import Evidence, PastRefresh
from pytrickle.plan.apply_plan import Action
from pytrickle.plan.auto import BEARABLE, MARGIN, STARTING, choose_action, expected
from pytrickle.plan.cost import PER_COMPARED_ROW, PER_STORED_GROUP
from pytrickle.plan.quote import Quote


def test_a_whole_refresh_that_may_be_quicker_is_tried_once_a_delta_was_measured() -> None:
    """The first load took 0.2 s, in which PostgreSQL's planner does not believe: 50 ms for a delta is too much then."""
    loaded, quote = Evidence(50_000, 1, first_load=0.2, loaded_by_spark=False), Quote(5_000, whole=1_000.0)
    assert choose_action(50, loaded, True, least=1, quote=quote).action is Action.DIFFERENTIAL
    delta = PastRefresh(False, 50, 0.05)
    tried = replace(loaded, refreshes=(delta,))
    assert choose_action(50, tried, True, least=1, quote=quote).action is Action.FULL
    for seconds, action in ((0.02, Action.FULL), (0.2, Action.DIFFERENTIAL)):
        after = replace(loaded, refreshes=(PastRefresh(True, 50, seconds), delta))
        assert choose_action(50, after, True, least=1, quote=quote).action is action


def test_a_first_load_of_fewer_rows_says_little() -> None:
    empty = Evidence(1_000_000, 250, first_load=0.05, loaded_by_spark=False)
    assert expected(empty, True).whole == 0.05
    assert expected(empty, True, Quote(0, 1.0, whole=1e6)).whole > 3
    loaded = expected(replace(empty, first_load=2.0), True, Quote(0, 1.0, whole=1e5)).whole
    assert 1.5 < loaded < 2.0


def test_a_whole_refresh_is_expected_to_take_no_longer_than_the_first_load_nor_much_less() -> None:
    by_default = Evidence(1_000_000, 60_000)
    assert expected(by_default, True).whole > 1.0
    assert choose_action(20_000, by_default, True).action is Action.DIFFERENTIAL
    for first_load, whole in ((0.2, 0.2), (STARTING, expected(by_default, True).whole), (STARTING + 60.0, 60.0)):
        assert expected(replace(by_default, first_load=first_load), True).whole == whole
    assert choose_action(20_000, replace(by_default, first_load=0.2), True).action is Action.FULL


def test_reading_takes_as_long_again_as_it_took_on_the_first_load() -> None:
    """Most of that load was planning it and filling the tables: 0.5 s of changes are too many, but 0.3 s are not."""
    loaded = Evidence(1_000_000, 20, first_load=2.0, loaded_by_spark=False, reading=0.3)
    assert expected(loaded, True, Quote(5_000, whole=15_000.0)).whole == pytest.approx(0.3, rel=0.1)
    for seconds, action in ((0.5, Action.FULL), (0.3, Action.DIFFERENTIAL)):
        past = replace(loaded, refreshes=(PastRefresh(False, 500, seconds),))
        assert choose_action(500, past, True, least=1, quote=Quote(whole=15_000.0)).action is action
    assert expected(replace(loaded, stored_rows=1_000_000), True).whole == 2.0, "not longer than the load itself"
    assert expected(loaded, True, Quote(whole=1e7)).whole > 10, "the sources were filled since"


def test_a_whole_refresh_that_was_never_made_is_tried_where_that_is_bearable() -> None:
    """The first load read for 0.3 s, perhaps from cold caches: PostgreSQL's planner expects 45 ms."""
    loaded, quote = Evidence(1_000_000, 20, first_load=2.0, loaded_by_spark=False, reading=0.3), Quote(whole=15_000.0)
    upper = expected(loaded, True, quote).whole
    for seconds, planner, action in (
        (upper / MARGIN, quote, Action.FULL),
        (upper / MARGIN - 2 * BEARABLE, quote, Action.DIFFERENTIAL),
        (upper / MARGIN, Quote(whole=100_000.0), Action.DIFFERENTIAL),
    ):
        once, twice = (replace(loaded, refreshes=(PastRefresh(False, 500, seconds),) * times) for times in (1, 2))
        assert choose_action(500, twice, True, least=1, quote=planner).action is action
        assert choose_action(500, once, True, least=1, quote=planner).action is Action.DIFFERENTIAL
    deltas = (PastRefresh(False, 500, upper / MARGIN),) * 2
    for seconds, action in ((0.4 * upper, Action.FULL), (upper, Action.DIFFERENTIAL)):
        tried = replace(loaded, refreshes=(PastRefresh(True, 500, seconds), *deltas))
        assert choose_action(500, tried, True, least=1, quote=quote).action is action
    fewer = replace(loaded, refreshes=(PastRefresh(False, 50, upper / 4),) * 2)
    unmeasured = choose_action(500, fewer, True, least=1, quote=replace(quote, delta=60_000.0))
    assert unmeasured.action is Action.DIFFERENTIAL, "of so many changes no delta was measured to compare it with"


def test_a_whole_refresh_is_tried_once_where_the_first_load_may_have_read_from_the_disk() -> None:
    """Whatever PostgreSQL's planner expects, and even if nobody asked it."""
    loaded = Evidence(1_000_000, 20, first_load=2.0, loaded_by_spark=False, reading=0.5)
    for quote in (Quote(whole=1e6), Quote()):
        for seconds, action in ((0.42, Action.DIFFERENTIAL), (0.49, Action.FULL)):
            past = replace(loaded, refreshes=(PastRefresh(False, 500, seconds),) * 2)
            assert choose_action(500, past, True, least=1, quote=quote).action is action
    tried = replace(loaded, refreshes=(PastRefresh(True, 500, 0.5), *(PastRefresh(False, 500, 0.49),) * 2))
    assert choose_action(500, tried, True, least=1).action is Action.DIFFERENTIAL


def test_a_whole_refresh_compares_the_groups_that_are_kept_beside_the_few_that_are_shown() -> None:
    loaded = Evidence(1_000_000, 20, first_load=5.0, loaded_by_spark=False, reading=0.15)
    few, some, many = (expected(replace(loaded, kept_rows=rows), True).whole for rows in (20, 15_000, 60_000))
    assert few < 0.2
    assert some == pytest.approx(few + 15_000 * PER_COMPARED_ROW, rel=0.01), "of few groups what differs is written"
    assert many == pytest.approx(few + 60_000 * PER_STORED_GROUP, rel=0.01)
