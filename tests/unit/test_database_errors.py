"""PostgreSQL's errors in our own words."""

from contextlib import closing

import psycopg
import pytest
import sqlalchemy

from pytrickle import errors
from pytrickle.database import connect, translate_errors
from pytrickle.database.engine import Pool, engine
from tests.conftest import Database
from tests.waiting import wait_for

EXPECTED = {
    "08006": errors.ConnectionLost,
    "0A000": errors.QueryRefused,
    "22000": errors.WatermarkMovedBack,
    "22004": errors.InvalidArgument,
    "22012": errors.DatabaseError,
    "22023": errors.InvalidArgument,
    "25006": errors.ReadOnly,
    "40001": errors.SerializationFailure,
    "40P01": errors.SerializationFailure,
    "42501": errors.InsufficientPrivilege,
    "42601": errors.QueryRefused,
    "42703": errors.QueryRefused,
    "42704": errors.InvalidArgument,
    "42710": errors.InvalidArgument,
    "42P01": errors.InvalidArgument,
    "42P07": errors.StreamTableExists,
    "42P17": errors.CycleDetected,
    "53000": errors.ServerExhausted,
    "53100": errors.DiskFull,
    "53200": errors.ServerExhausted,
    "53300": errors.ConnectionLost,
    "53400": errors.ServerExhausted,
    "55000": errors.InvalidArgument,
    "55P03": errors.LockTimeout,
    "57014": errors.Canceled,
    "57P01": errors.ConnectionLost,
    "57P03": errors.ConnectionLost,
    "P0001": errors.DatabaseError,
}


LISTED = "SELECT FROM pg_stat_activity WHERE pid = %s"


def _raise(database: Database, options: str) -> errors.PytrickleError:
    with pytest.raises(errors.PytrickleError) as failure, translate_errors():
        database.execute(f"DO $$ BEGIN RAISE 'the message' USING {options}; END $$")
    return failure.value


def test_sqlstate_decides_the_class(empty_db: Database) -> None:
    raised = {sqlstate: _raise(empty_db, f"ERRCODE = '{sqlstate}'") for sqlstate in EXPECTED}
    assert {sqlstate: type(error) for sqlstate, error in raised.items()} == EXPECTED
    assert all(error.sqlstate == sqlstate for sqlstate, error in raised.items())
    assert {str(error) for error in raised.values()} == {"the message"}


@pytest.mark.parametrize(
    ("sqlstate", "constraint", "expected"),
    [
        ("42704", "unknown_watermark_group", errors.UnknownWatermarkGroup),
        ("42704", "unknown_stream_table", errors.UnknownStreamTable),
        ("0A000", "not_differentiable", errors.NotDifferentiable),
        ("0A000", "query_refused", errors.QueryRefused),
        ("25001", "invalid_argument", errors.InvalidArgument),
        ("40001", "frontier_not_readable", errors.RefreshConflict),
        ("40001", "not_fresh", errors.NotFresh),
        ("57014", "wait_timeout", errors.WaitTimeout),
        ("2BP01", "dependents_exist", errors.InvalidArgument),
    ],
)
def test_constraint_says_more_than_the_sqlstate(
    empty_db: Database, sqlstate: str, constraint: str, expected: type[errors.PytrickleError]
) -> None:
    error = _raise(empty_db, f"ERRCODE = '{sqlstate}', CONSTRAINT = '{constraint}'")
    assert type(error) is expected


@pytest.mark.parametrize(
    "message",
    [
        "canceling statement due to statement timeout",
        "storniere Anfrage wegen Zeitüberschreitung der Anfrage",
        "annulation de la requête à cause du délai écoulé pour l'exécution de l'instruction",
    ],
)
def test_a_statement_that_took_too_long_is_known_in_the_language_of_the_server(db: Database, message: str) -> None:
    with pytest.raises(errors.StatementTimeout, match="longer than statement_timeout") as stopped, translate_errors():
        db.execute(f"DO $do$ BEGIN RAISE $${message}$$ USING ERRCODE = '57014'; END $do$")
    assert not stopped.value.retryable


@pytest.mark.parametrize("message", ["Schema »pgtrickle« existiert nicht", "le schéma « pgtrickle » n''existe pas"])
def test_a_missing_catalog_is_known_in_the_language_of_the_server(empty_db: Database, message: str) -> None:
    with pytest.raises(errors.NotInstalled), translate_errors():
        empty_db.execute(f"DO $do$ BEGIN RAISE '{message}' USING ERRCODE = '3F000'; END $do$")


def test_detail_and_hint_of_the_server_become_the_hint(empty_db: Database) -> None:
    error = _raise(empty_db, "ERRCODE = '22023', DETAIL = 'It is -1.', HINT = 'Use 0 or more.'")
    assert error.hint == "It is -1.\nUse 0 or more."


@pytest.mark.parametrize(
    "query",
    ["SELECT pgtrickle.current_cut()", "SELECT FROM pgtrickle.pgt_stream_tables", "SELECT NULL::pgtrickle.cut"],
)
def test_missing_catalog_is_named_as_such(empty_db: Database, query: str) -> None:
    with pytest.raises(errors.NotInstalled) as failure, translate_errors():
        empty_db.execute(query)
    assert failure.value.hint == "Run pytrickle install against this database."


