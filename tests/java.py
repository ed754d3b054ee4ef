"""The one Spark session of a process of tests: what its Java wrote stands below the failure in which it ended."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest
from pyspark import SparkContext

from pytrickle.config import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What a test says whose Java is gone, or just going.
LOST = ("Connection refused", "Py4JNetworkError", "SparkLost")


class TestSession:
    """Starts Spark when a test first asks for it; after a test in which Java ended, the next one starts another."""

    __test__ = False
    running: SparkSession | None = None

    def session(self) -> SparkSession:
        """Return the session, whose Java runs."""
        from pytrickle.compute.spark.session import build_session, forget_session

        if self.running is not None and java_has_ended():
            forget_session(self.running)
            self.running = None
        if self.running is None:
            self.running = build_session(Settings(spark_master="local[2]"))
            self.running.conf.set("spark.sql.shuffle.partitions", "1")
        return self.running

    def stop(self) -> None:
        """Stop it, where it runs."""
        if self.running is not None and not java_has_ended():
            self.running.stop()


def java_has_ended() -> bool:
    """Whether the Java process of this process's Spark is gone."""
    java = getattr(SparkContext._gateway, "proc", None)
    return java is not None and java.poll() is not None


@pytest.fixture(scope="session")
def test_session() -> Iterator[TestSession]:
    """What holds the one Spark session of the run."""
    held = TestSession()
    yield held
    held.stop()


@pytest.fixture
def spark(test_session: TestSession) -> SparkSession:
    """The one Spark session of the run, started when a test first asks for it."""
    return test_session.session()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Print below a failure how Spark's Java ended, if it did, and all that it wrote last."""
    report = yield
    if report.failed and (java_has_ended() or any(sign in report.longreprtext for sign in LOST)) and (told := _told()):
        report.sections.append(("Spark's Java has ended", told))
    return report


def _told() -> str | None:
    from pytrickle.compute.spark.gateway import how_java_ended

    if SparkContext._gateway is None or (ended := how_java_ended()) is None:
        return None
    return "\n".join([f"It ended {ended}. The last that it wrote:", *SparkContext._gateway.output.last])
