"""The JDBC address of a libpq connection."""

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pytrickle.database import connect, current_target, jdbc_target
from pytrickle.database.jdbc_tls import tls_properties
from tests.conftest import Database
from tests.servers import NEWEST, OLDEST, Server


def _resolved(dsn: str) -> tuple[str, dict[str, str]]:
    with connect(dsn) as connection:
        target = jdbc_target(connection)
    return target.url, dict(target.properties)


def test_url_names_the_database_and_properties_the_login(empty_db: Database) -> None:
    options = conninfo_to_dict(empty_db.dsn)
    url, properties = _resolved(make_conninfo(empty_db.dsn, password="s3cr3t", sslmode="allow"))
    assert url == f"jdbc:postgresql://127.0.0.1:{options['port']}/{options['dbname']}"
    expected = {"user": "postgres", "password": "s3cr3t", "sslmode": "allow", "ApplicationName": "pytrickle/spark"}
    assert expected.items() <= properties.items()
    assert "stringtype" not in properties


def test_password_is_not_shown(empty_db: Database) -> None:
    with connect(make_conninfo(empty_db.dsn, password="s3cr3t")) as connection:
        assert "s3cr3t" not in repr(jdbc_target(connection))


def test_a_token_that_was_replaced_in_the_password_file_counts_for_spark(
    empty_db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = tmp_path / "pgpass"
    tokens.touch(mode=0o600)
    monkeypatch.setenv("PGPASSFILE", str(tokens))
    tokens.write_text("*:*:*:postgres:expired\n")
    with connect(empty_db.dsn) as connection:
        tokens.write_text("*:*:*:postgres:fresh\n")
        assert jdbc_target(connection).properties["password"] == "expired"
        target = current_target(connection, empty_db.dsn)
        assert target.properties["password"] == "fresh" and "fresh" not in repr(target)


def test_service_and_password_files_are_resolved(
    empty_db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = conninfo_to_dict(empty_db.dsn)
    service, passwords = tmp_path / "pg_service.conf", tmp_path / "pgpass"
    service.write_text(f"[shop]\nhost=127.0.0.1\nport={options['port']}\nuser=postgres\ndbname={options['dbname']}\n")
    passwords.write_text("*:*:*:postgres:s3cr3t\n")
    passwords.chmod(0o600)
    monkeypatch.setenv("PGSERVICEFILE", str(service))
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    url, properties = _resolved("service=shop")
    assert url.endswith(f"127.0.0.1:{options['port']}/{options['dbname']}")
    assert (properties["user"], properties["password"]) == ("postgres", "s3cr3t")


def test_unix_socket_becomes_localhost(empty_db: Database) -> None:
    directory = empty_db.value("SHOW unix_socket_directories")
    url, properties = _resolved(make_conninfo(empty_db.dsn, host=directory))
    assert url.startswith("jdbc:postgresql://localhost:")
    assert "password" not in properties


def test_name_of_the_database_is_escaped(empty_db: Database) -> None:
    empty_db.execute('CREATE DATABASE "a b/c?d"')
    try:
        url, _ = _resolved(make_conninfo(empty_db.dsn, dbname="a b/c?d"))
    finally:
        empty_db.execute('DROP DATABASE "a b/c?d" WITH (FORCE)')
    assert url.endswith("/a%20b%2Fc%3Fd")


def test_system_certificates_mean_java_s_own(empty_db: Database) -> None:
    if psycopg.pq.version() < 160000:
        pytest.skip("libpq knows sslrootcert=system since 16")
    directory = empty_db.value("SHOW unix_socket_directories")
    dsn = make_conninfo(empty_db.dsn, host=directory, sslrootcert="system", sslmode="verify-full")
    _, properties = _resolved(dsn)
    assert properties["sslfactory"] == "org.postgresql.ssl.DefaultJavaSSLFactory"
    assert "sslrootcert" not in properties


def test_direct_negotiation_of_tls_is_the_driver_s_as_well() -> None:
    given = {"sslmode": "require", "sslnegotiation": "direct"}
    assert given["sslnegotiation"] == tls_properties(given, Path("/nowhere"), through_socket=False)["sslNegotiation"]


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_sessions_of_spark_may_idle_while_it_computes(servers: Callable[[int], Server], version: int) -> None:
    limits = ["idle_in_transaction_session_timeout", *(["transaction_timeout"] if version >= 17 else [])]
    with psycopg.connect(servers(version).dsn()) as connection:
        target = jdbc_target(connection)
    assert target.reading(())["options"] == " ".join(f"-c {name}=0" for name in limits)
    assert list(target.limits) == limits
