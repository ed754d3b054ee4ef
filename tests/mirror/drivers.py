"""Client libraries of PostgreSQL, each as its users call it: one function of pgtrickle with parameters, committed."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pyspark
import pytest

from pytrickle.compute.spark.java import find_jdbc_jar
from tests.documents import ROOT

NODE_MODULES = (ROOT / ".venv/node/node_modules", Path("/usr/share/nodejs"))
NODE = """
const { Client } = require('pg');
const [dsn, query, given] = process.argv.slice(1);
const values = JSON.parse(given).map(value => value.moment ? new Date(value.moment) : value.plain);
const client = new Client({ connectionString: dsn });
client.connect().then(() => client.query(query, values)).then(() => client.end())
    .catch(error => { console.error(error.message); process.exit(1); });
"""


def call_with_psycopg(dsn: str, function: str, arguments: tuple[Any, ...], placeholder: str = "%s") -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute(statement(function, [placeholder] * len(arguments)).encode(), arguments)


def call_with_psycopg_in_binary(dsn: str, function: str, arguments: tuple[Any, ...]) -> None:
    call_with_psycopg(dsn, function, arguments, "%b")


def call_with_asyncpg(dsn: str, function: str, arguments: tuple[Any, ...]) -> None:
    """asyncpg asks the server for the types of the parameters, and encodes them accordingly."""
    import asyncpg

    async def call() -> None:
        connection = await asyncpg.connect(dsn)
        try:
            await connection.execute(statement(function, numbered(arguments)), *arguments)
        finally:
            await connection.close()

    asyncio.run(call())


def call_with_pg8000(dsn: str, function: str, arguments: tuple[Any, ...]) -> None:
    import pg8000.dbapi

    to = urlsplit(dsn)
    connection = pg8000.dbapi.connect(user=to.username, host=to.hostname, port=to.port, database=to.path[1:])
    try:
        connection.cursor().execute(statement(function, ["%s"] * len(arguments)), arguments)
        connection.commit()
    finally:
        connection.close()


def call_with_jdbc(dsn: str, function: str, arguments: tuple[Any, ...]) -> None:
    to = urlsplit(dsn)
    with java() as jvm:
        connection = jvm.java.sql.DriverManager.getConnection(
            f"jdbc:postgresql://{to.hostname}:{to.port}{to.path}", to.username, ""
        )
        try:
            prepared = connection.prepareStatement(statement(function, ["?"] * len(arguments)))
            for place, argument in enumerate(arguments, 1):
                if isinstance(argument, datetime):
                    moment = jvm.java.time.OffsetDateTime.parse(argument.isoformat())
                    prepared.setObject(place, moment)
                elif isinstance(argument, int):
                    prepared.setLong(place, argument)
                else:
                    prepared.setString(place, argument)
            prepared.execute()
        finally:
            connection.close()


@contextmanager
def java() -> Iterator[Any]:
    """Start a Java machine with PostgreSQL's driver, which the product's own search finds, and without Spark."""
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

    bridge = next((Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar"))
    driver = find_jdbc_jar()
    assert driver is not None, "scripts/bootstrap installs PostgreSQL's JDBC driver"
    port = launch_gateway(jarpath=str(bridge), classpath=driver, die_on_exit=True)
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
    try:
        yield gateway.jvm
    finally:
        gateway.shutdown()


def call_with_node(dsn: str, function: str, arguments: tuple[Any, ...]) -> None:
    node, modules = shutil.which("node"), next((at for at in NODE_MODULES if (at / "pg").is_dir()), None)
    if node is None or modules is None:
        pytest.skip("node's pg is not on this machine: scripts/bootstrap installs it where npm or apt has it")
    given = [{"moment": one.isoformat()} if isinstance(one, datetime) else {"plain": one} for one in arguments]
    command = [node, "-e", NODE, dsn, statement(function, numbered(arguments)), json.dumps(given)]
    finished = subprocess.run(
        command, env={**os.environ, "NODE_PATH": str(modules)}, capture_output=True, text=True, timeout=60
    )
    assert finished.returncode == 0, finished.stderr


def statement(function: str, placeholders: list[str]) -> str:
    return f"SELECT pgtrickle.{function}({', '.join(placeholders)})"


def numbered(arguments: tuple[Any, ...]) -> list[str]:
    return [f"${place}" for place in range(1, len(arguments) + 1)]


DRIVERS: dict[str, Callable[[str, str, tuple[Any, ...]], None]] = {
    "psycopg": call_with_psycopg,
    "psycopg in binary": call_with_psycopg_in_binary,
    "asyncpg": call_with_asyncpg,
    "pg8000": call_with_pg8000,
    "JDBC": call_with_jdbc,
    "node": call_with_node,
}
