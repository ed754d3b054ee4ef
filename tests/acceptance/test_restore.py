"""Ticks in a database that is not restored completely yet: they wait, and change nothing."""

import signal
import subprocess
from pathlib import Path

import pytest

from pytrickle.errors import NotInstalled, RestoreUnderWay
from tests.acceptance.test_daemons import Daemon
from tests.commands import commands
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.servers import OLDEST, binaries
from tests.waiting import wait_for

PROGRAMS = binaries(OLDEST)
# What pg_restore writes in the end, the last first; of the entries before, a restore may have written just these.
LAST = ("EVENT TRIGGER", "FK CONSTRAINT", "TRIGGER", "INDEX", "CONSTRAINT", "SEQUENCE SET", "TABLE DATA")


@pytest.fixture
def dump(db: Database, tmp_path: Path) -> Path:
    """A dump of a database with a filled stream table."""
    db.execute("CREATE TABLE orders AS SELECT id FROM generate_series(1, 9) AS id")
    db.execute(
        "SELECT pgtrickle.create_stream_table('counts', 'SELECT id % 2 AS odd, count(*) AS n FROM orders GROUP BY 1')"
    )
    with local_client(db.dsn) as (client, _):
        client.tick()
    path = tmp_path / "dump"
    subprocess.run([PROGRAMS / "pg_dump", "-F", "c", "-f", path, db.dsn], check=True)
    return path


def restore(dump: Path, to: Database, *options: str | Path) -> None:
    subprocess.run([PROGRAMS / "pg_restore", "-d", to.dsn, *options, dump], check=True, capture_output=True)
    # The server may take a while to end the session.
    while to.value("SELECT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'pg_restore')"):
        pass


def rows(db: Database) -> list[tuple[object, ...]]:
    """All that the catalog says of stream tables, and what there is in the database."""
    return [
        *db.execute("SELECT to_jsonb(t)::text FROM pgtrickle.pgt_stream_tables AS t"),
        *db.execute("SELECT count(*), max(oid) FROM pg_trigger"),
        *db.execute("SELECT count(*), max(oid) FROM pg_class WHERE relpersistence = 'p'"),
        *db.execute("SELECT count(*) FROM pgtrickle.pgt_refresh_history"),
    ]


def waits(db: Database) -> str:
    before = rows(db)
    with pytest.raises(RestoreUnderWay, match="not restored completely") as told, local_client(db.dsn) as (client, _):
        client.tick()
    assert rows(db) == before
    assert str(told.value.hint).startswith("It goes on by itself once the restore is done.")
    assert told.value.retryable
    return str(told.value)


def goes_on(db: Database) -> None:
    db.execute("INSERT INTO orders VALUES (10)")
    with local_client(db.dsn) as (client, _):
        (result,) = client.tick()
        assert (result.action, result.error) == ("REINITIALIZE", None)
        db.execute("INSERT INTO orders VALUES (11)")
        assert client.tick()[0].action == "DIFFERENTIAL"
        assert client.verify("counts").matches


def test_a_tick_waits_between_the_sections_of_a_restore(dump: Path, empty_db: Database) -> None:
    for section in ("pre-data", "data"):
        restore(dump, empty_db, f"--section={section}")
        assert "it lacks the key" in waits(empty_db)
        status, doctor = commands(empty_db.dsn)("status"), commands(empty_db.dsn)("doctor")
        assert (status.exit_code, doctor.exit_code) == (3, 3)
        assert "not restored completely" in status.stderr
        assert "not restored completely" in doctor.stdout
        assert "uninstall" not in status.stderr + doctor.stdout
    restore(dump, empty_db, "--section=post-data")
    goes_on(empty_db)


@pytest.mark.parametrize("last", LAST)
def test_a_tick_waits_until_the_last_key_and_trigger_is_there(
    dump: Path, empty_db: Database, tmp_path: Path, last: str
) -> None:
    listed = subprocess.run([PROGRAMS / "pg_restore", "-l", dump], check=True, capture_output=True, text=True).stdout
    entries = [line for line in listed.splitlines() if not line.startswith(";")]
    left = LAST[: LAST.index(last) + 1]
    late = [line for line in entries if any(f" {kind} " in line for kind in left)]
    early = tmp_path / "early"
    early.write_text("\n".join(line for line in entries if line not in late))
    (tmp_path / "late").write_text("\n".join(late))
    restore(dump, empty_db, "-L", early)
    if last != "EVENT TRIGGER":
        waits(empty_db)
    restore(dump, empty_db, "-L", tmp_path / "late")
    goes_on(empty_db)


def test_keys_alone_do_not_make_it_complete(dump: Path, empty_db: Database, tmp_path: Path) -> None:
    """A parallel restore may write them before the triggers."""
    listed = subprocess.run([PROGRAMS / "pg_restore", "-l", dump], check=True, capture_output=True, text=True).stdout
    late = [line for line in listed.splitlines() if " TRIGGER public " in line]
    (tmp_path / "late").write_text("\n".join(late))
    (tmp_path / "early").write_text("\n".join(line for line in listed.splitlines() if line not in late))
    restore(dump, empty_db, "-L", tmp_path / "early")
    assert "it lacks the triggers that call pgtrickle_changes." in waits(empty_db)
    restore(dump, empty_db, "-L", tmp_path / "late")
    with empty_db.connect(application_name="pg_restore"):
        assert "pg_restore is at work in process" in waits(empty_db)
    goes_on(empty_db)


