"""The sink in both its forms: every row once, and the watermark with it, whatever fails at whatever step."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql.functions import col, lit, raise_error, when

from tests.conftest import Database
from tests.repeats import first
from tests.spark.streams import FORMS, LATENESS, PER_FILE, TABLE, Stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STAGED = "SELECT count(*) FROM pg_class WHERE relnamespace = 'pgtrickle_sinks'::regnamespace AND relname ~ '^sink_'"
DIE = "PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(60)"
# As a crash of PostgreSQL empties unlogged tables: after the tasks are done, before anything reads what they staged.
LOSE = """CREATE OR REPLACE FUNCTION pgtrickle.watermark_of(source regclass) RETURNS timestamptz
    LANGUAGE plpgsql SECURITY DEFINER AS $$
    DECLARE staging regclass;
    BEGIN
        FOR staging IN SELECT oid FROM pg_class WHERE relname ~ '^sink_[0-9]+_[0-9a-f]+$' LOOP
            EXECUTE 'TRUNCATE ' || staging;
        END LOOP;
        RETURN NULL;
    END $$"""
# What goes wrong, where: a statement that a trigger runs within the transaction of the commit.
FAULTS = {
    "the batch is claimed": ("BEFORE UPDATE ON pgtrickle.pgt_sink_batches", DIE),
    "rows are moved": ("AFTER INSERT ON orders", DIE),
    "the watermark is advanced": ("AFTER INSERT ON pgtrickle.pgt_watermark_history", DIE),
    "the transaction is committed": ("AFTER INSERT ON orders DEFERRABLE INITIALLY DEFERRED", DIE),
}


@pytest.fixture
def orders(db: Database) -> Database:
    db.execute(TABLE)
    return db


@pytest.fixture
def stream(tmp_path: Path) -> Stream:
    return Stream(tmp_path)


@pytest.fixture
def small_batches(spark: SparkSession) -> Iterator[SparkSession]:
    """Rows reach a task in several batches, so that it fails with some of its rows sent."""
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "2")
    yield spark
    spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


def run(stream: Stream, db: Database, frame: DataFrame, form: str, lateness: timedelta | None = LATENESS) -> None:
    """Start the query from its checkpoint, as after a restart, and let it take what has arrived."""
    writer = stream.writer(frame, db.dsn, form, lateness)
    writer.trigger(availableNow=True).start().awaitTermination()


def arm(db: Database, moment: str, statement: str) -> None:
    kind = "CONSTRAINT TRIGGER" if "DEFERRABLE" in moment else "TRIGGER"
    each = "ROW" if "DEFERRABLE" in moment else "STATEMENT"
    db.execute(
        "CREATE OR REPLACE FUNCTION fault() RETURNS trigger LANGUAGE plpgsql AS $$"
        f" BEGIN {statement}; RETURN NULL; END $$"
    )
    db.execute(f"CREATE {kind} fault {moment} FOR EACH {each} EXECUTE FUNCTION fault()")


def disarm(db: Database) -> None:
    db.execute("DROP FUNCTION fault CASCADE")


@pytest.mark.parametrize("form", first(1, FORMS))
def test_every_row_once_whatever_fails(
    orders: Database, stream: Stream, small_batches: SparkSession, form: str
) -> None:
    stream.arrive(2)
    frame = stream.read(small_batches)
    run(stream, orders, frame.withWatermark("placed_at", "5 seconds"), form, lateness=None)
    assert stream.assert_promises_kept(orders, complete=True) == 2 * PER_FILE
    stream.arrive()
    broken = frame.withColumn("note", when(col("id") % 7 == 5, raise_error(lit("a fault"))).otherwise(col("note")))
    with pytest.raises(StreamingQueryException, match="a fault"):
        run(stream, orders, broken, form)
    orders.execute("ALTER TABLE orders RENAME TO elsewhere")
    with pytest.raises(StreamingQueryException, match='"orders" does not exist'):
        run(stream, orders, frame, form)
    orders.execute("ALTER TABLE elsewhere RENAME TO orders")
    for name, fault in FAULTS.items():
        arm(orders, *fault)
        with pytest.raises(StreamingQueryException, match="terminating connection"):
            run(stream, orders, frame, form)
        disarm(orders)
        assert stream.assert_promises_kept(orders) == 2 * PER_FILE, name
    kept = orders.value("SELECT pg_get_functiondef('pgtrickle.watermark_of(regclass)'::regprocedure)")
    orders.execute(LOSE)
    with pytest.raises(StreamingQueryException, match="are left"):
        run(stream, orders, frame, form)
    orders.execute(kept)
    assert stream.assert_promises_kept(orders) == 2 * PER_FILE
    run(stream, orders, frame, form)
    assert stream.assert_promises_kept(orders, complete=True) == 3 * PER_FILE
    stream.forget_commit(2)
    stream.arrive()
    run(stream, orders, frame, form)
    assert stream.assert_promises_kept(orders, complete=True) == 4 * PER_FILE
    assert orders.execute("SELECT sink_name, batch_id, query_id IS NOT NULL FROM pgtrickle.pgt_sink_batches") == [
        ("files", 3, True)
    ]
    assert orders.value(STAGED) == 0
