"""Write docs/reference/sql.md to standard output, from the comments in an installed catalog.

    scripts/sql_reference.py [DSN]

Without a DSN a throw-away server is started, as the tests do.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg

sys.path.insert(0, str(Path(__file__).parents[1]))

from scripts.database import catalog

HEAD = """# SQL

<!-- Written by scripts/sql_reference.py from the comments in the catalog; do not edit. -->

For whoever calls pytrickle from SQL: every function and table with its columns.

All of this is in the schema `pgtrickle`. Functions marked ● may be called by every role, the others by the role that
installed the catalog and its members (see [permissions](../howto/permissions.md)). Parameters named `search_path` take
the caller's own by default, so that unqualified names mean what they mean there. The SQLSTATEs are listed in
[errors](errors.md).
"""

TAIL = """## Catalog

Read it as you like; only pytrickle writes it. What the functions above call lies in the schema `pgtrickle_private` and
may change with any version.
"""

FUNCTIONS = {
    "Stream tables": (
        "create_stream_table",
        "create_and_load_stream_table",
        "alter_stream_table",
        "drop_stream_table",
        "refresh_stream_table",
        "refresh_if_stale",
        "reinitialize_stream_table",
        "pause_stream_table",
        "resume_stream_table",
        *("drain", "is_drained", "resume_after_drain", "quiesce", "pause_all", "resume_all"),
        *("pause_scheduler", "resume_scheduler", "set_orchestration_mode"),
    ),
    "More ways to create and alter": (
        *("create_or_replace_stream_table", "create_stream_table_if_not_exists", "create_stream_table_realtime"),
        *("create_stream_table_batch", "create_stream_table_cost_optimized", "create_stream_table_fast_append_only"),
        *("set_stream_table_refresh_policy", "set_stream_table_storage_policy", "set_stream_table_sla"),
        *("bulk_create", "bulk_alter_stream_tables", "bulk_drop_stream_tables"),
    ),
    "Readers": ("wait_for", "assert_fresh"),
    "Watermarks": (
        "advance_watermark",
        "advance_batch",
        *("advance_partitions", "partitions", "forget_partition"),
        *("reset_watermark", "reset_batch", "withdrawn_watermarks", "set_watermark_checks"),
        "mark_idle",
        "grant_loader",
        "revoke_loader",
        *("set_source_limits", "source_limits"),
        "watermarks",
        "watermark_history",
        "watermark_metrics",
    ),
    "Late data": (
        "set_event_time",
        "unset_event_time",
        "event_times",
        "late_rows",
        "replay_late_rows",
        "discard_late_rows",
    ),
    "Sinks": (
        *("claim_sink_batch", "create_sink_staging", "drop_sink_staging", "drop_sink"),
        *("staged_rows", "staged_event_time", "watermark_of"),
    ),
    "Feeds": (
        *("create_feed", "drop_feed", "advance_feed", "feeds", "versions"),
        *("changes", "changes_of_versions", "as_of_version"),
    ),
    "Source gates": ("gate_source", "ungate_source", "source_gates", "bootstrap_status", "bootstrap_gate_status"),
    "Watermark groups": (
        "create_watermark_group",
        "alter_watermark_group",
        "drop_watermark_group",
        "watermark_groups",
        "watermark_status",
        *("adopt_source", "forget_source"),
    ),
    "Refresh groups": ("create_refresh_group", "drop_refresh_group", "refresh_groups"),
    "Windows": ("windows", "late_changes"),
    "Failures": ("reset_fuse",),
    "Status": (
        *("preview", "pgt_status", "freshness", "problems", "running", "refresh_history"),
        *("dag", "dependencies", "gating_decision"),
    ),
    "Reports for scripts of pg_trickle": (
        *("get_refresh_history", "refresh_timeline", "get_staleness", "st_refresh_stats", "pgtrickle_refresh_stats"),
        *("refresh_efficiency", "commit_latency_stats", "metrics_summary", "fuse_status", "pgt_scc_status"),
        *("health_check", "health_summary", "diagnose_errors", "list_sources", "change_buffer_sizes"),
        *("shared_buffer_stats", "trigger_inventory", "check_cdc_health", "slot_health", "cdc_pause_status"),
        *(
            "list_auxiliary_columns",
            "dependency_tree",
            "diamond_groups",
            "explain_dag",
            "explain_st",
            "explain_refresh_mode",
        ),
        *("preview_stream_table", "validate_query", "export_definition", "stream_table_definition"),
        *("explain", "explain_json", "explain_stream_table", "stream_table_spec", "sla_summary"),
        *("version", "version_check", "parse_duration_seconds", "integration_capabilities"),
        "view_evolution_status",
    ),
    "Alerts": (
        *("alerts", "alert", "raise_alerts"),
        *("set_alert_limits", "reset_alert_limits", "alert_limits"),
    ),
    "Subscriptions": ("subscribe", "unsubscribe", "list_subscriptions"),
    "Cuts": ("covers", "cut_covers", "current_cut"),
    "Upkeep": (
        "capture_problem",
        "repair_capture",
        *("repair_stream_table", "rebuild_cdc_triggers", "restore_stream_tables"),
        "clean_change_buffers",
        "trim_history",
        "settle_grants",
        "adopt_cluster",
    ),
}

FUNCTION = """
SELECT pg_get_function_arguments(p.oid),
    CASE p.prokind WHEN 'p' THEN 'a procedure, for CALL' ELSE pg_get_function_result(p.oid) END,
    obj_description(p.oid, 'pg_proc'),
    EXISTS (SELECT FROM aclexplode(p.proacl) AS a WHERE a.grantee = 0 AND a.privilege_type = 'EXECUTE')
