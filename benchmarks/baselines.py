"""What a differential refresh replaces: REFRESH MATERIALIZED VIEW, and a full recompute by Spark over JDBC."""

import psycopg
from psycopg import sql
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from benchmarks.data import Orders
from pytrickle.database import JdbcTarget, jdbc_target

FETCH_SIZE = "10000"
PARTITIONS = 8


def create_baselines(connection: psycopg.Connection, orders: Orders) -> None:
    """Create the materialized view of the measured query, and a table of its shape for Spark's results."""
    connection.execute(f"CREATE MATERIALIZED VIEW {orders.schema}.report_view AS {orders.query}")
    connection.execute(f"CREATE TABLE {orders.schema}.report_by_spark AS {orders.query} WITH NO DATA")


def refresh_materialized_view(connection: psycopg.Connection, orders: Orders) -> None:
    """Compute the query anew, all inside PostgreSQL."""
    connection.execute(sql.SQL("REFRESH MATERIALIZED VIEW {}").format(sql.Identifier(orders.schema, "report_view")))


def recompute_with_spark(spark: SparkSession, connection: psycopg.Connection, orders: Orders) -> None:
    """Compute the query anew in Spark: parallel reads by ctid ranges, a broadcast join, one transaction to replace."""
    target = jdbc_target(connection)
    grouped = (
        _read_in_parallel(spark, target, connection, f"{orders.schema}.orders")
        .join(f.broadcast(_read(spark, target, f"{orders.schema}.customers")), f.col("customer_id") == f.col("c_id"))
        .groupBy("region")
        .agg(f.count("*"), f.sum("amount"), f.avg("amount"))
    )
    rows = [tuple(row) for row in grouped.collect()]
    table = sql.Identifier(orders.schema, "report_by_spark")
    with connection.transaction(), connection.cursor() as cursor:
        cursor.execute(sql.SQL("TRUNCATE {}").format(table))
        with cursor.copy(sql.SQL("COPY {} FROM STDIN").format(table)) as copy:
            for row in rows:
                copy.write_row(row)


def _read(spark: SparkSession, target: JdbcTarget, table: str) -> DataFrame:
    properties = {**target.properties, "fetchsize": FETCH_SIZE}
    return spark.read.jdbc(target.url, table, properties=properties).withColumnRenamed("id", "c_id")


def _read_in_parallel(spark: SparkSession, target: JdbcTarget, connection: psycopg.Connection, table: str) -> DataFrame:
    row = connection.execute("SELECT pg_relation_size(%s) / current_setting('block_size')::bigint", [table]).fetchone()
    assert row is not None
    step = row[0] // PARTITIONS + 1
    ranges = [
        f"ctid >= '({first * step},0)'::tid AND ctid < '({(first + 1) * step},0)'::tid" for first in range(PARTITIONS)
    ]
    properties = {**target.properties, "fetchsize": FETCH_SIZE}
    return spark.read.jdbc(target.url, table, predicates=ranges, properties=properties)
