"""Differential refreshes after changes of several sizes, each beside REFRESH MATERIALIZED VIEW of the same query."""

from dataclasses import dataclass

import psycopg

from benchmarks.baselines import refresh_materialized_view
from benchmarks.clock import Timing, stopwatch
from benchmarks.data import Orders
from pytrickle.client.client import Client


@dataclass(frozen=True, slots=True)
class Refresh:
    """The refreshes after one size of change: how they were done, and what REFRESH MATERIALIZED VIEW took beside."""

    changed_rows: int
    actions: tuple[str, ...]
    differential: Timing
    materialized_view: Timing

    @property
    def speedup(self) -> float:
        """Return how many times faster the differential refresh was."""
        return self.materialized_view.median / self.differential.median


def stream_table(orders: Orders) -> str:
    """Return the name of the stream table over the measured query."""
    return f"{orders.schema}.report"


def measure_refresh(client: Client, connection: psycopg.Connection, orders: Orders, rows: int, rounds: int) -> Refresh:
    """Change `rows` rows and refresh both ways, `rounds` times after one round that warms up and does not count."""
    differential, materialized_view, actions = [], [], []
    changed = 0
    for _ in range(rounds + 1):
        changed = orders.change(connection, rows)
        orders.tidy(connection)
        result = client.refresh(stream_table(orders))
        differential.append(result.duration.total_seconds())
        actions.append(result.action)
        materialized_view.append(stopwatch(refresh_materialized_view, connection, orders))
    return Refresh(
        changed, tuple(sorted(set(actions[1:]))), Timing(tuple(differential[1:])), Timing(tuple(materialized_view[1:]))
    )
