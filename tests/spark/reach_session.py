"""Refreshes through executors that no socket to the database opens for; run as a program, with a driver of its own."""

import os
import sys

import pytrickle
from pytrickle.errors import SparkCannotConnect

# Java opens the driver's sockets through a proxy then, and there is none; Spark's own messages go another way.
NOWHERE = "-DsocksProxyHost=127.0.0.1 -DsocksProxyPort=1 -DsocksNonProxyHosts=nobody"


def main(dsn: str, master: str) -> None:
    """Write what a refresh says of it."""
    options = f"{os.environ['SPARK_SUBMIT_OPTS']} {NOWHERE}"
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--conf 'spark.executor.extraJavaOptions={options}' pyspark-shell"
    with pytrickle.connect(dsn, engine="spark", spark_master=master) as client:
        try:
            client.refresh("copied")
        except SparkCannotConnect as error:
            sys.stdout.write(f"{error}\n{error.hint}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