FROM pg_proc AS p WHERE p.pronamespace = 'pgtrickle'::regnamespace AND p.proname = %s
ORDER BY array_position(ARRAY['timestamptz', 'bigint', 'text']::regtype[], p.proargtypes[1]::regtype),
    p.oid::regprocedure::text
"""

ALL = "SELECT DISTINCT p.proname FROM pg_proc AS p WHERE p.pronamespace = 'pgtrickle'::regnamespace"

RELATIONS = """
SELECT c.oid, c.relname, obj_description(c.oid, 'pg_class') FROM pg_class AS c
WHERE c.relnamespace = 'pgtrickle'::regnamespace AND c.relkind IN ('r', 'c', 'v')
ORDER BY c.relkind, c.relname
"""

TYPE_COMMENT = "SELECT obj_description(('pgtrickle.' || quote_ident(%s))::regtype, 'pg_type')"

COLUMNS = """
SELECT attname, format_type(atttypid, atttypmod), col_description(attrelid, attnum)
FROM pg_attribute WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""


def main() -> None:
    """Print the reference."""
    with catalog() as connection:
        listed = {name for names in FUNCTIONS.values() for name in names}
        missing = {name for (name,) in connection.execute(ALL)} - listed
        if missing:
            raise SystemExit(f"List them in FUNCTIONS, or move them to pgtrickle_private: {', '.join(sorted(missing))}")
        parts = [HEAD, *_functions(connection), TAIL, *_relations(connection)]
    sys.stdout.write("\n".join(parts).rstrip("\n") + "\n")


def _functions(connection: psycopg.Connection) -> Iterator[str]:
    for section, names in FUNCTIONS.items():
        yield f"## {section}\n"
        for name in names:
            yield f"### {name}\n"
            for arguments, result, comment, public in connection.execute(FUNCTION, (name,)).fetchall():
                arguments = re.sub(r"(DEFAULT \S+?)::[a-z]+(\[\])?(?=,|$)", r"\1", arguments)
                yield f"```text\n{_signature(name, arguments, result)}\n```\n"
                yield f"{'● ' if public else ''}{comment}\n"


def _signature(name: str, arguments: str, result: str) -> str:
    """Lay a signature out in lines that fit a page."""
    line = f"{name}({arguments}) → {result}"
    if len(line) <= 110:
        return line
    if result.startswith("TABLE("):
        result = result.replace("TABLE(", "TABLE(\n    ").replace(", ", ",\n    ")
    if len(f"{name}({arguments})") > 110:
        arguments = "\n    " + arguments.replace(", ", ",\n    ") + "\n"
    return f"{name}({arguments}) → {result}"


def _relations(connection: psycopg.Connection) -> Iterator[str]:
    for oid, name, comment in connection.execute(RELATIONS).fetchall():
        said = comment or connection.execute(TYPE_COMMENT, (name,)).fetchall()[0][0]
        yield f"### {name}\n\n{said}\n"
        rows = [f"| `{column}` | {kind} | {text or ''} |" for column, kind, text in connection.execute(COLUMNS, (oid,))]
        yield "\n".join(["| column | type | |", "|---|---|---|", *rows]) + "\n"


if __name__ == "__main__":
    main()
