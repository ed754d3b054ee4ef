"""The demo's tables, its watermark group and its three reports, in a schema of their own."""

from contextlib import suppress
from datetime import timedelta

import psycopg

from pytrickle.client.client import Client
from pytrickle.errors import ConfigError, UnknownStreamTable, UnknownWatermarkGroup

SCHEMA = "pytrickle_demo"
GROUP = "demo_order_pipeline"
SOURCES = (f"{SCHEMA}.orders", f"{SCHEMA}.order_lines")
MODES = ("none", "gate", "hold_back")
MARK = "Made by pytrickle demo; dropped by it."

TABLES = f"""
CREATE SCHEMA {SCHEMA};
COMMENT ON SCHEMA {SCHEMA} IS '{MARK}';
CREATE TABLE {SCHEMA}.orders (
    id bigint PRIMARY KEY,
    customer text NOT NULL,
    placed_at timestamptz NOT NULL,
    total numeric(10, 2) NOT NULL
);
CREATE TABLE {SCHEMA}.order_lines (
    order_id bigint NOT NULL,
    number integer NOT NULL,
    quantity integer NOT NULL,
    price numeric(10, 2) NOT NULL,
    PRIMARY KEY (order_id, number)
);
"""

# The second branch gives every order an empty line, so that an order whose lines are missing is shown and can be seen
# to be incomplete: order_total is what the order says it costs, line_total what its lines add up to.
REPORT = f"""
SELECT o.id AS order_id, o.customer, o.placed_at, o.total AS order_total,
       sum(l.amount) AS line_total, sum(l.lines) AS lines
FROM {SCHEMA}.orders o
JOIN (
    SELECT order_id, quantity * price AS amount, 1 AS lines FROM {SCHEMA}.order_lines
    UNION ALL
    SELECT id AS order_id, 0 AS amount, 0 AS lines FROM {SCHEMA}.orders
) l ON l.order_id = o.id
GROUP BY o.id, o.customer, o.placed_at, o.total
"""


def report_name(mode: str) -> str:
    """Return the qualified name of the report with this watermark gating."""
    return f"{SCHEMA}.report_{mode}"


def create_reports(connection: psycopg.Connection, client: Client) -> None:
    """Create the tables, the watermark group and one report for each watermark gating.

    Whatever an earlier demo left behind is dropped first. Raises ConfigError if the schema is somebody else's.
    """
    drop_reports(connection, client)
    connection.execute(TABLES)
    client.create_watermark_group(GROUP, list(SOURCES), tolerance=timedelta(0))
    for mode in MODES:
        # A report that waits for watermarks must not show anything before the first ones.
        client.create_stream_table(
            report_name(mode),
            REPORT,
            refresh_mode="DIFFERENTIAL",
            watermark_gating=mode,
            require_watermark=mode != "none",
        )


def drop_reports(connection: psycopg.Connection, client: Client) -> None:
    """Drop everything `create_reports` made, as far as it is there."""
    row = connection.execute(
        "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = %s", [SCHEMA]
    ).fetchone()
    if row is not None and row[0] != MARK:
        raise ConfigError(
            f"The schema {SCHEMA} is not the demo's own.", "Rename it, or name another database with --dsn."
        )
    for mode in MODES:
        with suppress(UnknownStreamTable):
            client.drop_stream_table(report_name(mode))
    with suppress(UnknownWatermarkGroup):
        client.drop_watermark_group(GROUP)
    connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
