"""A driver of Spark that refreshes through a cluster, as often as it is asked; run by cluster.py.

`python -m benchmarks.engines.driver DSN MASTER STREAM_TABLE` answers each line with the seconds that a refresh took.
"""

import sys

import pytrickle
from benchmarks.clock import stopwatch


def main(dsn: str, master: str, name: str) -> None:
    """Refresh once for each line, and write how long that took."""
    with pytrickle.connect(dsn, engine="spark", spark_master=master) as client:
        for _ in sys.stdin:
            sys.stdout.write(f"{stopwatch(lambda: _refresh(client, name))}\n")
            sys.stdout.flush()


def _refresh(client: pytrickle.Client, name: str) -> None:
    result = client.refresh(name)
    assert (result.error, result.engine) == (None, "spark")


if __name__ == "__main__":
    main(*sys.argv[1:])
