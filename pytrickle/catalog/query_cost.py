"""What PostgreSQL's planner says that a query costs, and how many rows it returns."""

from collections.abc import Iterable
from typing import Any

import psycopg
from psycopg.pq import PipelineStatus

from pytrickle.database import filled, settle, trusted

# What PostgreSQL before 18 adds for each step of a kind that is switched off, and that it takes for want of another.
SWITCHED_OFF = 1e10


def query_cost(connection: psycopg.Connection, query: str, settings: Iterable[str]) -> float | None:
    """Ask the planner, under some settings, what a query costs in its own units, without running it.

    None where PostgreSQL refuses to plan the query: running it will say why.
    """
    plan = _plan(connection, query, settings)
    return float(plan["Total Cost"]) % SWITCHED_OFF if plan else None


def expected_rows(connection: psycopg.Connection, query: str, settings: Iterable[str]) -> int | None:
    """Ask the planner, under some settings, how many rows a query returns, without running it; None as above."""
    plan = _plan(connection, query, settings)
    return int(plan["Plan Rows"]) if plan else None


def _plan(connection: psycopg.Connection, query: str, settings: Iterable[str]) -> dict[str, Any] | None:
    # A savepoint that is rolled back takes the settings with it.
    try:
        with connection.transaction(force_rollback=True):
            _settle(connection, settings)
            row = connection.execute(filled("EXPLAIN (FORMAT JSON) {query}", query=query)).fetchone()
    except psycopg.Error:
        return None
    return dict(row[0][0]["Plan"]) if row else None


def _settle(connection: psycopg.Connection, settings: Iterable[str]) -> None:
    """Set what a refresh sets; in a pipeline one by one, which does not wait for each there."""
    if connection.pgconn.pipeline_status is PipelineStatus.OFF:
        settle(connection, settings)
        return
    for setting in settings:
        connection.execute(trusted(setting))