def test_a_call_with_arguments_of_other_types_is_not_a_missing_catalog(db: Database) -> None:
    with pytest.raises(errors.InvalidArgument, match="does not exist") as failure, translate_errors():
        db.execute("SELECT pgtrickle.create_stream_table('daily', 'SELECT 1', schedule => 5)")
    assert "argument types" in str(failure.value.hint)


def test_transactions_of_two_threads_on_one_connection_are_told_as_such(empty_db: Database) -> None:
    with closing(connect(empty_db.dsn)) as connection:
        first, second = connection.transaction(), connection.transaction()
        first.__enter__()
        second.__enter__()
        with pytest.raises(errors.DatabaseError) as failure, translate_errors():
            first.__exit__(None, None, None)
    assert "one thread" in str(failure.value.hint)


def test_missing_table_of_the_user_is_not_a_missing_catalog(empty_db: Database) -> None:
    with pytest.raises(errors.InvalidArgument), translate_errors():
        empty_db.execute("SELECT FROM pgtrickle_orders")


def test_a_session_that_may_only_read_is_told_why(empty_db: Database) -> None:
    connection = connect(f"{empty_db.dsn}?options=-cdefault_transaction_read_only%3Don")
    with connection, pytest.raises(errors.ReadOnly) as failure, translate_errors():
        connection.execute("CREATE TABLE t ()")
    assert "default_transaction_read_only" in str(failure.value.hint)


def test_killed_backend_is_a_lost_connection(empty_db: Database) -> None:
    with connect(empty_db.dsn) as connection:
        for _ in range(2):  # the first statement learns it from the server, the second from libpq
            empty_db.execute("SELECT pg_terminate_backend(%s, 10000)", connection.info.backend_pid)
            with pytest.raises(errors.ConnectionLost) as failure, translate_errors():
                connection.execute("SELECT 1")
            assert failure.value.retryable


def test_a_limit_by_which_the_server_ends_a_session_is_named(empty_db: Database) -> None:
    limit = "idle_in_transaction_session_timeout"
    with closing(connect(f"{empty_db.dsn}?options=-c{limit}%3D200")) as connection:
        connection.execute("BEGIN")
        wait_for(lambda: not empty_db.execute(LISTED, connection.info.backend_pid), "the session has ended")
        with pytest.raises(errors.ConnectionLost) as failure, translate_errors():
            connection.execute("SELECT 1")
    assert str(failure.value) == f"The server ended the session by {limit}."
    assert (failure.value.sqlstate, failure.value.retryable) == ("25P03", True)
    assert f"ALTER ROLE … SET {limit}" in str(failure.value.hint)


def test_a_connection_that_broke_is_told_in_one_line() -> None:
    broken = "consuming input failed: server closed the connection unexpectedly\n\tThis probably means the server\n\tno"
    with pytest.raises(errors.ConnectionLost) as failure, translate_errors():
        raise psycopg.OperationalError(broken)
    assert str(failure.value) == "server closed the connection unexpectedly"


def test_a_lent_connection_that_was_lost_is_not_lent_again(
    empty_db: Database, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(Pool(engine(empty_db.dsn))) as pool:
        with pytest.raises(errors.ConnectionLost), translate_errors(), pool.borrow() as connection:
            connection.execute("SELECT 1")
            empty_db.execute("SELECT pg_terminate_backend(%s, 10000)", connection.info.backend_pid)
            connection.execute("SELECT 1")
        with pool.borrow() as another:
            assert another.execute("SELECT 1").fetchone() == (1,)
    assert not caplog.records


def test_lost_update_is_retryable(empty_db: Database) -> None:
    empty_db.execute("CREATE TABLE t AS SELECT 1 AS a")
    first, second = empty_db.connect(autocommit=False), empty_db.connect(autocommit=False)
    second.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    second.execute("SELECT FROM t")
    first.execute("UPDATE t SET a = 2")
    first.commit()
    with pytest.raises(errors.SerializationFailure) as failure, translate_errors():
        second.execute("UPDATE t SET a = 3")
    assert failure.value.retryable


def test_errors_come_through_sqlalchemy_without_their_parameters(empty_db: Database) -> None:
    pool = engine(empty_db.dsn)
    try:
        with pytest.raises(errors.QueryRefused) as failure, translate_errors(), pool.connect() as connection:
            connection.execute(
                sqlalchemy.text("SELECT nothing FROM pg_class WHERE relname = :name"), {"name": "s3cr3t"}
            )
    finally:
        pool.dispose()
    assert failure.value.sqlstate == "42703"
    assert "s3cr3t" not in str(failure.value) + str(failure.value.hint)


def test_other_errors_pass_unchanged() -> None:
    with pytest.raises(KeyError), translate_errors():
        raise KeyError("a")


def test_text_that_is_no_utf8_is_told_with_what_to_do(empty_db: Database) -> None:
    with pytest.raises(errors.DatabaseError) as failure, translate_errors():
        empty_db.execute("SELECT convert_from('\\xe4'::bytea, 'UTF8')")
    assert "UTF-8" in str(failure.value.hint)


@pytest.mark.parametrize("missing", ["v::nope", "v COLLATE nope"])
def test_a_type_that_is_not_there_is_no_missing_stream_table(db: Database, missing: str) -> None:
    db.execute("CREATE TABLE t (v text)")
    with pytest.raises(errors.InvalidArgument, match="nope") as failure, translate_errors():
        db.execute("SELECT pgtrickle.create_stream_table('s', %s)", f"SELECT {missing} AS v FROM t")
    assert "Check the names" in str(failure.value.hint)
