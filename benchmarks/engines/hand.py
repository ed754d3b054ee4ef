"""A job as one writes it by hand: two pinned reads over JDBC, a broadcast join, a grouping, and nothing to apply."""

import psycopg
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from benchmarks.data import Orders
from pytrickle.database import JdbcTarget, exported_snapshot, jdbc_target


def increments(spark: SparkSession, connection: psycopg.Connection, dsn: str, orders: Orders, after: int) -> pa.Table:
    """Compute what the changes behind a position of the change buffer add to each region."""
    target = jdbc_target(connection)
    with exported_snapshot(dsn) as snapshot:
        changes = f"SELECT customer_id, amount, pgt_weight FROM {buffer_of(connection, orders)} WHERE pgt_pos > {after}"
        delta = _read(spark, target, snapshot.name, changes)
        customers = _read(spark, target, snapshot.name, f"SELECT id, region FROM {orders.schema}.customers")
        joined = f.broadcast(delta).join(customers, f.col("customer_id") == f.col("id"))
        amount = f.col("amount") * f.col("pgt_weight")
        return joined.groupBy("region").agg(f.sum("pgt_weight"), f.sum(amount)).toArrow()


def buffer_of(connection: psycopg.Connection, orders: Orders) -> str:
    """Return the change buffer of the orders."""
    query = "SELECT buffer FROM pgtrickle.pgt_change_tracking WHERE source_relid = %s::regclass"
    row = connection.execute(query, [f"{orders.schema}.orders"]).fetchone()
    assert row is not None
    return str(row[0])


def _read(spark: SparkSession, target: JdbcTarget, snapshot: str, query: str) -> DataFrame:
    pinned = (
        "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY;"
        f" SET TRANSACTION SNAPSHOT '{snapshot}'; SET LOCAL jit = off"
    )
    options = {"sessionInitStatement": pinned, "fetchsize": "10000", **target.properties}
    return spark.read.format("jdbc").options(url=target.url, dbtable=f"({query}) AS q", **options).load()
