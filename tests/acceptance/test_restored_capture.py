"""Capture after a restore: no trigger is waited for that there never was, and nothing of the old numbers is left."""

import subprocess
from pathlib import Path

import pytest

from pytrickle.errors import RestoreUnderWay
from tests.acceptance.test_restore import PROGRAMS, restore
from tests.conftest import Database
from tests.equivalence.local_engine import local_client

PARTITIONED = "CREATE TABLE orders (id int, at timestamptz) PARTITION BY LIST (id)"
PARTITION = "CREATE TABLE orders_1 PARTITION OF orders FOR VALUES IN (1, 2, 3)"
READ = "SELECT pgtrickle.create_stream_table('copied', 'SELECT id, at FROM {}')"
JUDGED = "SELECT pgtrickle.set_event_time('{}', 'at')"
LIMITED = "SELECT pgtrickle.set_event_time('{}', 'at', too_late => '1 day')"
TABLE = "CREATE TABLE orders (id int, at timestamptz)"
WORLDS = {
    "an event time": (TABLE, READ.format("orders"), JUDGED.format("orders")),
    "a limit on late rows": (TABLE, READ.format("orders"), LIMITED.format("orders")),
    "late rows of partitions": (PARTITIONED, PARTITION, READ.format("orders"), LIMITED.format("orders")),
    "a partition, captured by itself": (PARTITIONED, PARTITION, READ.format("orders_1"), LIMITED.format("orders_1")),
    "no partition yet": (PARTITIONED, READ.format("orders"), JUDGED.format("orders")),
    "a partition that is new": (PARTITIONED, READ.format("orders"), PARTITION),
    "a source that is gone": (
        TABLE,
        READ.format("orders"),
        "CREATE TABLE gone (id int, at timestamptz)",
        LIMITED.format("gone"),
        "DROP TABLE gone",
    ),
}


def dumped(db: Database, to: Path) -> Path:
    subprocess.run([PROGRAMS / "pg_dump", "-F", "c", "-f", to, db.dsn], check=True)
    return to


def actions(db: Database) -> list[str]:
    with local_client(db.dsn) as (client, _):
        return [str(result.action) for result in client.tick()]


@pytest.mark.parametrize("world", WORLDS)
def test_no_trigger_is_waited_for_that_never_was(db: Database, empty_db: Database, tmp_path: Path, world: str) -> None:
    for statement in WORLDS[world]:
        db.execute(statement)
    restore(dumped(db, tmp_path / "dump"), empty_db)
    assert actions(empty_db) == ["FULL"]


def test_the_limit_on_late_rows_is_waited_for(db: Database, empty_db: Database, tmp_path: Path) -> None:
    """Its trigger has a name by which pg_restore writes it last."""
    for statement in WORLDS["a limit on late rows"]:
        db.execute(statement)
    dump = dumped(db, tmp_path / "dump")
    listed = subprocess.run([PROGRAMS / "pg_restore", "-l", dump], check=True, capture_output=True, text=True).stdout
    triggers = [line for line in listed.splitlines() if " TRIGGER public " in line]
    assert "zz_pgtrickle_too_late" in triggers[-1]
    late = [line for line in triggers if "late" in line]
    (tmp_path / "late").write_text("\n".join(late))
    (tmp_path / "limit").write_text(triggers[-1])
    (tmp_path / "early").write_text("\n".join(line for line in listed.splitlines() if line not in late))
    (tmp_path / "judges").write_text("\n".join(late[:-1]))
    restore(dump, empty_db, "-L", tmp_path / "early")
    with pytest.raises(RestoreUnderWay, match=r"lacks the triggers that call pgtrickle_changes\.late_1\(\)\."):
        actions(empty_db)
    restore(dump, empty_db, "-L", tmp_path / "judges")
    with pytest.raises(RestoreUnderWay, match=r"lacks the triggers that call pgtrickle_changes\.too_late_1\(\)\."):
        actions(empty_db)
    restore(dump, empty_db, "-L", tmp_path / "limit")
    assert actions(empty_db) == ["FULL"]


OF_NUMBER = """
SELECT tgname::text FROM pg_trigger WHERE strpos(tgname, %s) > 0 UNION ALL
SELECT proname::text FROM pg_proc WHERE pronamespace = 'pgtrickle_changes'::regnamespace
    AND strpos(proname, %s) > 0
"""


def test_nothing_of_a_partitioned_source_keeps_its_old_number(db: Database, empty_db: Database, tmp_path: Path) -> None:
    for statement in (PARTITIONED, PARTITION, READ.format("orders"), "CREATE TABLE loaded (id int)"):
        db.execute(statement)
    number = db.value("SELECT format('_%s', 'orders'::regclass::oid)")
    assert ("capture_moved" + number,) in db.execute(OF_NUMBER, number, number)
    # Whoever restores into a database with other tables gives the source another number.
    empty_db.execute("CREATE TABLE other (id int)")
    restore(dumped(db, tmp_path / "dump"), empty_db)
    assert empty_db.value("SELECT format('_%s', 'orders'::regclass::oid)") != number
    assert actions(empty_db) == ["FULL"]
    assert not empty_db.execute(OF_NUMBER, number, number)
    empty_db.execute("SELECT pgtrickle.drop_stream_table('copied')")
    empty_db.execute("SELECT pgtrickle.advance_watermark('loaded', '2026-01-01Z')")
    assert actions(empty_db) == []
    assert empty_db.value("SELECT count(*) FROM pgtrickle.watermark_history('loaded')") == 1
