"""A process that refreshes for the first time, and tells how long each part of that took; run by first_refresh.py.

`python -m benchmarks.engines.process DSN ENGINE STREAM_TABLE STARTED`, where STARTED is the `time.time()` of its start.
"""

import json
import sys
import time
from dataclasses import dataclass, field


@dataclass(slots=True)
class Laps:
    """Seconds between one call of `lap` and the next, by name."""

    last: float
    seconds: dict[str, float] = field(default_factory=dict)

    def lap(self, name: str) -> None:
        """End the part of that name."""
        now = time.time()
        self.seconds[name] = now - self.last
        self.last = now


def main(dsn: str, engine: str, name: str, started: str) -> None:
    """Write the seconds of each part as JSON, and end when Java has."""
    laps = Laps(float(started))
    import pytrickle.client.client

    laps.lap("imports")
    with pytrickle.connect(dsn, engine=engine, spark_master="local[2]") as client:
        laps.lap("catalog")
        if engine == "spark":
            _tell_of_java(laps)
            client._engine.prepare()
            laps.lap("session")
        client.refresh(name)
        laps.lap("refresh")
        sys.stdout.write(json.dumps(laps.seconds))
        if client._engine.session is not None:
            _end_java(client._engine.session)


def _tell_of_java(laps: Laps) -> None:
    """Note when Java runs, which Spark starts within the start of a session."""
    from pyspark.core import context

    launch = context.launch_gateway

    def timed(*arguments: object) -> object:
        gateway = launch(*arguments)  # type: ignore[arg-type]
        laps.lap("Java")
        return gateway

    context.launch_gateway = timed  # type: ignore[assignment]


def _end_java(session: object) -> None:
    """End Java as the end of this process would, but wait: it may have an archive to write."""
    java = session.sparkContext._gateway.proc  # type: ignore[attr-defined]
    session.stop()  # type: ignore[attr-defined]
    java.stdin.close()
    java.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
