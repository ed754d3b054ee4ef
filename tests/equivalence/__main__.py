"""A long run of random queries: python -m tests.equivalence --seed N --queries Q --batches B [--spark]."""

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from typing import Any

import psycopg

import pytrickle
from pytrickle.catalog import install as migrate
from pytrickle.client.client import Client
from pytrickle.config import Settings
from tests.conftest import TEMPLATE, Database
from tests.equivalence.grammar import CORE, WHOLE
from tests.equivalence.local_engine import local_client
from tests.equivalence.runs import Size, disable_jit, play, small_delta_rows
from tests.servers import NEWEST, OLDEST, Server

PER_DATABASE = 25


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.equivalence", description=__doc__)
    parser.add_argument("--seed", type=int, default=int(time.time()), help="seed of the first database")
    parser.add_argument("--queries", type=int, default=1000, help="how many stream tables in all")
    parser.add_argument("--batches", type=int, default=5, help="batches of changes per database")
    parser.add_argument("--spark", action="store_true", help="refresh through Spark rather than the tests' own engine")
    parser.add_argument("--core", action="store_true", help="only operators that have delta rules of their own")
    parser.add_argument("--newest", action="store_true", help="on the newest PostgreSQL rather than the oldest")
    return parser.parse_args()


@contextmanager
def _session(wanted: bool) -> Iterator[Any]:
    """Hold a Spark session, or None."""
    if not wanted:
        yield None
        return
    from pytrickle.compute.spark.session import build_session

    session = build_session(Settings(spark_master="local[2]"))
    session.conf.set("spark.sql.shuffle.partitions", "1")
    yield session
    session.stop()


@contextmanager
def _client(dsn: str, session: Any, seed: int) -> Iterator[Client]:
    if session is None:
        with local_client(dsn, small_delta_rows=small_delta_rows(seed)) as (client, _):
            yield client
    else:
        with pytrickle.connect(dsn, session, small_delta_rows=small_delta_rows(seed), direct_delta_rows=0) as client:
            yield client


@contextmanager
def _server(version: int) -> Iterator[Server]:
    server = Server(version)
    with psycopg.connect(server.create(TEMPLATE), autocommit=True) as connection:
        migrate.install(connection)
    server.close(TEMPLATE)
    yield server
    server.stop()


def _run(server: Server, session: Any, arguments: argparse.Namespace, seed: int) -> str:
    size = Size(min(PER_DATABASE, arguments.queries), arguments.batches)
    with server.database(TEMPLATE) as dsn:
        db = Database(dsn, server.version)
        disable_jit(db)
        with _client(dsn, session, seed) as client:
            world = play(db, client, seed, CORE if arguments.core else WHOLE, size)
            told = f"{len(world.differential)} of {size.queries} refreshed differentially, {dict(world.actions)}"
        db.close()
    return told


def main() -> int:
    """Run one database after another; at the first failure print what reproduces it and return 1."""
    arguments = _arguments()
    flags = "".join(f" --{name}" for name in ("spark", "core", "newest") if getattr(arguments, name))
    with _server(NEWEST if arguments.newest else OLDEST) as server, _session(arguments.spark) as session:
        for seed in range(arguments.seed, arguments.seed + ceil(arguments.queries / PER_DATABASE)):
            try:
                print(f"seed {seed}: {_run(server, session, arguments, seed)}", flush=True)
            except AssertionError as failure:
                size = f"--queries {min(PER_DATABASE, arguments.queries)} --batches {arguments.batches}"
                print(f"{failure}\n-- python -m tests.equivalence --seed {seed} {size}{flags}")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
