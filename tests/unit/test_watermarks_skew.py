"""Skews and histories of watermarks: percentiles, recommendations, losses."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytrickle.catalog.reports import HistoryEntry
from pytrickle.errors import InvalidArgument, TooFewObservations
from pytrickle.watermarks import (
    INFINITY,
    Distribution,
    Loss,
    SkewAnalyzer,
    Subject,
    advise,
    spreads,
    waits,
)
from tests.unit.moments import NOON, SetClock, noon, seconds

SECOND = 1_000_000


def analyzer(*skews: float, window: int = 10_000) -> SkewAnalyzer:
    found = SkewAnalyzer(window)
    for skew in skews:
        found.record(NOON, noon(skew))
    return found


@pytest.mark.parametrize(
    ("count", "percent", "index"),
    [
        *((1, 50, 0), (1, 99.9, 0), (2, 50, 0), (3, 50, 1), (10, 95, 9), (20, 95, 18), (100, 99, 98), (100, 99.9, 99)),
        *((1_000, 99.9, 998), (1_000, 99.5, 994), (10_000, 99.9, 9_989)),
    ],
)
def test_a_percentile_is_the_value_of_the_nearest_rank(count: int, percent: float, index: int) -> None:
    found = Distribution.of((value * SECOND, 1) for value in range(count))
    assert found.percentile(percent) == seconds(index)


def test_floating_point_would_take_the_greatest_of_a_thousand_for_their_99_9th_percentile() -> None:
    assert math.ceil(99.9 / 100 * 1_000) - 1 == 999


@given(st.lists(st.integers(-50, 50), min_size=1), st.sampled_from([50, 75, 90, 95, 99, 99.5, 99.9]))
def test_no_more_than_the_rest_exceed_a_percentile(values: list[int], percent: float) -> None:
    found = Distribution.of((value, 1) for value in values)
    chosen = found.percentile(percent)
    assert found.share_above(chosen) <= 1 - percent / 100 + 1e-12
    lower = [timedelta(microseconds=value) for value in values if timedelta(microseconds=value) < chosen]
    assert all(found.share_above(value) > 1 - percent / 100 - 1e-12 for value in lower)


def test_weights_are_so_many_values() -> None:
    weighted = Distribution.of([(1, 3), (2, 1), (2, 4), (9, 2), (5, 0)])
    assert (weighted.lengths, weighted.cumulated, weighted.observations) == ((1, 2, 9), (3, 8, 10), 5)
    assert weighted.percentile(75).microseconds == 2
    assert weighted.share_above(seconds(2 / SECOND)) == 0.2


@pytest.mark.parametrize("percent", [0, 100, -1, 101])
def test_there_is_no_percentile_beyond_the_values(percent: float) -> None:
    with pytest.raises(InvalidArgument, match="between 0 and 100"):
        Distribution.of([(1, 1)]).percentile(percent)


def test_the_recommendations_for_a_thousand_rows() -> None:
    advice = analyzer(*range(1, 1_001)).advise("clicks")
    assert (advice.name, advice.subject, advice.observations) == ("clicks", Subject.LATENESS, 1_000)
    assert advice.percentiles == tuple(
        (percent, seconds(value))
        for percent, value in ((50, 500), (75, 750), (90, 900), (95, 950), (99, 990), (99.5, 995), (99.9, 999))
    )
    chosen = {one.name: (one.delay, one.late_share) for one in advice.recommendations}
    assert chosen == {
        "conservative": (seconds(999), 0.001),
        "balanced": (seconds(990), 0.01),
        "aggressive": (seconds(950), 0.05),
    }
    assert advice.cheapest is None


def test_rows_from_clocks_that_are_ahead_recommend_no_negative_delay() -> None:
    advice = analyzer(*[-60] * 10).advise()
    assert {(one.delay, one.late_share) for one in advice.recommendations} == {(seconds(0), 0.0)}
    assert advice.percentiles[0] == (50, seconds(-60))


def test_the_loss_weighs_late_rows_against_waiting() -> None:
    loss = Loss(alpha=100, beta=1)
    advice = analyzer(*[1] * 90, *[5] * 9, 1_000).advise(loss=loss)
    balanced = advice.recommendations[1]
    assert (balanced.delay, balanced.loss) == (seconds(5), pytest.approx(100 * 0.01 + 5))
    assert advice.cheapest is not None
    assert (advice.cheapest.delay, advice.cheapest.loss) == (seconds(5), pytest.approx(6))
    hasty, patient = (analyzer(*[1] * 90, *[5] * 9, 1_000).advise(loss=Loss(*one)) for one in ((1, 1), (10**6, 1)))
    assert hasty.cheapest and patient.cheapest
    assert (hasty.cheapest.delay, patient.cheapest.delay) == (seconds(0), seconds(1_000))
    assert (hasty.cheapest.late_share, patient.cheapest.late_share) == (1.0, 0.0)


@given(
    st.lists(st.integers(-20, 100), min_size=1, max_size=30),
    st.integers(0, 100),
    st.integers(0, 3),
    st.integers(0, 120),
)
def test_no_delay_costs_less_than_the_cheapest(skews: list[int], alpha: int, beta: int, delay: int) -> None:
    found = Distribution.of((skew * SECOND, 1) for skew in skews)
    loss = Loss(alpha, beta)
    cheapest = advise("rows", Subject.LATENESS, found, loss).cheapest
    assert cheapest is not None and cheapest.loss is not None
    assert cheapest.loss <= loss.of(found.share_above(seconds(delay)), seconds(delay)) + 1e-9


def test_negative_weights_of_a_loss_are_an_error() -> None:
    with pytest.raises(InvalidArgument):
        Loss(-1, 0)


def test_bars_hold_all_rows_and_end_where_the_rows_do() -> None:
    bars = analyzer(-3, 0, 0.5, 1.5, 1.5, 90, 86_400 * 60).distribution().bars()
    assert sum(bar.share for bar in bars) == pytest.approx(1)
    assert (bars[0].above, bars[0].up_to, bars[0].share) == (None, seconds(0), 2 / 7)
    assert (bars[-1].above, bars[-1].up_to, bars[-1].share) == (seconds(86_400 * 30), None, 1 / 7)
    assert {bar.share for bar in bars if bar.up_to == seconds(2)} == {2 / 7}
    assert [(bar.above, bar.up_to) for bar in analyzer(1.5).distribution().bars()] == [(seconds(1), seconds(2))]


def test_an_analyzer_keeps_the_latest_rows_of_single_ones_and_of_columns() -> None:
    assert analyzer(*range(20), window=5).distribution().lengths == tuple(one * SECOND for one in range(15, 20))
    moments = np.datetime64("2026-03-02T12:00:00", "us") + np.arange(20) * np.timedelta64(1, "s")
    single, column = SkewAnalyzer(5), SkewAnalyzer(5)
    for second in range(20):
        single.record(noon(second), noon(100 - second))
    column.record_batch(moments[:3], moments[0] + (moments[0] - moments[:3]) + np.timedelta64(100, "s"))
    column.record_batch(moments[3:], moments[0] + (moments[0] - moments[3:]) + np.timedelta64(100, "s"))
    assert column.distribution() == single.distribution()
    column.record_batch(moments[-5:], noon(19))
    assert column.distribution().lengths == tuple(one * SECOND for one in range(5))


def test_rows_without_an_event_time_are_not_measured() -> None:
    found = SkewAnalyzer(clock=SetClock(noon(7)))
    found.record(None)
    found.record(INFINITY)
    found.record_batch(np.array(["NaT"], "datetime64[us]"))
    with pytest.raises(TooFewObservations):
        found.advise()
    found.record(NOON)
    found.record_batch(np.array(["2026-03-02T12:00:01", "NaT"], "datetime64[us]"))
    assert found.distribution().lengths == (6 * SECOND, 7 * SECOND)


def test_an_analyzer_without_a_window_is_an_error() -> None:
    with pytest.raises(InvalidArgument, match="window"):
        SkewAnalyzer(0)


def history(*advances: tuple[float | datetime, float]) -> list[HistoryEntry]:
    """Return entries of (watermark, advanced at), newest first as the catalog does."""
    moments = [(one if isinstance(one, datetime) else noon(one), noon(at)) for one, at in advances]
    return [HistoryEntry(watermark, at, "loader", None) for watermark, at in reversed(moments)]


def test_one_waits_for_a_source_from_its_last_watermark_to_its_next_advance() -> None:
    hourly = history((0, 60), (3_600, 3_660), (7_200, 7_500), (INFINITY, 9_000))
    found = waits("orders", hourly)
    assert (found.lengths, found.observations) == ((3_660 * SECOND, 3_900 * SECOND), 2)
    with pytest.raises(TooFewObservations, match="orders was advanced less than twice"):
        waits("orders", hourly[2:][1:])


def test_the_spread_of_a_group_counts_for_as_long_as_it_lasts() -> None:
    found = spreads(
        "pipeline",
        {
            "orders": history((0, 0), (300, 300), (600, 600)),
            "lines": history((0, 30), (300, 310), (600, 690)),
        },
    )
    # from 30 s on: equal 270 s, 300 s apart for 10 s, equal 290 s, 300 s apart for 90 s
    assert (found.lengths, found.cumulated) == ((0, 300 * SECOND), (560 * SECOND, 660 * SECOND))
    assert found.share_above(seconds(0)) == pytest.approx(100 / 660)
    advice = advise("pipeline", Subject.TOLERANCE, found)
    assert [one.delay for one in advice.recommendations] == [seconds(300)] * 3
    assert advice.percentiles[1] == (75, seconds(0))


def test_an_exhausted_source_agrees_with_all() -> None:
    found = spreads("g", {"a": history((0, 0), (INFINITY, 10)), "b": history((5, 0), (100, 20), (200, 60))})
    assert (found.lengths, found.cumulated) == ((0, 5 * SECOND), (50 * SECOND, 60 * SECOND))


@pytest.mark.parametrize(
    "sources",
    [
        {"a": history((0, 0), (1, 1))},
        {"a": history((0, 0), (1, 1)), "b": []},
        {"a": history((0, 0), (1, 1)), "b": history((INFINITY, 0))},
        {"a": history((0, 0)), "b": history((0, 9))},
    ],
)
def test_a_group_without_a_common_history_has_no_spread(sources: dict[str, list[HistoryEntry]]) -> None:
    with pytest.raises(TooFewObservations):
        spreads("g", sources)


def test_numbers_of_batches_are_no_times_to_measure() -> None:
    batches = [HistoryEntry(None, advance.advanced_at, "loader", None, 7) for advance in history((0, 0), (100, 20))]
    with pytest.raises(InvalidArgument, match="orders goes by batch numbers"):
        waits("orders", batches)
    with pytest.raises(InvalidArgument, match="orders goes by batch numbers"):
        spreads("g", {"lines": history((0, 0), (100, 20)), "orders": batches})
