"""Jobs as one writes them by hand: pinned reads over JDBC, a broadcast join, a grouping, and nothing to apply."""

import psycopg
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from benchmarks.data import Orders
from pytrickle.database import JdbcTarget, exported_snapshot, jdbc_target

# Two for each processor of the machine that the published figures are from.
TASKS = 4


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


def whole(spark: SparkSession, connection: psycopg.Connection, dsn: str, orders: Orders) -> pa.Table:
    """Compute the whole query; the orders are read in parallel, in ranges of pages."""
    target = jdbc_target(connection)
    with exported_snapshot(dsn) as snapshot:
        rows = f"(SELECT customer_id, amount, ctid FROM {orders.schema}.orders) AS q"
        properties = _options(target, snapshot.name)
        read = spark.read.jdbc(target.url, rows, predicates=_ranges(connection, orders), properties=properties)
        customers = _read(spark, target, snapshot.name, f"SELECT id, region FROM {orders.schema}.customers")
        joined = read.join(f.broadcast(customers), f.col("customer_id") == f.col("id"))
        return joined.groupBy("region").agg(f.count("*"), f.sum("amount"), f.avg("amount")).toArrow()


def _ranges(connection: psycopg.Connection, orders: Orders) -> list[str]:
    """Split the orders into a range of pages for each task."""
    query = "SELECT relpages FROM pg_class WHERE oid = %s::regclass"
    row = connection.execute(query, [f"{orders.schema}.orders"]).fetchone()
    assert row is not None
    step = row[0] // TASKS + 1
    return [f"ctid >= '({n * step},0)'::tid AND ctid < '({(n + 1) * step},0)'::tid" for n in range(TASKS)]


def buffer_of(connection: psycopg.Connection, orders: Orders) -> str:
    """Return the change buffer of the orders."""
    query = "SELECT buffer FROM pgtrickle.pgt_change_tracking WHERE source_relid = %s::regclass"
    row = connection.execute(query, [f"{orders.schema}.orders"]).fetchone()
    assert row is not None
    return str(row[0])


def _read(spark: SparkSession, target: JdbcTarget, snapshot: str, query: str) -> DataFrame:
    options = _options(target, snapshot)
    return spark.read.format("jdbc").options(url=target.url, dbtable=f"({query}) AS q", **options).load()


def _options(target: JdbcTarget, snapshot: str) -> dict[str, str]:
    pinned = (
        "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY;"
        f" SET TRANSACTION SNAPSHOT '{snapshot}'; SET LOCAL jit = off"
    )
    return {"sessionInitStatement": pinned, "fetchsize": "10000", **target.properties}
