"""Refreshes through a standalone cluster, told what to do line by line; run as a program, with a driver of its own."""

import json
import sys
import time
from collections.abc import Iterator

import pytrickle
from pytrickle.compute.spark import starved
from pytrickle.plan.spark import reads

EXECUTORS = 2


def main(dsn: str, master: str, patience: str) -> None:
    """Read the word tick and answer each with what came of it, and the tasks that each executor has ended.

    A refresh waits for so many seconds where there is no executor.
    """
    starved.PATIENCE, starved.LOOK_EVERY = float(patience), 0.2
    reads.PAGES_PER_PART = 256
    with pytrickle.connect(dsn, engine="spark", spark_master=master) as client:
        client._engine.prepare()
        while len(list(_tasks())) < EXECUTORS:
            time.sleep(0.1)
        for line in sys.stdin:
            assert line.strip() == "tick"
            answer = [[each.stream_table, each.action, each.engine, each.error] for each in client.tick()]
            sys.stdout.write(json.dumps({"results": answer, "tasks": list(_tasks())}) + "\n")
            sys.stdout.flush()


def _tasks() -> Iterator[int]:
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    assert session is not None
    executors = session.sparkContext._jsc.sc().statusStore().executorList(False)
    for i in range(executors.size()):
        if executors.apply(i).id() != "driver":
            yield executors.apply(i).completedTasks()


if __name__ == "__main__":
    main(*sys.argv[1:])
