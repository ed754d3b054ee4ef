"""The doctor's look at what Spark needs, and at Spark itself reading an exported snapshot."""

from __future__ import annotations

from pytrickle.compute.spark.class_archive import class_archive, is_given
from pytrickle.compute.spark.java import MAVEN_COORDINATE, find_jdbc_jar, require_spark
from pytrickle.config import Settings
from pytrickle.database import exported_snapshot, jdbc_target
from pytrickle.errors import JdbcDriverMissing, SparkFailed


def find_jar(settings: Settings) -> str:
    """Return the path of the JDBC driver on this machine; raise JdbcDriverMissing if there is none."""
    jar = find_jdbc_jar(settings.jdbc_jar)
    if jar is None:
        raise JdbcDriverMissing(f"No jar on this machine; Spark has to download {MAVEN_COORDINATE} when it starts.")
    return jar


def find_archive(settings: Settings) -> str:
    """Say whether there is an archive of Spark's classes, which makes starts faster."""
    if not settings.class_archive:
        return "switched off by the setting class_archive"
    if is_given():
        return "left to the options of Java in the environment"
    archive = class_archive(settings)
    if archive is None:
        return "none, for there is no directory of caches in which nobody else may write"
    if archive.exists:
        return f"{archive.path}, {archive.path.stat().st_size >> 20} MB"
    return "none yet; it is written after the first process that starts Spark has ended"


def read_pinned(settings: Settings) -> str:
    """Let Spark read a snapshot that this process exported.

    Raise SparkFailed if it cannot or saw another one, DatabaseOutOfReach where its executors never could, and
    PackageMissing where there is no PySpark.
    """
    require_spark()
    # Starting Spark takes seconds, so only those who ask for this check load it.
    from pytrickle.compute.spark.jdbc import PinnedReader
    from pytrickle.compute.spark.reach import check_reach
    from pytrickle.compute.spark.run import translated
    from pytrickle.compute.spark.session import build_session

    with exported_snapshot(settings.dsn) as snapshot, translated():
        target = jdbc_target(snapshot.connection)
        check_reach(target, settings.spark_master)
        spark = build_session(settings, class_archive(settings))
        reader = PinnedReader(spark, target, snapshot.name, settings=())
        rows = reader.read("SELECT pg_current_snapshot()::text AS seen").collect()
        version = spark.version
    if [row.seen for row in rows] != [snapshot.cut.snapshot]:
        raise SparkFailed("Spark read another snapshot than the exported one.", "Let JDBC reach the server directly.")
    return f"Spark {version} read the exported snapshot"
