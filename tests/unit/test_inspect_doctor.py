"""The doctor: each check on a machine or server that has the problem it looks for."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, Mock

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from pytrickle.catalog import install as migrate
from pytrickle.compute.spark.java import find_java
from pytrickle.errors import JdbcDriverMissing, SparkFailed
from pytrickle.inspect.doctor import server
from pytrickle.inspect.doctor.check import Check, attempt
from pytrickle.inspect.doctor.examine import Probes, examine
from tests.conftest import Database
from tests.repeats import on_both_servers


def java(directory: Path, banner: str) -> Path:
    """Write a program named java that prints a banner, below `directory`/bin."""
    program = directory / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{banner}' >&2\n")
    program.chmod(0o755)
    return program


def java_is_fine(monkeypatch: pytest.MonkeyPatch, **environment: str) -> bool:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    check = attempt("Java", find_java)
    assert check.ok or check.remedy
    return check.ok


@pytest.mark.parametrize(
    ("banner", "fine"),
    [
        ('openjdk version "17.0.15" 2025-04-15', True),
        ('openjdk version "21" 2023-09-19', True),
        ('java version "1.8.0_402"', False),
        ('openjdk version "11.0.2" 2019-01-15', False),
        ("Segmentation fault", False),
    ],
)
def test_java_must_be_recent_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, banner: str, fine: bool) -> None:
    assert java_is_fine(monkeypatch, PATH=f"{java(tmp_path, banner).parent}:{os.environ['PATH']}") is fine


def test_java_home_hides_the_path_as_it_does_for_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"{java(tmp_path / 'path', 'openjdk version 17').parent}:{os.environ['PATH']}"
    java(tmp_path / "old", 'java version "11.0.1"')
    java(tmp_path / "new", 'openjdk version "17.0.1"')
    assert not java_is_fine(monkeypatch, JAVA_HOME=str(tmp_path / "old"), PATH=path)
    assert java_is_fine(monkeypatch, JAVA_HOME=str(tmp_path / "new"), PATH=path)
    assert not java_is_fine(monkeypatch, JAVA_HOME=str(tmp_path / "gone"), PATH=path)
    assert not java_is_fine(monkeypatch, PATH=str(tmp_path))


def no_jar() -> str:
    raise JdbcDriverMissing("No JDBC driver was found.")


def findings(dsn: str, **probes: Any) -> dict[str, Check]:
    probes = {
        "find_java": lambda: "17",
        "find_jar": lambda: "a.jar",
        "find_archive": lambda: "a.jsa",
        "verify_catalog": migrate.verify,
    } | {
        "trust": migrate.trust,
        "grants": migrate.grants,
        **probes,
    }
    return {check.name: check for check in examine(dsn, Probes(**probes))}


@on_both_servers
def test_an_installed_database_passes_every_check_of_the_server(every_db: Database) -> None:
    found = findings(every_db.dsn)
    assert [check for check in found.values() if not check.ok] == []
    assert len(found) == 14


def test_a_database_without_catalog_says_how_to_install_it(empty_db: Database) -> None:
    catalog = findings(empty_db.dsn)["catalog"]
    assert not catalog.ok
    assert "pytrickle install" in (catalog.remedy or "")


def test_functions_that_are_missing_can_be_written_anew(db: Database) -> None:
    """The remedy works."""
    db.execute("DROP FUNCTION pgtrickle.problems() CASCADE")
    found = findings(db.dsn)["grants"]
    assert found.detail.startswith("the catalog is incomplete: ") and found.remedy
    assert migrate.install(db.connect()) == ()
    db.execute(re.findall(r"DELETE [^,]+", found.remedy)[0])
    assert migrate.install(db.connect()) == ("functions",)
    assert all(check.ok for check in findings(db.dsn).values())


@pytest.mark.parametrize(
    "damage",
    ["ALTER TABLE pgtrickle.pgt_stream_tables RENAME TO gone", "ALTER SCHEMA pgtrickle_private RENAME TO gone"],
)
def test_a_part_of_a_catalog_is_told_of_in_plain_sentences(db: Database, damage: str) -> None:
    db.execute(damage)
    wrong = [check for check in findings(db.dsn).values() if not check.ok]
    assert {check.name for check in wrong} >= {"stream tables", "grants"}
    for check in wrong:
        assert re.match("the catalog is incomplete: |The database is not restored completely yet: ", check.detail)
        assert check.remedy and "estore" in check.remedy


def test_the_doctor_needs_no_right_to_write(db: Database) -> None:
    read_only = make_conninfo(db.dsn, options="-c default_transaction_read_only=on")
    assert [check for check in findings(read_only).values() if not check.ok] == []


def test_a_database_that_takes_no_changes_is_a_problem(db: Database) -> None:
    database = db.value("SELECT quote_ident(current_database())")
    db.execute(f"ALTER DATABASE {database} SET default_transaction_read_only = on")
    check = findings(db.dsn)["server version"]
    assert not check.ok
    assert check.detail.endswith("takes no changes: default_transaction_read_only is on (set by: database)")
    assert check.remedy and "Turn it off" in check.remedy


@pytest.fixture
def as_stranger(db: Database, empty_db: Database) -> Iterator[tuple[str, str]]:
    """The DSNs of an installed and an empty database for a role that was granted nothing."""
    role = db.create_role("doctor_stranger")
    yield make_conninfo(db.dsn, user=role), make_conninfo(empty_db.dsn, user=role)


def test_a_role_without_rights_is_told_what_to_ask_for(as_stranger: tuple[str, str]) -> None:
    installed, empty = as_stranger
    rights = findings(installed)["rights"]
    assert (rights.ok, "GRANT postgres TO doctor_stranger" in (rights.remedy or "")) == (False, True)
    rights = findings(empty)["rights"]
    assert (rights.ok, "GRANT CREATE ON DATABASE" in (rights.remedy or "")) == (False, True)


def test_a_missing_jar_and_a_failing_spark_are_problems_with_their_hints(db: Database) -> None:
    def fail() -> str:
        raise SparkFailed("Spark did not start.", "Look at its log.")

    found = findings(db.dsn, find_jar=no_jar, read_pinned=fail)
    assert (found["JDBC driver"].ok, found["JDBC driver"].remedy) == (False, JdbcDriverMissing.default_hint)
    assert found["Spark"] == Check("Spark", False, "Spark did not start.", "Look at its log.")
    assert findings(db.dsn, read_pinned=lambda: "read the snapshot")["Spark"].ok


def test_an_unreachable_server_is_one_problem_and_never_shows_the_password() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    for dsn in (
        f"postgresql://someone:s3cret@127.0.0.1:{port}/shop",
        f"host=127.0.0.1 port={port} user=someone password=s3cret",
        f"postgresql://someone:p@s3cret@127.0.0.1:{port}/shop",
        f"host=127.0.0.1 port={port} password=two s3cret",
    ):
        found = findings(dsn)
        assert not found["connection"].ok
        assert "rights" not in found
        assert "s3cret" not in repr(found)


def test_a_version_before_15_is_too_old() -> None:
    connection = Mock(spec=psycopg.Connection)
    connection.info.server_version = 140_011
    connection.info.parameter_status.return_value = "14.11"
    check = server.check_version(connection)
    assert (check.ok, check.detail) == (False, "PostgreSQL 14.11 is older than 15")


def test_a_server_without_free_connections_is_a_problem() -> None:
    connection = Mock(spec=psycopg.Connection)
    connection.execute.return_value.fetchall.return_value = [(3, 100)]
    assert not server.check_headroom(connection).ok


def test_a_server_that_spark_cannot_reach_by_tcp_is_a_problem(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise ConnectionRefusedError(111, os.strerror(111))

    monkeypatch.setattr(socket, "create_connection", refuse)
    assert not findings(db.dsn)["TCP"].ok


def test_a_snapshot_that_another_connection_cannot_read_is_a_problem(
    db: Database, empty_db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = psycopg.connect(empty_db.dsn, autocommit=True)
    monkeypatch.setattr(server, "connect", lambda dsn, role: elsewhere)
    assert not findings(db.dsn)["snapshot"].ok


def test_another_snapshot_than_the_exported_one_is_a_problem(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    other = MagicMock(spec=psycopg.Connection)
    other.__enter__.return_value.execute.return_value.fetchone.return_value = ("1:1:",)
    monkeypatch.setattr(server, "connect", lambda dsn, role: other)
    assert "another snapshot" in findings(db.dsn)["snapshot"].detail


def test_the_extension_of_the_same_name_is_a_problem() -> None:
    connection = Mock(spec=psycopg.Connection)
    connection.execute.return_value.fetchone.return_value = (True,)
    assert not server.check_extension(connection).ok
