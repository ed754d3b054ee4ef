"""The Spark engine, started when a refresh first needs it: most commands never do."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from logging import getLogger
from threading import Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING

import psycopg

from pytrickle.compute.spark.java import require_spark
from pytrickle.compute.staged import Staged
from pytrickle.config import EngineName, Settings
from pytrickle.database import JdbcTarget, current_target
from pytrickle.durations import length
from pytrickle.errors import PytrickleError, SparkLost, SparkOutOfMemory
from pytrickle.plan.refresh_plan import RefreshPlan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = getLogger("pytrickle.spark")
CHOSEN = "the engine is spark"


@dataclass(slots=True)
class LazyEngine:
    """Builds the session at the first plan, unless the user has one; several threads may compute at the same time.

    `of_few` computes few rows, if the session is ours. The stream tables `exceeding` the memory had more than expected.
    """

    settings: Settings
    session: SparkSession | None
    connection: Callable[[], psycopg.Connection]
    owned: bool = False
    of_few: SparkSession | None = None
    exceeding: set[int] = field(default_factory=set)
    lock: Lock = field(default_factory=Lock)

    def prepare(self) -> None:
        """Start Spark at once where all is to be computed by it, so that what is missing is said once, not per table.

        Raise PackageMissing, JavaMissing, JdbcDriverMissing, DatabaseOutOfReach or SparkFailed.
        """
        if self.settings.engine is EngineName.SPARK:
            self._started(current_target(self.connection(), self.settings.dsn), CHOSEN)

    def runs(self) -> bool:
        """Whether there is a session, so that a plan would not wait for its start."""
        return self.session is not None

    def start_beside(self) -> None:
        """Start Spark in a thread, for the time before there is work; what fails is said when Spark is needed."""
        target = current_target(self.connection(), self.settings.dsn)
        Thread(target=self._try_to_start, args=(target,), name="spark", daemon=True).start()

    def compute(
        self, plan: RefreshPlan, snapshot: str, settings: tuple[str, ...], staging: str | None = None
    ) -> Staged:
        """Compute a plan's rows on Spark; raise SparkFailed or ConfigError.

        A session of ours that is lost is forgotten, so that the next plan builds another one.
        """
        require_spark()
        from pytrickle.compute.spark.gateway import last_of_java
        from pytrickle.compute.spark.run import SparkEngine, moves_few
        from pytrickle.compute.spark.session import forget_session

        target = current_target(self.connection(), self.settings.dsn)
        session = self._started(target, plan.placement.engine_reason)
        pgt_id = plan.shape.definition.pgt_id
        exceeding = pgt_id in self.exceeding
        few = moves_few(plan) and not exceeding
        try:
            engine = SparkEngine(self._of_few(session) if few else session, target, few, exceeding)
            return engine.compute(plan, snapshot, settings, staging)
        except SparkOutOfMemory:
            self.exceeding.add(pgt_id)
            raise
        except SparkLost:
            self.exceeding.add(pgt_id)
            with self.lock:
                # Another lane may have found out before, and its successor must not be forgotten.
                if self.owned and self.session is session:
                    said = last_of_java()
                    forget_session(session)
                    self.session = self.of_few = None
                    log.warning("Spark was lost; the next refresh that needs it starts another one.")
                    if said:
                        log.warning("The last that its Java wrote: %s", said)
            raise

    def _of_few(self, session: SparkSession) -> SparkSession:
        """Return the session that computes few rows; one that the user has brought is used as it is."""
        from pytrickle.compute.spark.run import session_for_few

        with self.lock:
            if not self.owned or self.session is not session:
                return session
            if self.of_few is None:
                self.of_few = session_for_few(session)
            return self.of_few

    def _try_to_start(self, target: JdbcTarget) -> None:
        with suppress(PytrickleError):
            self._started(target, CHOSEN)

    def _started(self, target: JdbcTarget, why: str | None) -> SparkSession:
        require_spark()
        from pytrickle.compute.spark.class_archive import class_archive
        from pytrickle.compute.spark.reach import check_reach
        from pytrickle.compute.spark.run import translated
        from pytrickle.compute.spark.session import build_session
        from pytrickle.compute.spark.write_archive import start_writing

        with self.lock:
            if self.session is None:
                check_reach(target, self.settings.spark_master)
                archive = class_archive(self.settings)
                with _told(self.settings.spark_master, why):
                    self.session, self.owned = build_session(self.settings, archive), True
                if archive and not archive.exists:
                    atexit.register(start_writing, self.settings, target)
            elif target.is_loopback and not self.owned:
                with translated():
                    master = self.session.conf.get("spark.master") or ""
                check_reach(target, master)
            return self.session


@contextmanager
def _told(master: str, why: str | None) -> Iterator[None]:
    """Log that Spark starts, and how that ends."""
    began = monotonic()
    ends = {"event": {"ends": "Spark"}}
    log.info("Starting Spark (%s): %s.", master, why, extra={"event": {"begins": "Spark"}})
    try:
        yield
    except PytrickleError:
        log.debug("Spark has not started.", extra=ends)
        raise
    log.info("Spark has started after %s.", length(timedelta(seconds=monotonic() - began)), extra=ends)
