"""Dagster: a stream table or source as an observable asset with its data time, and a check that it is complete.

Needs nothing of pytrickle's but this module and psycopg.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import isfinite
from typing import Any

import dagster as dg
import psycopg

# Of a stream table, through which event time it is complete, and how many refreshes it has seen; else of a source.
STANDING = """
SELECT EXTRACT(epoch FROM reached)::float8, COALESCE(refreshes, reached::text)
FROM (
    SELECT CASE WHEN t.pgt_id IS NULL THEN pgtrickle.watermark_of(%(name)s::text) ELSE t.effective_watermark END,
        t.frontier_version::text
    FROM (SELECT to_regclass(%(name)s) AS relid) AS named
    LEFT JOIN pgtrickle.stream_tables_info AS t ON t.pgt_relid = relid
) AS found (reached, refreshes)
"""
DATA_TIME = "dagster/data_time"


@dataclass(frozen=True, slots=True)
class Standing:
    """How far something is complete, in seconds since 1970, and a text that is another one when its data are others."""

    reached: float | None
    version: str | None

    @property
    def metadata(self) -> dict[str, Any]:
        """Return the data time as Dagster knows it; there is none where nobody has told it."""
        if self.reached is None or not isfinite(self.reached):
            return {}
        return {DATA_TIME: dg.MetadataValue.timestamp(self.reached)}


def stream_table_asset(name: str, *, dsn: str | dg.EnvVar = "", key: Any = None, **options: Any) -> dg.SourceAsset:
    """Make an asset of a stream table or source; each observation notes its data time and its data version.

    `dsn` is a connection string, or the variable that holds it; without one libpq's variables count. `key` is the
    asset's, without one the parts of the name; `options` are those of `dagster.observable_source_asset`.
    """

    @dg.observable_source_asset(key=dg.AssetKey(key or name.split(".")), **options)
    def observed() -> dg.ObserveResult:
        found = standing(name, dsn)
        version = dg.DataVersion(found.version) if found.version else None
        return dg.ObserveResult(metadata=found.metadata, data_version=version)

    return observed


def completeness_check(
    name: str, *, asset: Any, max_lag: timedelta, dsn: str | dg.EnvVar = "", **options: Any
) -> dg.AssetChecksDefinition:
    """Make a check that a stream table or source is complete through at least `max_lag` before now.

    `asset` is the asset or key it belongs to; `options` are those of `dagster.asset_check`.
    """

    @dg.asset_check(asset=asset, **{"name": "complete", **options})
    def complete() -> dg.AssetCheckResult:
        found = standing(name, dsn)
        wanted = (datetime.now(UTC) - max_lag).timestamp()
        passed = found.reached is not None and found.reached >= wanted
        told = f"{name} is complete through {_shown(found.reached)}; wanted is {_shown(wanted)}."
        return dg.AssetCheckResult(passed=passed, metadata=found.metadata, description=told)

    return complete


def standing(name: str, dsn: str | dg.EnvVar) -> Standing:
    """Ask the database how far a stream table or source is complete."""
    address = dsn.get_value() or "" if isinstance(dsn, dg.EnvVar) else dsn
    with psycopg.connect(address, autocommit=True) as connection:
        row = connection.execute(STANDING, {"name": name}).fetchone()
    return Standing(*row) if row else Standing(None, None)


def _shown(moment: float | None) -> str:
    if moment is None:
        return "nothing yet"
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d %H:%M:%SZ}" if isfinite(moment) else "all time"
