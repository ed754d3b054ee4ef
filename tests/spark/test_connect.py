"""Spark Connect: the engine needs nothing but the DataFrame API."""

from datetime import timedelta
from pathlib import Path

import pytest

from tests.conftest import Database
from tests.programs import printed_by
from tests.spark.streams import FORMS, LATENESS, PER_FILE, START, TABLE

pytestmark = pytest.mark.long

REFRESHES = Path(__file__).with_name("connect_session.py")
STREAMS = Path(__file__).with_name("connect_stream.py")


def test_refreshes_and_a_stream_run_on_spark_connect(db: Database, tmp_path: Path) -> None:
    db.execute("CREATE TABLE t (k int, v int)")
    db.execute("CREATE TABLE u (k int PRIMARY KEY, name text)")
    db.execute("INSERT INTO t VALUES (1, 1), (2, 2); INSERT INTO u VALUES (1, 'one'), (2, NULL)")
    db.execute(TABLE)
    assert printed_by(REFRESHES, db.dsn, str(tmp_path), FORMS[0]) == [
        "postgresql public.by_name DIFFERENTIAL True",
        "postgresql public.counted DIFFERENTIAL True",
        "postgresql public.joined DIFFERENTIAL True",
        "spark public.by_name DIFFERENTIAL True",
        "spark public.counted DIFFERENTIAL True",
        "spark public.joined DIFFERENTIAL True",
        str(2 * PER_FILE),
        "pyspark.sql.connect.session",
    ]
    assert_streamed(db, FORMS[0])


@pytest.mark.soak
@pytest.mark.parametrize("form", FORMS[1:])
def test_a_stream_is_loaded_on_spark_connect(db: Database, tmp_path: Path, form: str) -> None:
    db.execute(TABLE)
    assert printed_by(STREAMS, db.dsn, str(tmp_path), form) == [str(2 * PER_FILE), "pyspark.sql.connect.session"]
    assert_streamed(db, form)


def assert_streamed(db: Database, form: str) -> None:
    newest = START + timedelta(seconds=10 * 2 * PER_FILE)
    assert db.execute("SELECT count(*), count(DISTINCT id) FROM orders") == [(2 * PER_FILE, 2 * PER_FILE)]
    asserted = db.value("SELECT watermark FROM pgtrickle.watermarks()")
    assert newest - timedelta(seconds=20) < asserted + LATENESS < newest
    # Connect does not tell what runs in foreachBatch which query that is.
    noted = "SELECT batch_id, query_id IS NOT NULL FROM pgtrickle.pgt_sink_batches"
    assert db.execute(noted) == [(1, form == "data source")]
