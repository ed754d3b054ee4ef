"""The exported snapshot: one moment, for as many connections as join it."""

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from pytrickle.database import Snapshots, exported_snapshot, pipelined, translate_errors
from pytrickle.errors import NotInstalled
from tests.conftest import Database
from tests.repeats import on_both_servers

_COUNT = "SELECT count(*) FROM public.t"


@on_both_servers
def test_joined_connection_reads_the_same_moment(every_db: Database) -> None:
    every_db.execute("CREATE TABLE t AS SELECT 1 AS a")
    with exported_snapshot(every_db.dsn) as snapshot:
        every_db.execute("INSERT INTO t VALUES (2)")
        other = every_db.connect()
        other.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        other.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(snapshot.name))
        assert other.execute(_COUNT).fetchone() == snapshot.connection.execute(_COUNT).fetchone() == (1,)
        assert every_db.value(_COUNT) == 2


@on_both_servers
def test_cut_covers_exactly_what_the_snapshot_shows(every_db: Database) -> None:
    visible = "SELECT pg_visible_in_snapshot(%s::xid8, %s::pg_snapshot)"
    running = every_db.connect(autocommit=False)
    (open_xid,) = running.execute("SELECT pg_current_xact_id()::text").fetchone() or ()
    committed_xid = every_db.value("SELECT pg_current_xact_id()::text")
    with exported_snapshot(every_db.dsn) as snapshot:
        later_xid = every_db.value("SELECT pg_current_xact_id()::text")
        running.commit()
        covered = [every_db.value(visible, xid, snapshot.cut.snapshot) for xid in (open_xid, committed_xid, later_xid)]
    assert covered == [False, True, False]
    assert snapshot.cut.xid is None
    assert snapshot.cut.xmin <= int(open_xid)


def test_snapshot_cannot_write(every_db: Database) -> None:
    with exported_snapshot(every_db.dsn) as snapshot, pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        snapshot.connection.execute("CREATE TABLE t ()")


def test_server_does_not_take_an_idle_snapshot_away(every_db: Database) -> None:
    name = sql.Identifier(str(conninfo_to_dict(every_db.dsn)["dbname"]))
    every_db.execute(
        sql.SQL("ALTER DATABASE {} SET idle_in_transaction_session_timeout = '1s'").format(name).as_string()
    )
    with exported_snapshot(every_db.dsn) as snapshot:
        assert snapshot.connection.execute("SHOW idle_in_transaction_session_timeout").fetchone() == ("0",)


def test_snapshot_ends_with_the_block_even_on_error(every_db: Database) -> None:
    with pytest.raises(KeyError), exported_snapshot(every_db.dsn) as snapshot:
        raise KeyError("a")
    assert snapshot.connection.closed


def test_database_without_catalog_is_told_so(empty_db: Database) -> None:
    with pytest.raises(NotInstalled), translate_errors(), exported_snapshot(empty_db.dsn):
        pass


def test_what_exports_snapshots_shows_no_password() -> None:
    assert "s3cr3t" not in repr(Snapshots("postgresql://me:s3cr3t@db/shop"))


def test_a_pipeline_whose_connection_is_lost_says_so_once(empty_db: Database, caplog: pytest.LogCaptureFixture) -> None:
    """Psycopg would log, too, that it cannot be ended."""
    connection = empty_db.connect()
    with pytest.raises(psycopg.OperationalError), pipelined(connection):
        empty_db.execute("SELECT pg_terminate_backend(%s)", connection.info.backend_pid)
        connection.execute("SELECT 1").fetchone()
    assert caplog.records == [] and connection.closed
