"""The Spark session: built lazily to our needs, or brought by the user and left as it is."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pytrickle.compute.spark.builder import configure_spark_with_pytrickle
from pytrickle.compute.spark.class_archive import ClassArchive
from pytrickle.compute.spark.gateway import JavaOutput, java_process, start_java
from pytrickle.compute.spark.java import find_java
from pytrickle.compute.spark.master import require_master
from pytrickle.compute.spark.sentence import sentence_of
from pytrickle.config import Settings
from pytrickle.errors import SparkFailed

CONFIGURATION = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.shuffle.partitions": "4",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",
    # Each table that is broadcast takes a page at least, which Spark does not account for. Its default, tens of
    # megabytes for however few rows, exhausts the driver: the delta of a join of ten tables has ninety such joins.
    "spark.buffer.pageSize": "2m",
}

# To compile what computes few rows takes Spark longer than to interpret it, and to plan it again after every stage
# longer than the rows take.
FOR_FEW_ROWS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}

# Executors of a cluster must reach the driver, those of a local master are in its process.
LOCAL = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def build_session(settings: Settings, archive: ClassArchive | None = None) -> SparkSession:
    """Start a Spark session for refreshes; raise JavaMissing or SparkFailed.

    Java takes its classes from the archive where there is one; that with which it does not start is removed.
    """
    if archive is None or not archive.exists:
        find_java()
        return start_session(settings)
    archive.touch()
    try:
        return start_session(settings, archive.use)
    except SparkFailed:
        if SparkContext._gateway is not None:
            raise
        archive.path.unlink(missing_ok=True)
        return start_session(settings)


def start_session(settings: Settings, java: str = "", **further: str) -> SparkSession:
    """Start a Spark session with further options of Java, and further settings of Spark; raise SparkFailed.

    Where this process has one, whoever started it, another one shares its Spark, and none of its settings.
    """
    if (running := _running()) is not None:
        return _beside(running, CONFIGURATION | further)
    _refuse_foreign_java()
    require_master(settings.spark_master)
    output = JavaOutput()
    try:
        builder = _configured(SparkSession.builder.appName("pytrickle"), settings, java, further)
        start_java(builder._options, output)
        return builder.getOrCreate()
    except (PySparkException, Py4JError, RuntimeError, OSError) as error:
        reason = _reason(error, settings.spark_master, output)
        _discard_stopped()
        raise SparkFailed(f"The Spark session could not be started: {reason}", "Run pytrickle doctor.") from error


def for_few_rows(session: SparkSession) -> SparkSession:
    """Return a session beside one of ours, by whose settings few rows are computed sooner.

    Settings of one session would be those of all lanes that compute in it at the same time.
    """
    return _beside(session, CONFIGURATION | FOR_FEW_ROWS)


def _refuse_foreign_java() -> None:
    """Raise SparkFailed where spark-submit should have started Java and has not told all that is needed to reach it."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return
    if not os.environ["PYSPARK_GATEWAY_PORT"].isdigit() or "PYSPARK_GATEWAY_SECRET" not in os.environ:
        raise SparkFailed(
            "The Spark session could not be started: PYSPARK_GATEWAY_PORT is set, but to no port of a Java whose"
            " secret PYSPARK_GATEWAY_SECRET has.",
            "Unset PYSPARK_GATEWAY_PORT, so that Java is started; only spark-submit sets both.",
        )


def _configured(
    builder: SparkSession.Builder, settings: Settings, java: str, further: dict[str, str]
) -> SparkSession.Builder:
    builder = builder.master(settings.spark_master)
    logging = Path(__file__).with_name("log4j2.properties").as_uri()
    builder = builder.config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={logging} {java}".rstrip())
    here = LOCAL if settings.spark_master.startswith("local") else {}
    for name, value in (CONFIGURATION | here | further).items():
        builder = builder.config(name, value)
    return configure_spark_with_pytrickle(builder, settings.jdbc_jar)


def _reason(error: Exception, master: str, output: JavaOutput) -> str:
    """Say why Spark did not start: what its Java wrote before it ended, else what it answered."""
    if "stopped SparkContext" in str(error):
        return f"the master {master} does not answer, or turned it away."
    said = output.why() if SparkContext._gateway is None else None
    return f"{(said or sentence_of(str(error))).rstrip('.')}."


def _running() -> SparkSession | None:
    """Return the session that whatever asks for one in this process gets."""
    session = SparkSession._instantiatedSession
    known = session is not None and session._sc._jsc is not None and _is_current(session)
    return session if known else None


def _is_current(session: SparkSession) -> bool:
    """Whether its Java is the one that this process knows: it forgets one that has died."""
    return SparkContext._gateway is not None and session._jvm is SparkContext._jvm


def _beside(running: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    session = running.newSession()
    for name, value in settings.items():
        if name.startswith("spark.sql."):
            session.conf.set(name, value)
    return session


def has_stopped(session: SparkSession) -> bool:
    """Whether its Spark has stopped in a Java that goes on: by itself, as where a cluster ends it, or by a call."""
    context = getattr(session, "_sc", None)
    return context is not None and _has_stopped(context)


def _has_stopped(context: SparkContext) -> bool:
    if context._jsc is None:
        return True
    with suppress(Py4JError, OSError):
        return bool(context._jsc.sc().isStopped())
    return False


def _discard_stopped() -> bool:
    """Forget the Spark of this process where it has stopped by itself; return whether it had."""
    context = SparkContext._active_spark_context
    if context is None or not _has_stopped(context):
        return False
    context.stop()
    return True


def forget_session(session: SparkSession) -> None:
    """Forget a session that is lost, so that another one can be built, unless one was since then.

    Its Java may have died, or Spark have stopped within it. A Java that goes on may run another session meanwhile, of
    whoever stopped this one.
    """
    if not _is_current(session):
        return
    java = java_process()
    if (java is None or java.poll() is None) and has_stopped(session):
        _discard_stopped()
        return
    if java is not None and java.stdin is not None:
        java.stdin.close()
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None
