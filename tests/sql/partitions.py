"""A partitioned table whose partitions have their columns in another order, and a stream table over it."""

from tests.conftest import Database
from tests.sql.checks import remember

PARTITIONED = """
CREATE TABLE events (id integer, day integer, note text) PARTITION BY RANGE (day);
CREATE TABLE events_low PARTITION OF events FOR VALUES FROM (0) TO (10);
CREATE TABLE events_high (note text, extra_gone integer, day integer, id integer);
ALTER TABLE events_high DROP COLUMN extra_gone;
ALTER TABLE events ATTACH PARTITION events_high FOR VALUES FROM (10) TO (20);
CREATE TABLE events_deep PARTITION OF events FOR VALUES FROM (20) TO (40) PARTITION BY RANGE (day);
CREATE TABLE events_deep_1 PARTITION OF events_deep FOR VALUES FROM (20) TO (30);
INSERT INTO events SELECT i, i, 'n' || i FROM generate_series(1, 29) AS i;
"""
COLUMNS = "id, day, note"


def build(db: Database, script: str, source: str) -> None:
    for statement in filter(str.strip, script.split(";\n")):
        db.execute(statement)
    db.execute("SELECT pgtrickle.create_stream_table('copied', %s)", f"SELECT {COLUMNS} FROM {source}")
    remember(db, source)
