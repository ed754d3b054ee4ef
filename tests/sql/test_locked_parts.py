"""Writers of one part of a captured table, while somebody else holds another part."""

import pytest

from tests.conftest import Database

PARTITIONS = """
CREATE TABLE ev (id int, day int) PARTITION BY RANGE (day);
CREATE TABLE ev_first PARTITION OF ev FOR VALUES FROM (0) TO (10);
CREATE TABLE ev_last PARTITION OF ev FOR VALUES FROM (10) TO (20);
"""
CHILDREN = """
CREATE TABLE ev (id int, day int); CREATE TABLE ev_first () INHERITS (ev); CREATE TABLE ev_last () INHERITS (ev);
"""
WRITES = ("INSERT INTO ev VALUES (1, 1)", "INSERT INTO ev_first VALUES (2, 2)", "DELETE FROM ev_first WHERE id = 2")


@pytest.mark.parametrize("parts", (PARTITIONS, CHILDREN), ids=("partitions", "children"))
@pytest.mark.parametrize("held", ("TRUNCATE ev_last", "ALTER TABLE ev_last ADD CHECK (day > 0)"))
def test_a_writer_does_not_wait_for_who_holds_another_part(every_db: Database, parts: str, held: str) -> None:
    db = every_db
    db.execute(parts)
    db.execute("SELECT pgtrickle.create_stream_table('days', 'SELECT day, count(*) AS n FROM ev GROUP BY day')")
    with db.connect() as holder, holder.transaction():
        holder.execute(held)
        for write in WRITES:
            # In a new session the capture function is planned.
            with db.connect() as writer:
                writer.execute("SET lock_timeout = '3s'")
                writer.execute(write)
    assert db.value("SELECT count(*) FROM pgtrickle.pgt_capture_gaps") == 0


@pytest.mark.parametrize("parts", (PARTITIONS, CHILDREN), ids=("partitions", "children"))
def test_two_parts_are_loaded_anew_at_the_same_time(db: Database, parts: str) -> None:
    db.execute(parts)
    db.execute("SELECT pgtrickle.create_stream_table('days', 'SELECT day, count(*) AS n FROM ev GROUP BY day')")
    with db.connect() as one, db.connect() as other, one.transaction(), other.transaction():
        one.execute("TRUNCATE ev_first")
        other.execute("TRUNCATE ev_last")
        for connection, part, day in ((one, "ev_first", 1), (other, "ev_last", 11)):
            connection.execute("SET LOCAL lock_timeout = '3s'")
            connection.execute(f"INSERT INTO {part} VALUES (1, {day})")
    assert db.execute("SELECT day FROM ev ORDER BY 1") == [(1,), (11,)]


def test_the_first_write_locks_the_part_that_it_reaches(db: Database) -> None:
    db.execute("CREATE TABLE ev (id int, day int) PARTITION BY RANGE (day)")
    for day in range(40):
        db.execute(f"CREATE TABLE ev_{day} PARTITION OF ev FOR VALUES FROM ({day}) TO ({day + 1})")
    db.execute("SELECT pgtrickle.create_stream_table('days', 'SELECT day, count(*) AS n FROM ev GROUP BY day')")
    with db.connect() as writer, writer.transaction():
        writer.execute("INSERT INTO ev VALUES (1, 7)")
        locked = writer.execute(
            "SELECT DISTINCT relation::regclass::text FROM pg_locks"
            " WHERE pid = pg_backend_pid() AND relation::regclass::text ~ '^ev' ORDER BY 1"
        ).fetchall()
    assert locked == [("ev",), ("ev_7",)]
