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


def test_refreshes_run_on_spark_connect(db: Database) -> None:
    db.execute("CREATE TABLE t (k int, v int)")
    db.execute("CREATE TABLE u (k int PRIMARY KEY, name text)")
    db.execute("INSERT INTO t VALUES (1, 1), (2, 2); INSERT INTO u VALUES (1, 'one'), (2, NULL)")
    assert printed_by(REFRESHES, db.dsn) == [
        "postgresql public.by_name DIFFERENTIAL True",
        "postgresql public.joined DIFFERENTIAL True",
        "spark public.by_name DIFFERENTIAL True",
        "spark public.joined DIFFERENTIAL True",
        "pyspark.sql.connect.session",
    ]


def test_streams_are_loaded_on_spark_connect(db: Database, tmp_path: Path) -> None:
    for form in FORMS:
        db.execute(TABLE.replace("orders", f'"{form}"'))
    assert printed_by(STREAMS, db.dsn, str(tmp_path)) == [
        *(f"{form} {2 * PER_FILE}" for form in FORMS),
        "pyspark.sql.connect.session",
    ]
    for form in FORMS:
        newest = START + timedelta(seconds=10 * 2 * PER_FILE)
        assert db.execute(f'SELECT count(*), count(DISTINCT id) FROM "{form}"') == [(2 * PER_FILE, 2 * PER_FILE)]
        asserted = db.value("SELECT watermark FROM pgtrickle.watermarks() WHERE strpos(source, %s) > 0", form)
        assert newest - timedelta(seconds=20) < asserted + LATENESS < newest
    # Connect does not tell what runs in foreachBatch which query that is.
    noted = "SELECT source_relid::regclass::text, batch_id, query_id IS NOT NULL FROM pgtrickle.pgt_sink_batches"
    assert sorted(db.execute(noted)) == [
        ('"data source"', 1, True),
        ('"foreachBatch"', 1, False),
    ]
