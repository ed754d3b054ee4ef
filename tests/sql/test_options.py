"""Options are declared once for Python and the command line; SQL takes the same ones, and keeps them."""

from __future__ import annotations

from datetime import timedelta

from pytrickle.catalog.options import DECLARED
from tests.conftest import Database

ARGUMENTS = "SELECT proargnames FROM pg_proc WHERE oid = (SELECT 'pgtrickle.{}'::regproc)"
# Chosen by the defaults of create_stream_table, so that each is another value than the default.
OTHERS = {
    "schedule": "5m",
    "schedule_timezone": "Asia/Tokyo",
    "tier": "cold",
    "refresh_mode": "FULL",
    "watermark_gating": "gate",
    "require_watermark": True,
    "watermark_tolerance": timedelta(minutes=3),
    "batch_tolerance": 4,
    "gate_deadline": timedelta(hours=5),
    "diamond_consistency": "none",
    "diamond_schedule_policy": "slowest",
    "fuse_ceiling": 6,
    "allow_circular": True,
    "max_fixpoint_iterations": 7,
    "watermark_retention": timedelta(days=8),
    "statement_timeout": timedelta(seconds=9),
    "engine": "spark",
    "output_mode": "complete",
}
# The extension's own, which SQL takes for its scripts.
TAKEN = {
    *("cdc_mode", "append_only", "pooler_compatibility_mode", "partition_by", "max_differential_joins"),
    *("max_delta_fraction", "target_freshness", "fuse", "fuse_sensitivity"),
}
TAKEN_AT_CREATION = TAKEN | {
    *("initialize", "output_distribution_column", "temporal", "storage_backend", "fillfactor", "orchestration_mode"),
}
TAKEN_LATER = TAKEN | {"status", "post_refresh_action", "reindex_drift_threshold"}


def test_sql_takes_the_options_that_are_declared(db: Database) -> None:
    created = set(db.value(ARGUMENTS.format("create_stream_table")))
    assert created - {"name", "query", "search_path"} == set(DECLARED) | TAKEN_AT_CREATION
    altered = set(db.value(ARGUMENTS.format("alter_stream_table")))
    later = {name for name, (_, option) in DECLARED.items() if not option.at_creation}
    assert altered - {"name", "query", "search_path", "reset"} == later | TAKEN_LATER


def test_every_option_of_creation_is_stored(db: Database) -> None:
    # What depends on the query, and what the others exclude, is tested with the query and with append mode.
    assert OTHERS.keys() == DECLARED.keys() - {"window_end", "frozen_after", "close_after_idle"}
    db.execute("CREATE TABLE t (id integer)")
    given = ", ".join(f"{name} => %s" for name in OTHERS)
    db.value(f"SELECT pgtrickle.create_stream_table('s', 'SELECT id FROM t', {given})", *OTHERS.values())
    (stored,) = db.execute(f"SELECT {', '.join(OTHERS)} FROM pgtrickle.pgt_stream_tables")
    assert dict(zip(OTHERS, stored, strict=True)) == OTHERS
