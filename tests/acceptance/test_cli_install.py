"""Commands where nothing is installed yet, or no server answers."""

from __future__ import annotations

import json
import socket

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from pytrickle.catalog import install as migrate
from tests.commands import commands
from tests.conftest import Database


def test_install_says_what_it_applied_and_is_idempotent(every_empty_db: Database) -> None:
    run = commands(every_empty_db.dsn)
    first = run("install")
    assert (first.exit_code, first.stdout.count("Applied ")) == (0, len(migrate.scripts()))
    assert run("install").stdout == "The catalog is up to date.\n"
    assert json.loads(run("install", "--json").stdout) == {"applied": []}


@pytest.mark.parametrize("name", ["Loader", "etl-user", "me@example.com"])
def test_a_role_whose_name_needs_quotes_installs_upgrades_and_is_healthy(empty_db: Database, name: str) -> None:
    role = empty_db.create_role(name)
    empty_db.execute(f'GRANT CREATE ON DATABASE {empty_db.value("SELECT current_database()")} TO "{role}"')
    run = commands(make_conninfo(empty_db.dsn, user=role))
    assert run("install").exit_code == 0
    assert run("install").stdout == "The catalog is up to date.\n"
    with empty_db.connect() as connection:
        connection.execute("UPDATE pgtrickle.pgt_schema_version SET checksum = 'of before' WHERE name = 'functions'")
    assert run("install").stdout == "Applied functions.\n"
    found = {line["name"]: line["ok"] for line in json.loads(run("doctor", "--json").stdout)}
    assert found["rights"] and found["ownership"]


def test_the_printed_sql_installs_the_same_catalog(empty_db: Database) -> None:
    printed = commands("host=/nowhere")("install", "--print")
    assert printed.exit_code == 0
    with psycopg.connect(empty_db.dsn) as connection:
        connection.execute(printed.stdout.encode(), prepare=False)
    with empty_db.connect() as connection:
        migrate.verify(connection)


def test_the_doctor_exits_with_3_and_a_remedy_where_nothing_is_installed(empty_db: Database) -> None:
    result = commands(empty_db.dsn)("doctor")
    assert result.exit_code == 3
    assert "remedy: Run pytrickle install" in result.stdout


def test_a_missing_catalog_is_an_error_of_its_own(empty_db: Database) -> None:
    result = commands(empty_db.dsn)("status", "--json")
    assert (result.exit_code, json.loads(result.stderr)["type"]) == (1, "NotInstalled")


def test_no_command_shows_a_password() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    run = commands(f"postgresql://someone:s3cret@127.0.0.1:{port}/shop")
    for words in ("install", "uninstall --yes", "status", "doctor", "tick", "run --once", "history", "group list"):
        result = run(*words.split())
        assert result.exit_code in (1, 3), words
        assert "s3cret" not in result.output, words
