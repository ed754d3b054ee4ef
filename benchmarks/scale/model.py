"""What one PostgreSQL with one refresher can be expected to carry, from measured unit costs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UnitCosts:
    """Seconds of work: of a quiet tick for each stream table, of a refresh at least, and for each change that it takes.

    `tick` is what a tick takes that looks at no stream table. The costs are those of one run on one machine.
    """

    tick: float
    quiet_table: float
    refresh: float
    change: float


@dataclass(frozen=True, slots=True)
class Load:
    """Stream tables, how many of them a tick refreshes, the changes per second, and the seconds between two ticks.

    `readers` is how many stream tables read a change, directly or through others: each takes it in for itself.
    """

    tables: int
    refreshed: int
    changes: float
    readers: float
    interval: float


def tick_seconds(costs: UnitCosts, load: Load) -> float:
    """Return how long a tick takes that follows the one before after `interval` seconds.

    >>> costs = UnitCosts(tick=0.01, quiet_table=0.0001, refresh=0.01, change=0.00001)
    >>> tick_seconds(costs, Load(tables=1000, refreshed=10, changes=1000, readers=2, interval=1))
    0.23
    """
    fixed = costs.tick + costs.quiet_table * load.tables + costs.refresh * load.refreshed
    return round(fixed + costs.change * load.changes * load.readers * load.interval, 6)


def busy(costs: UnitCosts, load: Load) -> float:
    """Return which part of the time a refresher works; from 1 on it falls behind, and each tick takes in more.

    >>> costs = UnitCosts(tick=0.01, quiet_table=0.0001, refresh=0.01, change=0.00001)
    >>> busy(costs, Load(tables=1000, refreshed=10, changes=1000, readers=2, interval=1))
    0.23
    """
    return round(tick_seconds(costs, load) / load.interval, 6)


def most_changes(costs: UnitCosts, load: Load) -> float:
    """Return how many changes per second can be kept up with: beyond, ticks become longer without end.

    Fewer ticks carry more, for what a tick takes anyway is then paid less often.

    >>> costs = UnitCosts(tick=0.01, quiet_table=0.0001, refresh=0.01, change=0.00001)
    >>> most_changes(costs, Load(tables=1000, refreshed=10, changes=0, readers=2, interval=1))
    39500.0
    >>> most_changes(costs, Load(tables=1000, refreshed=10, changes=0, readers=2, interval=10))
    48950.0
    >>> most_changes(costs, Load(tables=20000, refreshed=10, changes=0, readers=2, interval=1))
    0.0
    """
    fixed = costs.tick + costs.quiet_table * load.tables + costs.refresh * load.refreshed
    return round(max(0.0, load.interval - fixed) / (costs.change * load.readers * load.interval), 3)


def most_tables(costs: UnitCosts, interval: float, share: float = 1.0) -> int:
    """Return over how many stream tables a refresher can tick that often, if nothing changes.

    `share` is which part of the time it may work at most.

    >>> most_tables(UnitCosts(tick=0.01, quiet_table=0.0001, refresh=0.01, change=0.00001), interval=1, share=0.5)
    4900
    """
    return max(0, int((interval * share - costs.tick) / costs.quiet_table + 1e-9))


# What was measured of one process that refreshes in PostgreSQL, on a machine of two cores: docs/benchmarks-scale.md for
# ticks, docs/benchmarks-engines.md for refreshes, of 100 changes and of 50,000.
IN_POSTGRESQL = UnitCosts(tick=0.005, quiet_table=0.00002, refresh=0.012, change=0.000003)
