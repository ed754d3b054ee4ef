"""Running a plan: DataFrames in, staged batches out."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import spark_partition_id

from pytrickle.compute.spark.dataframes import consolidate, result_of
from pytrickle.compute.spark.gateway import how_java_ended
from pytrickle.compute.spark.jdbc import PinnedReader
from pytrickle.compute.spark.reach import cannot_connect
from pytrickle.compute.spark.sentence import sentence_of
from pytrickle.compute.spark.session import for_few_rows, has_stopped
from pytrickle.compute.spark.starved import unless_starved
from pytrickle.compute.staged import Staged
from pytrickle.database import JdbcTarget, stopped_by_limit
from pytrickle.database.messages import ERROR, SNAPSHOT_GONE, USER_REQUEST
from pytrickle.errors import (
    Canceled,
    ConfigError,
    ConnectionLost,
    EvaluationFailed,
    JdbcDriverMissing,
    PytrickleError,
    SparkFailed,
    SparkLost,
    SparkOutOfMemory,
    SparkTooNarrow,
)
from pytrickle.plan.apply_plan import PART
from pytrickle.plan.refresh_plan import PostgresQuery, RefreshPlan
from pytrickle.plan.spark.grouping import INEXACT
from pytrickle.plan.spark.leaves import FEW_ROWS, reads_few
from pytrickle.plan.spark.query import BROADCAST_TABLE, spark_query

OUT_OF_MEMORY = ("OutOfMemoryError", "Not enough memory to build and broadcast", "UNABLE_TO_ACQUIRE_MEMORY")

UNANSWERED = (Py4JNetworkError, ConnectionError)

TOO_NARROW = (INEXACT, "NUMERIC_VALUE_OUT_OF_RANGE", "ARITHMETIC_OVERFLOW")

JOB_CANCELED = "[SPARK_JOB_CANCELLED]"
SESSION_ENDED = ("FATAL: ", "An I/O error occurred while sending to the backend")
ENDED_HINT = "Nothing was changed, and a refresh is tried again; the server's log says who ended it."

SESSION_HINT = "Build it with pytrickle.configure_spark_with_pytrickle(builder), or add the jar to spark.jars."
CONNECTION = "FAILED_JDBC.CONNECTION"
UNREADABLE_KEY = "Could not read SSL key file"
KEY_HINT = (
    "Put it beside sslkey in PKCS-8 DER: openssl pkcs8 -topk8 -inform PEM -outform DER -in client.key"
    " -out client.pk8 -nocrypt, or with -v1 PBE-SHA1-3DES in place of -nocrypt for one with a password."
)


@dataclass(frozen=True, slots=True)
class SparkEngine:
    """A Spark session and the database it reads. If there are `few` rows, one task joins and groups them.

    Of whole tables the small ones are kept in memory, unless that was found to be `exceeding` it.
    """

    spark: SparkSession
    target: JdbcTarget
    few: bool = False
    exceeding: bool = False

    def compute(
        self, plan: RefreshPlan, snapshot: str, settings: tuple[str, ...], staging: str | None = None
    ) -> Staged:
        """Compute the rows that a plan stages, reading everything in one exported snapshot.

        With `staging`, Spark writes them to that table; without, they are returned. Raise SparkFailed, with the
        database's own sentence where the database refused.
        """
        reader = PinnedReader(self.spark, self.target, snapshot, settings)
        with unless_starved(self.spark), _unless_stopped(self.spark), translated(snapshot):
            keyed = _collect(_read(reader, plan.keyed)) if plan.keyed else None
            return Staged(self._rows(reader, plan, staging), keyed)

    def _rows(self, reader: PinnedReader, plan: RefreshPlan, staging: str | None) -> pa.Table | str:
        if plan.read is not None:
            return self._deliver(_read(reader, plan.read), reader, staging)
        delta_rows = None if plan.placement.stage.whole else plan.delta_rows
        table_rows = 0 if self.exceeding else BROADCAST_TABLE
        query = spark_query(plan.join, plan.grouping, delta_rows, self.few, table_rows)
        with result_of(query, reader) as frame:
            return self._deliver(frame, reader, staging)

    def _deliver(self, frame: DataFrame, reader: PinnedReader, staging: str | None) -> pa.Table | str:
        if staging is None:
            return _collect(frame)
        # Appends are not atomic across partitions, but nobody reads the staging table before all of them are done. What
        # comes twice, from tasks that Spark repeats, is told by its part and by the transaction of the task.
        options = {
            "url": self.target.url,
            "dbtable": staging,
            "batchsize": "5000",
            **self.target.reading(reader.settings),
        }
        options |= {"stringtype": "unspecified", "reWriteBatchedInserts": "true"}
        rows = frame.withColumn(PART, spark_partition_id())
        rows.write.format("jdbc").options(**options).mode("append").save()
        return staging


def session_for_few(session: SparkSession) -> SparkSession:
    """Return a session beside one of ours that computes few rows sooner; raise SparkLost or SparkFailed."""
    with _unless_stopped(session), translated():
        return for_few_rows(session)


def moves_few(plan: RefreshPlan) -> bool:
    """Whether a plan is expected to move few rows through Spark."""
    if plan.join:
        return reads_few(plan.join)
    return not plan.placement.stage.whole and plan.delta_rows < FEW_ROWS


def _read(reader: PinnedReader, postgres_query: PostgresQuery) -> DataFrame:
    frame = reader.read(postgres_query.query, postgres_query.settings)
    # Declared as one partition it needs no shuffle, so rows are consolidated within the task that reads.
    return consolidate(frame.coalesce(1)) if postgres_query.weighted else frame


def _collect(frame: DataFrame) -> pa.Table:
    return frame.toArrow()


@contextmanager
def _unless_stopped(session: SparkSession) -> Iterator[None]:
    """Raise SparkLost where Spark has stopped, of which each call says something else."""
    try:
        yield
    except (SparkFailed, AttributeError, AssertionError) as error:
        if has_stopped(session):
            raise SparkLost("The Spark session was lost: Spark has stopped.") from error
        raise


@contextmanager
def translated(snapshot: str = "") -> Iterator[None]:
    """Turn Spark's errors into SparkFailed, SparkLost, or JdbcDriverMissing where the session lacks the driver.

    What Spark could not read because the exported snapshot of this name was gone is a ConnectionLost.
    """
    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as error:
        # Whoever interrupts the program has Spark cancel its jobs and tell of these instead.
        if _follows(error, (KeyboardInterrupt,)):
            raise KeyboardInterrupt from error
        raise _lost(error) or _failed(error, snapshot) from error


def _follows(error: BaseException | None, kinds: tuple[type[BaseException], ...]) -> bool:
    """Whether an error is of some kinds, or came up while one of these was handled."""
    while error is not None and not isinstance(error, kinds):
        error = error.__context__
    return error is not None


def _lost(error: Exception) -> SparkLost | None:
    """A call that Java has not answered does not always say that it was the network, and PySpark may say otherwise."""
    known = isinstance(error, UNANSWERED)
    asked = known or type(error) is Py4JError or _follows(error, UNANSWERED)
    ended = how_java_ended() if asked else None
    if not known and not ended:
        return None
    return SparkLost(f"The Spark session was lost{f': its Java ended {ended}' if ended else ''}.")


def _failed(error: Exception, snapshot: str) -> PytrickleError:
    message = _message(error)
    if "org.postgresql.Driver" in message and ("ClassNotFound" in message or "No suitable driver" in message):
        return JdbcDriverMissing("The Spark session has no JDBC driver for PostgreSQL.", SESSION_HINT)
    if UNREADABLE_KEY in message:
        return ConfigError("The JDBC driver cannot read the key of the client's certificate.", KEY_HINT)
    if any(sign in message for sign in TOO_NARROW):
        return SparkTooNarrow("Spark's decimals are too narrow for a value or a sum of this refresh.")
    sentence = sentence_of(message)
    if known := stopped_by_limit(sentence) or cannot_connect(message, sentence) or _ended(message, sentence):
        return known
    # Servers name a snapshot that they do not find, in whatever language.
    if sentence in SNAPSHOT_GONE or (snapshot and snapshot in sentence):
        return ConnectionLost("The session that holds the snapshot of this refresh ended.", ENDED_HINT)
    # An end of the session is FATAL, and a canceled query says so: neither is about the query.
    said = (f"PSQLException: {severity}: {sentence}" for severity in ERROR)
    refused = any(each in message for each in said) and not sentence.startswith("canceling ")
    if not refused and any(sign in message for sign in OUT_OF_MEMORY):
        return SparkOutOfMemory("Spark could not compute the refresh: it ran out of memory.")
    kind = EvaluationFailed if refused else SparkFailed
    return kind(f"Spark could not compute the refresh: {sentence}")


def _ended(message: str, sentence: str) -> PytrickleError | None:
    """Return the error for what somebody ended while Spark computed: a statement, its job, or a session."""
    if sentence in USER_REQUEST:
        return Canceled(sentence, sqlstate="57014")
    if JOB_CANCELED in message:
        return Canceled("The Spark job of the refresh was canceled.", sqlstate="57014")
    if sentence.startswith(SESSION_ENDED):
        return ConnectionLost(f"A session that Spark read by was lost: {sentence}", ENDED_HINT)
    return None


def _message(error: Exception) -> str:
    """Return what Spark says; of a connection that failed, also the trace, for Spark does not say why."""
    trace = getattr(error, "_stackTrace", None) or getattr(error, "_stacktrace", None) or ""
    return f"{error}\n{trace}" if CONNECTION in str(error) else str(error)