def test_what_misses_for_good_can_be_gone_without(dump: Path, empty_db: Database, tmp_path: Path) -> None:
    listed = subprocess.run([PROGRAMS / "pg_restore", "-l", dump], check=True, capture_output=True, text=True).stdout
    (tmp_path / "some").write_text("\n".join(line for line in listed.splitlines() if " TRIGGER public " not in line))
    restore(dump, empty_db, "-L", tmp_path / "some")
    waits(empty_db)
    assert empty_db.value("SELECT pgtrickle.adopt_cluster()") == 1
    goes_on(empty_db)


def test_a_parallel_restore_from_a_directory_is_adopted(db: Database, dump: Path, empty_db: Database) -> None:
    directory = dump.with_name("directory")
    subprocess.run([PROGRAMS / "pg_dump", "-F", "d", "-j", "2", "-f", directory, db.dsn], check=True)
    restore(directory, empty_db, "-j", "2", "--no-owner")
    goes_on(empty_db)


def test_a_dump_without_a_schema_of_the_catalog_says_so(db: Database, empty_db: Database, tmp_path: Path) -> None:
    subprocess.run(
        [PROGRAMS / "pg_dump", "-F", "c", "-N", "pgtrickle_changes", "-f", tmp_path / "d", db.dsn], check=True
    )
    subprocess.run([PROGRAMS / "pg_restore", "-d", empty_db.dsn, tmp_path / "d"], check=False, capture_output=True)
    with pytest.raises(RestoreUnderWay, match="it lacks the schema pgtrickle_changes"):
        local_client(empty_db.dsn).__enter__()


def test_a_dump_of_the_catalog_alone_lacks_what_it_names(db: Database, empty_db: Database, tmp_path: Path) -> None:
    """Of a stream table that was never refreshed nothing else is left than what captured for it."""
    db.execute("CREATE TABLE orders (id int); SELECT pgtrickle.create_stream_table('copied', 'SELECT id FROM orders')")
    subprocess.run([PROGRAMS / "pg_dump", "-F", "c", "-n", "pgtrickle*", "-f", tmp_path / "d", db.dsn], check=True)
    subprocess.run([PROGRAMS / "pg_restore", "-d", empty_db.dsn, tmp_path / "d"], check=False, capture_output=True)
    assert "it lacks the triggers that call pgtrickle_changes." in waits(empty_db)
    empty_db.execute("SELECT pgtrickle.adopt_cluster()")
    with local_client(empty_db.dsn) as (client, _):
        assert not client.tick()


@pytest.mark.parametrize("begun", ["SCHEMA - pgtrickle ", "TABLE pgtrickle pgt_refresh_secret "])
def test_a_restore_that_has_just_begun_is_one(dump: Path, empty_db: Database, tmp_path: Path, begun: str) -> None:
    listed = subprocess.run([PROGRAMS / "pg_restore", "-l", dump], check=True, capture_output=True, text=True).stdout
    entries = [line for line in listed.splitlines() if not line.startswith(";")]
    number = next(number for number, line in enumerate(entries) if f" {begun}" in line) + 1
    for part, lines in ("early", entries[:number]), ("late", entries[number:]):
        (tmp_path / part).write_text("\n".join(lines))
    restore(dump, empty_db, "-L", tmp_path / "early")
    for command in ("status", "install", "tick"):
        result = commands(empty_db.dsn)(command)
        assert result.exit_code == 3, result.stderr
        assert "not restored completely yet: it lacks the table pgtrickle.pgt_schema_version." in result.stderr
    restore(dump, empty_db, "-L", tmp_path / "late")
    goes_on(empty_db)


def test_a_daemon_that_starts_in_between_goes_on_by_itself(dump: Path, empty_db: Database, tmp_path: Path) -> None:
    restore(dump, empty_db, "--section=pre-data")
    daemon = Daemon(empty_db.dsn, tmp_path / "log")
    try:
        wait_for(lambda: "not restored completely" in daemon.log.read_text(), "the daemon's sentence")
        restore(dump, empty_db, "--section=data", "--section=post-data")
        empty_db.execute("INSERT INTO orders VALUES (10)")
        wait_for(
            lambda: empty_db.value("SELECT sum(n)::int FROM counts") == 10,
            "the new row",
            lambda: daemon.process.poll() is None,
        )
    finally:
        assert daemon.end(signal.SIGTERM) == 0
    assert "Traceback" not in daemon.log.read_text()


def test_a_restore_of_the_schema_alone_is_told_apart(dump: Path, empty_db: Database) -> None:
    restore(dump, empty_db, "-s")
    with pytest.raises(NotInstalled, match="restored without its rows"):
        local_client(empty_db.dsn).__enter__()
