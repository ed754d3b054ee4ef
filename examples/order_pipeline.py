"""Two loaders at different paces and a report that never shows an order without its lines.

    python examples/order_pipeline.py "postgresql://user@localhost/shop"

Without an argument the libpq environment (PGHOST, PGDATABASE, …) says which database. Everything is made in a schema
named order_pipeline, which is replaced if it is there.
"""

import sys
from collections.abc import Iterable
from datetime import UTC, datetime

import psycopg

import pytrickle

SETUP = """
CREATE SCHEMA order_pipeline;
CREATE TABLE order_pipeline.orders (id bigint PRIMARY KEY, customer text NOT NULL, placed_at timestamptz NOT NULL);
CREATE TABLE order_pipeline.order_lines (order_id bigint NOT NULL, product text NOT NULL, amount numeric NOT NULL);
"""

REPORT = """
SELECT o.id, o.customer, count(*) AS lines, sum(l.amount) AS amount
FROM order_pipeline.orders o
JOIN order_pipeline.order_lines l ON l.order_id = o.id
GROUP BY o.id, o.customer
"""


def clock(time: str) -> datetime:
    """Return a time of the day that the example plays on."""
    return datetime.fromisoformat(f"2026-03-02 {time}").replace(tzinfo=UTC)


def load_orders(connection: psycopg.Connection, rows: Iterable[tuple[int, str, datetime]], complete: datetime) -> None:
    """Load orders and say through when they are complete: both are seen together, or neither is."""
    with connection.transaction(), connection.cursor() as cursor:
        cursor.executemany("INSERT INTO order_pipeline.orders VALUES (%s, %s, %s)", rows)
        cursor.execute("SELECT pgtrickle.advance_watermark('order_pipeline.orders', %s)", [complete])


def load_order_lines(connection: psycopg.Connection, rows: Iterable[tuple[int, str, str]], complete: datetime) -> None:
    """Load order lines by COPY, and advance their watermark in the same transaction."""
    with connection.transaction(), connection.cursor() as cursor:
        with cursor.copy("COPY order_pipeline.order_lines FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        cursor.execute("SELECT pgtrickle.advance_watermark('order_pipeline.order_lines', %s)", [complete])


def set_up(connection: psycopg.Connection, client: pytrickle.Client) -> None:
    """Make the two tables, the watermark group they form, and the report held back to where they agree."""
    names = {table.stream_table for table in client.stream_tables()}
    if "order_pipeline.report" in names:
        client.drop_stream_table("order_pipeline.report")
    if "order_pipeline" in {group.group_name for group in client.watermark_groups()}:
        client.drop_watermark_group("order_pipeline")
    connection.execute("DROP SCHEMA IF EXISTS order_pipeline CASCADE")
    connection.execute(SETUP)
    client.create_watermark_group("order_pipeline", ["order_pipeline.orders", "order_pipeline.order_lines"])
    client.create_stream_table("order_pipeline.report", REPORT, watermark_gating="hold_back", require_watermark=True)


def show(connection: psycopg.Connection, client: pytrickle.Client) -> None:
    """Refresh whatever is due and print the report."""
    client.tick()
    (report,) = (table for table in client.stream_tables() if table.stream_table == "order_pipeline.report")
    print(f"report, complete through {report.effective_watermark:%H:%M}:")
    for row in connection.execute("SELECT id, customer, lines, amount FROM order_pipeline.report ORDER BY id"):
        print("  order {} of {}: {} lines, {}".format(*row))


def main(dsn: str) -> None:
    """Play the morning of the two APIs."""
    pytrickle.install(dsn)
    with psycopg.connect(dsn, autocommit=True) as connection, pytrickle.connect(dsn) as client:
        set_up(connection, client)

        load_orders(connection, [(1, "Ada", clock("11:40")), (2, "Boole", clock("11:52"))], clock("11:55"))
        load_order_lines(connection, [(1, "pen", "2.50"), (1, "ink", "7.10"), (2, "paper", "4")], clock("11:55"))
        show(connection, client)

        # The orders API is ahead. Part of order 3's lines arrive early, but nobody has said that they are complete.
        load_orders(connection, [(3, "Codd", clock("11:58"))], clock("12:05"))
        connection.execute("INSERT INTO order_pipeline.order_lines VALUES (3, 'table', 120)")
        show(connection, client)

        load_order_lines(connection, [(3, "chair", "60")], clock("12:05"))
        show(connection, client)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
