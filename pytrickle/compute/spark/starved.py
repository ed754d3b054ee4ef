"""An end to jobs of a cluster that has no executor: Spark waits for one for ever, and says so in no log of ours.

Meanwhile the refresh would hold its snapshot, so that the server could not vacuum.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from time import monotonic
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from pytrickle.errors import PytrickleError, SparkStarved

# In seconds. A cluster that starts machines when they are asked for takes minutes.
PATIENCE = 180.0
LOOK_EVERY = 5.0


@contextmanager
def unless_starved(session: SparkSession) -> Iterator[None]:
    """End what the block computes, and raise SparkStarved, where the cluster has no executor for a while."""
    context = getattr(session, "_sc", None)
    if context is None or context.master.startswith("local"):
        yield
        return
    watch = _Watch(context)
    context.addJobTag(watch.tag)
    watch.start()
    try:
        yield
    except PytrickleError as error:
        if watch.starved:
            raise SparkStarved(f"The cluster {context.master} has had no executor for {PATIENCE:.0f} s.") from error
        raise
    finally:
        watch.ended.set()
        with suppress(Py4JError, AttributeError):
            context.removeJobTag(watch.tag)


class _Watch(Thread):
    """Looks for executors every few seconds until it `ended`; where there were none for too long, it cancels."""

    def __init__(self, context: SparkContext) -> None:
        super().__init__(name="executors", daemon=True)
        self.context = context
        self.tag = f"pytrickle_{uuid4().hex}"
        self.ended = Event()
        self.starved = False

    def run(self) -> None:
        # A session that is lost says so to whoever computes.
        with suppress(Py4JError, AttributeError, OSError):
            self._look()

    def _look(self) -> None:
        seen = monotonic()
        while not self.ended.wait(LOOK_EVERY):
            if self._has_executors():
                seen = monotonic()
            elif monotonic() - seen >= PATIENCE:
                self.starved = True
                self.context.cancelJobsWithTag(self.tag)
                return

    def _has_executors(self) -> bool:
        """The driver is one of those that keep blocks."""
        return bool(self.context._jsc.sc().getExecutorMemoryStatus().size() > 1)
