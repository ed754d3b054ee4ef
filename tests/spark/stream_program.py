"""Streams orders into PostgreSQL, from when it is told to until it is killed; run as a program, since a killed process
takes its Spark along."""

import sys
from pathlib import Path

from pytrickle.compute.spark.session import build_session
from pytrickle.config import Settings
from tests.spark.streams import LATENESS, Stream


def main(dsn: str, directory: str, form: str) -> None:
    """Run the query over what arrives in a directory, once a line has come in."""
    stream = Stream(Path(directory))
    session = build_session(Settings(spark_master="local[1]"))
    if sys.stdin.readline():
        stream.writer(stream.read(session), dsn, form, LATENESS).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
