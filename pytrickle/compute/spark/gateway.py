"""Spark's Java process: its output goes to a logger, for nothing of it belongs on a command's stderr; how it ended."""

import os
import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from logging import getLogger
from subprocess import Popen, TimeoutExpired
from threading import Thread
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway

log = getLogger("pytrickle.spark.java")
REMEMBERED = 100
# So many of the last lines say why it ended.
TELLING = 3
# A line of a stack trace.
FRAME = re.compile(r"\s+(at |\.\.\. \d+ more)")
# What every Java writes that Spark starts.
USUAL = re.compile(r"WARNING: Using incubator modules")
# A connection to a process breaks before the process is gone.
PATIENCE = 5.0
# By these Spark ends a Java in which a task, or one of its own threads, met an error that is not to be survived.
MEANING = {50: " (a fatal error)", 51: " (a fatal error)", 52: " (out of memory)"}
# Where one of these is set, Spark is not started by this process.
ELSEWHERE = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "PYSPARK_GATEWAY_PORT")


@dataclass(slots=True)
class JavaOutput:
    """What Java writes, logged line by line until it ends; `last` are the last lines."""

    last: deque[str] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    reader: Thread | None = None

    def pipe(self) -> int:
        """Return the end of a pipe for Java to write to, which is followed from now on."""
        reading, writing = os.pipe()
        self.reader = Thread(target=self._follow, args=(reading,), name="java", daemon=True)
        self.reader.start()
        return writing

    def why(self) -> str | None:
        """Return the last that a Java which has ended wrote."""
        if self.reader is not None:
            self.reader.join(1)
        telling = [line for line in self.last if not (FRAME.match(line) or USUAL.match(line))]
        return "; ".join(telling[-TELLING:]) or None

    def _follow(self, reading: int) -> None:
        with open(reading, encoding="utf-8", errors="replace") as output:
            for line in filter(None, map(str.rstrip, output)):
                self.last.append(line)
                log.debug("%s", line)


def start_java(options: Mapping[str, str], output: JavaOutput) -> None:
    """Start the Java process of a session with these options, unless this process has one or needs none."""
    if SparkContext._gateway or any(name in os.environ for name in ELSEWHERE):
        return
    conf = SparkConf().setAll(list(options.items()))
    writing = output.pipe()
    try:
        gateway = launch_gateway(conf, {"stdout": writing, "stderr": writing})  # type: ignore[no-untyped-call]
    finally:
        os.close(writing)
    gateway.output = output
    SparkContext._ensure_initialized(gateway=gateway, conf=conf)


def how_java_ended() -> str | None:
    """Return how the Java process of this process's Spark ended; None where it runs on, or is not ours to wait for."""
    java = java_process()
    if java is None:
        return None
    try:
        code = java.wait(PATIENCE)
    except TimeoutExpired:
        return None
    if code < 0:
        return f"by signal {-code}"
    return f"with exit code {code}{MEANING.get(code, '')}"


def last_of_java() -> str | None:
    """Return the last lines that the Java which was started here, and has ended, wrote."""
    output: JavaOutput | None = _kept("output")
    return output.why() if output else None


def java_process() -> Popen[bytes] | None:
    """Return the Java process that this process has started, be it through PySpark alone."""
    process: Popen[bytes] | None = _kept("proc")
    return process


def _kept(name: str) -> Any:
    """Return what was kept on the gateway; for any other name the gateway itself answers with something of Java's."""
    return vars(SparkContext._gateway).get(name) if SparkContext._gateway is not None else None
