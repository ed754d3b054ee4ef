"""One value says all that is decided about a refresh: whole or delta, who joins, aggregates, reads and stages."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytrickle.catalog.definition import Evidence, PastRefresh
from pytrickle.plan.apply_plan import Action, Stage
from pytrickle.plan.limits import Limits, Means
from pytrickle.plan.missing_index import MissingIndex
from pytrickle.plan.placement import (
    BULK_ROWS,
    Place,
    Standing,
    Terms,
    Way,
    choose_way,
    delta_way,
    place_delta,
    place_whole,
)

LIMITS = Limits(small=100, direct=1_000)
STANDING = Standing(True, None, "AUTO", "update", None, grouped=True, delta_rows=5)
INDEXED = Terms(buffers_only=False, missing=(), for_all_keys=False, spark_can=True)
LACKING = replace(INDEXED, missing=(MissingIndex("public.t", "id"),))
SLOW = tuple(PastRefresh(False, 50_000, 60.0) for _ in range(5))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, Way(Action.DIFFERENTIAL, "5 changed rows")),
        ({"populated": False}, Way(Action.FULL, "first load")),
        ({"reinitialize_reason": "it drifted"}, Way(Action.REINITIALIZE, "it drifted")),
        ({"refresh_mode": "FULL"}, Way(Action.FULL, "refresh_mode is FULL")),
        ({"output_mode": "complete"}, Way(Action.FULL, "output_mode is complete")),
        ({"full_reason": "now()"}, Way(Action.FULL, "no delta rule: now()")),
    ],
)
def test_the_row_of_a_stream_table_may_leave_no_choice(changes: dict[str, object], expected: Way) -> None:
    assert choose_way(replace(STANDING, **changes), None) == expected  # type: ignore[arg-type]


def test_auto_computes_the_whole_where_deltas_were_slow() -> None:
    many = replace(STANDING, delta_rows=50_000)
    assert many.has_choice
    chosen = choose_way(many, Evidence(100_000, 10, SLOW))
    assert (chosen.action, chosen.stored_rows) == (Action.FULL, 10)
    assert choose_way(many, None).action is Action.DIFFERENTIAL


def test_only_a_populated_table_in_mode_auto_leaves_a_choice() -> None:
    assert STANDING.has_choice
    without = ({"refresh_mode": "DIFFERENTIAL"}, {"populated": False}, {"reinitialize_reason": "it drifted"})
    assert not any(replace(STANDING, **changes).has_choice for changes in without)  # type: ignore[arg-type]
    assert not replace(STANDING, delta_rows=0).has_choice


@pytest.mark.parametrize(
    ("terms", "delta_rows", "place", "stage"),
    [
        (INDEXED, 100, Place.INDEX, Stage.INCREMENTS),
        (LACKING, 100, Place.POSTGRES, Stage.INCREMENTS),
        (INDEXED, 101, Place.SPARK, Stage.INPUT),
        (replace(INDEXED, spark_can=False), 101, Place.POSTGRES, Stage.INCREMENTS),
        (replace(INDEXED, for_all_keys=True), 100, Place.POSTGRES, Stage.INCREMENTS),
        (replace(INDEXED, buffers_only=True), 101, Place.INDEX, Stage.INCREMENTS),
    ],
)
def test_the_write_transaction_aggregates_what_spark_joins(
    terms: Terms, delta_rows: int, place: Place, stage: Stage
) -> None:
    placed = place_delta(delta_way(delta_rows), terms, True, delta_rows, LIMITS)
    assert (placed.place, placed.stage) == (place, stage)
    assert placed.direct == (place is not Place.SPARK)
    assert place_delta(delta_way(delta_rows), terms, False, delta_rows, LIMITS).stage is Stage.CHANGES


def test_many_rows_go_by_way_of_a_staging_table() -> None:
    placed = place_delta(delta_way(BULK_ROWS + 1), INDEXED, True, BULK_ROWS + 1, LIMITS)
    assert (placed.place, placed.direct, placed.staging_table) == (Place.SPARK, False, True)
    first_load = place_whole(Way(Action.FULL, "first load"), Stage.CONTENT, BULK_ROWS + 1, LIMITS)
    assert (first_load.direct, first_load.staging_table) == (False, True)


@pytest.mark.parametrize("means", [Means.NO_STAGING_TABLE, Means.POSTGRES])
def test_what_finds_no_staging_table_is_left_to_postgres(means: Means) -> None:
    limits = replace(LIMITS, means=means)
    placed = place_delta(delta_way(BULK_ROWS + 1), INDEXED, True, BULK_ROWS + 1, limits)
    assert (placed.place, placed.stage, placed.direct, placed.staging_table) == (
        Place.INDEX,
        Stage.INCREMENTS,
        True,
        False,
    )
    whole = place_whole(Way(Action.FULL, "first load"), Stage.STATE, BULK_ROWS + 1, limits)
    assert (whole.direct, whole.staging_table) == (True, False)


def test_within_a_unit_spark_joins_what_needs_no_staging_table() -> None:
    limits = replace(LIMITS, means=Means.NO_STAGING_TABLE)
    assert place_delta(delta_way(101), INDEXED, True, 101, limits).place is Place.SPARK


def test_the_refresher_reads_a_whole_of_few_rows_itself() -> None:
    assert place_whole(Way(Action.FULL, "", stored_rows=10), Stage.CONTENT, 5_000, LIMITS).direct
    assert place_whole(Way(Action.FULL, "first load"), Stage.CONTENT, LIMITS.direct, LIMITS).direct
    assert not place_whole(Way(Action.FULL, "first load"), Stage.CONTENT, 5_000, LIMITS).direct


def test_the_refresher_reads_groups_itself_however_many_rows_they_are_made_of() -> None:
    placed = place_whole(Way(Action.FULL, "first load"), Stage.STATE, BULK_ROWS + 1, LIMITS)
    assert (placed.direct, placed.staging_table) == (True, False)
    assert not place_whole(Way(Action.FULL, "first load"), Stage.STATE, 5_000, replace(LIMITS, direct=0)).direct


def test_the_reason_of_the_engine_names_the_number_that_decided() -> None:
    stored = place_whole(Way(Action.FULL, "", stored_rows=0), Stage.CONTENT, 5_000, LIMITS)
    assert (stored.direct, stored.engine_reason) == (True, "0 rows, at most 1,000")
    many = place_whole(Way(Action.FULL, "first load"), Stage.CONTENT, 5_000, LIMITS)
    assert (many.direct, many.engine_reason) == (False, "5,000 rows, more than 1,000")
    assert place_delta(delta_way(10), INDEXED, False, 10, LIMITS).engine_reason == "10 rows, at most 1,000"
    joined = place_delta(delta_way(500), INDEXED, False, 500, LIMITS)
    assert (joined.place, joined.engine_reason) == (Place.SPARK, "500 changed rows, more than 100")
