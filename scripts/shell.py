"""A sandbox: an embedded server with the demo's tables and stream tables, psql, and a Python prompt with `pt` ready."""

from __future__ import annotations

import code
import os
import shlex
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

import pytrickle
from pytrickle.database import connect
from pytrickle.demo.loaders import load_order_lines, load_orders
from pytrickle.demo.reports import SCHEMA, create_reports
from pytrickle.demo.server import Server, embedded_binaries, postgres_server
from pytrickle.demo.shop import Shop

OPEN_FOR = timedelta(minutes=2)
BEHIND = timedelta(seconds=20)

BANNER = """
An embedded PostgreSQL {version} is running, with the demo's tables in the schema {schema}: orders and order_lines
of the last two minutes, of which the lines end 20 seconds earlier, and three stream tables that were not refreshed yet:
report_none, report_gate and report_hold_back. It is gone when you leave (Ctrl-D).

    pt              the client: pt.status(), pt.tick(), pt.explain("report_gate"), help(pt)
    sql("SELECT …") runs a statement and returns its rows
    psql()          opens psql; in another terminal: {psql}
"""


def main() -> None:
    """Start the server, fill it, and leave the prompt to the user."""
    with postgres_server() as server:
        password_file = _password_file(server)
        command = _psql(server)
        pytrickle.install(server.dsn)
        with connect(server.dsn, role="shell") as connection, pytrickle.connect(server.dsn) as pt:
            create_reports(connection, pt)
            connection.execute(f"ALTER DATABASE postgres SET search_path = {SCHEMA}, public")
            _load(connection)
            names = {
                "pt": pt,
                "sql": partial(_run, connection),
                "psql": partial(_psql_in, command, password_file),
            }
            shown = f"PGPASSFILE={password_file} {shlex.join(command)}"
            connection.execute(f"SET search_path = {SCHEMA}, public")
            code.interact(BANNER.format(version=server.version, schema=SCHEMA, psql=shown), local=names, exitmsg="")


def _password_file(server: Server) -> Path:
    """Write the password to where psql reads it, so that it stands in no command line."""
    options = conninfo_to_dict(server.dsn)
    path = server.home / "pgpass"
    path.touch(mode=0o600)
    path.write_text(f"*:*:*:*:{options['password']}\n", encoding="utf-8")
    return path


def _psql(server: Server) -> list[str]:
    options = conninfo_to_dict(server.dsn)
    own = embedded_binaries() / "psql"
    program = str(own) if own.exists() else shutil.which("psql") or "psql"
    return [program, "-h", str(options["host"]), "-p", str(options["port"]), "-U", "postgres", "postgres"]


def _psql_in(command: list[str], password_file: Path) -> None:
    subprocess.run(command, env={**os.environ, "PGPASSFILE": str(password_file)}, check=False)


def _load(connection: psycopg.Connection) -> None:
    now = datetime.now(UTC)
    shop = Shop(opened_at=now - OPEN_FOR)
    for load in (load_orders, load_order_lines):
        load(connection, shop, shop.opened_at, now - BEHIND)
    load_orders(connection, shop, now - BEHIND, now)


def _run(connection: psycopg.Connection, statement: str) -> list[tuple[object, ...]]:
    cursor = connection.execute(statement.encode())
    return cursor.fetchall() if cursor.description else []


if __name__ == "__main__":
    main()
