"""The part of a Spark session's configuration that refreshes need, for sessions that users build."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytrickle.compute.spark.java import MAVEN_COORDINATE, find_jdbc_jar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def configure_spark_with_pytrickle(
    builder: SparkSession.Builder, jdbc_jar: str | None = None, extra_packages: Sequence[str] = ()
) -> SparkSession.Builder:
    """Add PostgreSQL's JDBC driver to a session builder and return it.

    The driver is `jdbc_jar`, else PYTRICKLE_JDBC_JAR, else the system's jar, else fetched from Maven; only then, or
    when `extra_packages` (Maven coordinates) are given, is spark.jars.packages set.
    """
    jar = find_jdbc_jar(jdbc_jar)
    packages = list(extra_packages)
    if jar:
        builder = builder.config("spark.jars", jar).config("spark.driver.extraClassPath", jar)
    else:
        packages.append(MAVEN_COORDINATE)
    return builder.config("spark.jars.packages", ",".join(packages)) if packages else builder
