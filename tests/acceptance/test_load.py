"""load: rows and watermark are committed together, through every connection that it takes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pandas as pd
import psycopg
import pyarrow as pa
import pytest
import sqlalchemy
from psycopg.rows import dict_row

from pytrickle.errors import InvalidArgument
from pytrickle.streaming import postgres_sink
from pytrickle.watermarks import Generator, Tracker, bounded_file, event_time, load, processing_time, punctuated
from tests.conftest import Database
from tests.unit.moments import NOON, SetClock, noon, seconds

ROWS = [(1, noon(3)), (2, noon(1))]
INSERT = "INSERT INTO orders VALUES (%s, %s)"
INFINITE = "SELECT watermark = 'infinity' FROM pgtrickle.watermarks()"


@pytest.fixture
def orders(db: Database) -> Database:
    """An empty table of orders with the time at which each was placed."""
    db.execute("CREATE TABLE orders (id int PRIMARY KEY, placed_at timestamptz)")
    return db


@pytest.fixture
def generator() -> Generator:
    return event_time(seconds(5), clock=SetClock(noon()))


@pytest.fixture
def engine(orders: Database) -> Iterator[sqlalchemy.Engine]:
    engine = sqlalchemy.create_engine(orders.dsn.replace("postgresql:", "postgresql+psycopg:"))
    yield engine
    engine.dispose()


def loaded(db: Database) -> set[int]:
    return {number for (number,) in db.execute("SELECT id FROM orders")}


def watermark(db: Database) -> datetime | None:
    return next(iter(at for (at,) in db.execute("SELECT watermark FROM pgtrickle.watermarks()")), None)


def state(generator: Generator) -> Any:
    """Return all that a generator knows."""
    return (generator.watermark, generator.candidate(NOON), generator.metrics(NOON), generator.is_idle(noon(30)))


@pytest.mark.parametrize("options", [{}, {"autocommit": False}, {"row_factory": dict_row}])
def test_psycopg_loads_and_advances(orders: Database, generator: Generator, options: dict[str, Any]) -> None:
    connection = orders.connect(**options)
    with load(connection, "orders", event_time=1, generator=generator) as loading:
        with connection.cursor().copy("COPY orders FROM STDIN") as copy:
            for row in loading.rows(ROWS):
                copy.write_row(row)
        assert loading.watermark is None
        assert (loaded(orders), watermark(orders), generator.watermark) == (set(), None, None)
    assert loaded(orders) == {1, 2}
    assert watermark(orders) == generator.watermark == loading.watermark == noon(-2)
    assert generator.metrics(NOON).rows == 2
    assert connection.info.transaction_status.name == "IDLE"


def test_sqlalchemy_loads_and_advances(orders: Database, engine: sqlalchemy.Engine, generator: Generator) -> None:
    rows = [{"id": number, "at": moment} for number, moment in ROWS]
    with (
        engine.connect() as connection,
        load(connection, "orders", event_time="at", generator=generator) as loading,
    ):
        insert = sqlalchemy.text("INSERT INTO orders VALUES (:id, :at)")
        connection.execute(insert, list(loading.rows(rows)))
        assert loaded(orders) == set()
    assert loaded(orders) == {1, 2}
    assert watermark(orders) == generator.watermark == noon(-2)


def test_pandas_loads_and_advances(orders: Database, engine: sqlalchemy.Engine, generator: Generator) -> None:
    frame = pd.DataFrame(ROWS, columns=["id", "placed_at"])
    frame["placed_at"] = frame["placed_at"].dt.tz_convert("Asia/Kathmandu")
    with (
        engine.connect() as connection,
        load(connection, "orders", event_time="placed_at", generator=generator) as loading,
    ):
        loading.frame(frame).to_sql("orders", connection, if_exists="append", index=False)
        assert loaded(orders) == set()
    assert loaded(orders) == {1, 2}
    assert watermark(orders) == generator.watermark == noon(-2)


def test_columns_of_arrow_are_observed(orders: Database, generator: Generator) -> None:
    table = pa.table({"placed_at": pa.array([noon(3), None], pa.timestamp("us", "UTC"))})
    with load(orders.connect(), "orders", event_time="placed_at", generator=generator) as loading:
        assert loading.frame(table) is table
    assert watermark(orders) == noon(-2)


def test_moments_without_a_zone_are_refused_for_the_session_would_place_them(
    orders: Database, generator: Generator
) -> None:
    frame = pd.DataFrame({"placed_at": [datetime(2026, 3, 2, 12)]})
    for given in (frame, frame.assign(placed_at=["2026-03-02 12:00Z"])):
        with (
            pytest.raises(InvalidArgument, match="time zone"),
            load(orders.connect(), "orders", event_time="placed_at", generator=generator) as loading,
        ):
            loading.frame(given)
    assert generator.metrics(NOON).rows == 0


@pytest.mark.parametrize("given", [Tracker, event_time, None])
def test_what_is_no_generator_is_refused_before_anything_is_done(orders: Database, given: Any) -> None:
    connection = orders.connect()
    for begin in (
        lambda: load(connection, "orders", generator=given).__enter__(),
        lambda: postgres_sink(orders.dsn, "orders", sink="s", generator=given or NOON),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidArgument, match=r"takes one generator, and .* is none") as refused:
            begin()
        assert "Tracker together with partition" in (refused.value.hint or "")
    assert connection.info.transaction_status.name == "IDLE"


ERRORS: dict[str, type[Exception] | None] = {
    "an error": ZeroDivisionError,
    "psycopg.Rollback": None,
    "a constraint": psycopg.errors.UniqueViolation,
    "the watermark": psycopg.errors.DataException,
    "the commit": psycopg.errors.ForeignKeyViolation,
}


def spoil(kind: str, session: psycopg.Connection[Any], orders: Database) -> None:
    """Make the load that is under way in a session fail in some way."""
    match kind:
        case "an error":
            raise ZeroDivisionError
        case "psycopg.Rollback":
            raise psycopg.Rollback
        case "a constraint":
            session.execute(INSERT, (9, noon()))
        case "the watermark":
            orders.execute("SELECT pgtrickle.advance_watermark('orders', %s)", noon(60))
        case _:
            session.execute("UPDATE orders SET parent = 77 WHERE id = 1")


@pytest.mark.parametrize("kind", ERRORS)
def test_a_failed_load_advances_nothing_and_leaves_the_generator_as_it_was(
    orders: Database, generator: Generator, kind: str
) -> None:
    orders.execute("ALTER TABLE orders ADD parent int REFERENCES orders DEFERRABLE INITIALLY DEFERRED")
    first = orders.connect()
    with load(first, "orders", event_time=1, generator=generator) as loading:
        first.cursor().executemany(INSERT, loading.rows([(9, noon(0))]))
    before, error = state(generator), ERRORS[kind]
    with (
        pytest.raises(error) if error else contextlib.nullcontext(),
        load(first, "orders", event_time=1, generator=generator) as loading,
    ):
        first.cursor().executemany(INSERT, loading.rows(ROWS))
        spoil(kind, first, orders)
    advanced = noon(60) if kind == "the watermark" else noon(-5)
    assert state(generator) == before
    assert (loaded(orders), watermark(orders)) == ({9}, advanced)
    generator.resume(watermark(orders))
    with load(first, "orders", event_time=1, generator=generator) as loading:
        first.cursor().executemany(INSERT, loading.rows(ROWS))
    assert (loaded(orders), watermark(orders)) == ({1, 2, 9}, max(advanced, noon(-2)))


def test_what_is_asserted_is_what_is_in_force_though_the_clock_goes_on(orders: Database) -> None:
    clock = SetClock()
    generator = processing_time(seconds(1), clock=clock)
    with load(orders.connect(), "orders", generator=generator):
        orders.execute("CREATE FUNCTION tick() RETURNS void LANGUAGE sql AS ''")
    clock.now = noon(10)
    assert watermark(orders) == generator.watermark == noon(-1)


def test_marks_and_the_end_of_a_source(orders: Database) -> None:
    connection = orders.connect()
    marked = punctuated(clock=SetClock())
    with load(connection, "orders", generator=marked):
        connection.execute(INSERT, (1, None))
    assert (loaded(orders), watermark(orders)) == ({1}, None), "nothing to assert, so only the rows"
    with load(connection, "orders", generator=marked) as loading:
        loading.generator.mark(noon(4))
    assert watermark(orders) == noon(4)
    file = bounded_file(start=noon(4), clock=SetClock())
    with load(connection, "orders", event_time=lambda row: row["when"], generator=file) as loading:
        assert [row["id"] for row in loading.rows([{"id": 1, "when": noon(5)}])] == [1]
        loading.generator.exhaust()
    assert orders.value(INFINITE)
    resumed = event_time(clock=SetClock())
    resumed.resume(file.watermark)
    with load(connection, "orders", generator=resumed):
        pass
    assert orders.value(INFINITE)


def test_a_transaction_that_the_load_would_not_see_end_is_refused(
    orders: Database, engine: sqlalchemy.Engine, generator: Generator
) -> None:
    busy = orders.connect()
    with (
        busy.transaction(),
        pytest.raises(InvalidArgument, match="open transaction"),
        load(busy, "orders", generator=generator),
    ):
        pass
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text("SELECT 1"))
        with pytest.raises(InvalidArgument, match="open transaction"), load(connection, "orders", generator=generator):
            pass
    with (
        engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection,
        pytest.raises(InvalidArgument, match="one transaction"),
        load(connection, "orders", event_time=1, generator=generator) as loading,
    ):
        connection.exec_driver_sql(INSERT, list(loading.rows(ROWS)))
    assert loaded(orders) == set()
    split = orders.connect()
    with (
        pytest.raises(InvalidArgument, match="one transaction"),
        load(split, "orders", event_time=1, generator=generator) as loading,
    ):
        list(loading.rows(ROWS))
        split.execute("COMMIT")
        split.execute("BEGIN")
    with pytest.raises(InvalidArgument, match="not a connection"), load(object(), "orders", generator=generator):
        pass
    assert (watermark(orders), generator.watermark) == (None, None)


def test_rows_need_to_know_where_their_event_time_is(orders: Database, generator: Generator) -> None:
    with (
        pytest.raises(InvalidArgument, match="not given"),
        load(orders.connect(), "orders", generator=generator) as loading,
    ):
        list(loading.rows(ROWS))
    with (
        pytest.raises(InvalidArgument, match="name a column"),
        load(orders.connect(), "orders", event_time=1, generator=generator) as loading,
    ):
        loading.frame(pd.DataFrame(ROWS))


def test_rows_of_an_attempt_that_failed_move_nothing(orders: Database, generator: Generator) -> None:
    connection = orders.connect()
    with load(connection, "orders", event_time=1, generator=generator) as loading:
        with (
            contextlib.suppress(psycopg.errors.UniqueViolation),
            connection.transaction(),
            loading.attempt(),
        ):
            connection.cursor().executemany(INSERT, loading.rows([(1, noon(3)), (1, noon(9))]))
        with connection.transaction(), loading.attempt():
            connection.cursor().executemany(INSERT, loading.rows(ROWS))
    assert (loaded(orders), watermark(orders)) == ({1, 2}, noon(-2))
    assert generator.metrics(NOON).rows == 2
