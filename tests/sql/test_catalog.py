"""House rules of the catalog, rights of ordinary roles, installing and uninstalling."""

from pathlib import Path

import pytest

from pytrickle.catalog import install as migrate
from tests.conftest import Database
from tests.sql.checks import refused

SQL = Path(__file__).parents[2] / "sql"
OURS = "('pgtrickle', 'pgtrickle_changes', 'pgtrickle_private', 'pgtrickle_sinks', 'pgtrickle_state')"
PREFLIGHTS = ("migrations/0001_catalog.sql", "functions/00_foundation/00_preflight.sql")
SINKS = {"claim_sink_batch", "create_sink_staging", "drop_sink", "drop_sink_staging"} | {
    *("staged_event_time", "staged_rows", "watermark_of"),
}
ABOUT_ONE_STREAM_TABLE = {
    *("get_refresh_history", "list_sources", "list_auxiliary_columns", "get_staleness", "diagnose_errors"),
    *("explain_st", "explain_refresh_mode", "export_definition", "stream_table_definition", "parse_duration_seconds"),
    *("explain", "explain_json", "explain_stream_table", "stream_table_spec"),
}
WITH_ARGUMENTS = (
    ABOUT_ONE_STREAM_TABLE
    | SINKS
    | {
        *("advance_watermark", "advance_batch", "assert_fresh", "wait_for", "watermark_history", "source_limits"),
        *("advance_partitions", "forget_partition"),
        *("reset_watermark", "reset_batch", "set_watermark_checks"),
        *("changes", "changes_of_versions", "advance_feed", "versions", "covers", "as_of_version"),
    }
)
PUBLIC_FUNCTIONS = WITH_ARGUMENTS | {
    *("dag", "feeds"),
    *("dependencies", "dependency_tree", "bootstrap_status", "refresh_timeline"),
    *("pgt_status", "problems", "running"),
    "refresh_groups",
    "refresh_history",
    "watermark_groups",
    "watermark_status",
    *("watermarks", "withdrawn_watermarks"),
    *("gate_source", "ungate_source", "mark_idle", "source_gates", "bootstrap_gate_status", "alerts"),
    "alert_limits",
    *("event_times", "late_rows", "replay_late_rows", "discard_late_rows", "watermark_metrics"),
    *("late_changes", "windows", "grant_loader", "revoke_loader"),
    *("adopt_source", "is_drained", "partitions"),
    *("st_refresh_stats", "pgtrickle_refresh_stats", "refresh_efficiency", "commit_latency_stats", "metrics_summary"),
    *("change_buffer_sizes", "trigger_inventory", "check_cdc_health", "cdc_pause_status", "shared_buffer_stats"),
    *("slot_health", "fuse_status", "pgt_scc_status", "freshness", "integration_capabilities"),
    *("view_evolution_status", "health_check", "health_summary", "version", "version_check", "explain_dag"),
    *("diamond_groups", "sla_summary"),
}
# What those call with the rights of their caller: it tells nothing that is not told to everybody.
INNER_FUNCTIONS = {
    *("catalog_owner", "qualified_name", "relation_named", "source_named", "known_stream_table", "stream_table_id"),
    "is_copied",
    *("stream_table_relation", "refuse_value", "check_choice", "late_limit", "reads_all", "check_reads_all"),
    *("distance", "readable_stream_table", "check_wait", "reach", "await_progress", "refuse_stale", "filled_at"),
    *("check_span", "read_moment", "row_limit", "incomplete_since", "check_there"),
    *("verdicts", "period_of", "without_values", "refresher_runs", "direct_sources", "dag_edges", "refresh_timing"),
    *("definition_text", "definition_json", "partition_state"),
    *("as_of_query", "cut_of_version", "check_not_rewritten", "check_group_at"),
    *("check_version", "check_same_buffer", "newest_version", "version_at", "version_ranges", "typed_changes_query"),
    *("pairs_of", "did_you_mean", "known_stream_tables", "known_groups", "known_tables"),
    *("readable_text", "readable_texts", "checked_format"),
    "refuse_unknown_group",
}
FOR_ONE_SOURCE = {
    "advance_watermark",
    "advance_batch",
    "watermark_history",
    "gate_source",
    "ungate_source",
    "mark_idle",
} | {
    *("replay_late_rows", "discard_late_rows", "grant_loader", "revoke_loader", "adopt_source"),
}


def run(db: Database, file: str) -> None:
    db.execute((SQL / file).read_text())


@pytest.mark.parametrize(
    "query",
    [
        "SELECT nspname FROM pg_namespace WHERE nspname IN {ours} AND obj_description(oid, 'pg_namespace') IS NULL",
        "SELECT oid::regclass FROM pg_class WHERE relnamespace::regnamespace::text IN {ours} AND relkind IN ('r', 'v') "
        "AND obj_description(oid, 'pg_class') IS NULL",
        "SELECT attrelid::regclass, attname FROM pg_attribute JOIN pg_class ON pg_class.oid = "
        "attrelid WHERE relnamespace = 'pgtrickle'::regnamespace "
        "AND relkind IN ('r', 'c') AND attnum > 0 AND col_description(attrelid, attnum) IS NULL",
        "SELECT oid::regprocedure FROM pg_proc WHERE pronamespace::regnamespace::text IN "
        "{ours} AND obj_description(oid, 'pg_proc') IS NULL",
        "SELECT oid::regtype FROM pg_type WHERE oid = 'pgtrickle.cut'::regtype AND "
        "obj_description(oid, 'pg_type') IS NULL",
    ],
    ids=["schemas", "relations", "columns", "functions", "types"],
)
def test_everything_has_a_comment(shop: Database, query: str) -> None:
    assert shop.execute(query.format(ours=OURS)) == []


def test_every_function_pins_its_search_path_except_the_inlinable_and_the_committing_one(shop: Database) -> None:
    unpinned = shop.execute(
        "SELECT proname::text, prosqlbody IS NOT NULL, prosecdef FROM pg_proc "
        f"WHERE pronamespace::regnamespace::text IN {OURS} "
        "AND prokind <> 'a' AND NOT COALESCE(array_to_string(proconfig, ';') ~ "
        "'search_path=pg_catalog(, pgtrickle, pgtrickle_private)?, pg_temp', false) ORDER BY 1"
    )
    # The names in a parsed body were resolved when it was created. What sets anything may not commit.
    assert unpinned == [("covers", True, False), ("create_and_load_stream_table", False, False)]


def test_a_backslash_in_a_function_is_one_whatever_its_caller_has_set(shop: Database) -> None:
    """Only strings that are written with an E have it in any case."""
    ((found, unpinned),) = shop.execute(
        "SELECT count(*), array_agg(proname::text) FILTER (WHERE NOT coalesce(proconfig @>"
        " '{standard_conforming_strings=on}', false))"
        f" FROM pg_proc WHERE pronamespace::regnamespace::text IN {OURS} AND regexp_replace(prosrc, %s, '', 'g') ~ %s",
        r"\mE'([^'\\]|\\.|'')*'|--[^\n]*",
        r"\\",
    )
    assert found > 20
    assert unpinned is None


def test_public_may_look_and_advance_and_nothing_else(shop: Database) -> None:
    granted = shop.execute(
        f"SELECT proname::text FROM pg_proc WHERE pronamespace::regnamespace::text IN {OURS} "
        f"AND has_function_privilege('public', oid, 'EXECUTE')"
    )
    assert {name for (name,) in granted} == PUBLIC_FUNCTIONS | INNER_FUNCTIONS
    tables = shop.execute(
        f"SELECT oid::regclass FROM pg_class WHERE relnamespace::regnamespace::text IN {OURS} "
        f"AND relkind IN ('r', 'v', 'S') "
        "AND CASE relkind WHEN 'S' THEN has_sequence_privilege('public', oid, 'USAGE, SELECT, UPDATE') "
        "ELSE has_table_privilege('public', oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER') END"
    )
    # The client compares versions before it does anything else, for loaders and monitors too.
    views = {f"pgt_readable_{what}" for what in ("errors", "history", "late_changes", "late_rows", "partitions")}
    mirrored = {"stream_tables_info", "refresh_history_info", "pgt_refresh_summary", "pg_stat_stream_tables"} | {
        *(
            "quick_health",
            "pgt_cdc_status",
            "pg_stat_pgtrickle",
            "pg_stat_progress_pgtrickle",
            "pgt_cost_model_summary",
        ),
    }
    assert {table for (table,) in tables} == {f"pgtrickle.{name}" for name in {"pgt_schema_version", *views, *mirrored}}
    writable = "has_table_privilege('public', oid, 'INSERT, UPDATE, DELETE, TRUNCATE')"
    ours = "relnamespace = 'pgtrickle'::regnamespace AND relkind IN ('r', 'v')"
    assert shop.execute(f"SELECT relname FROM pg_class WHERE {ours} AND {writable}") == []
    columns = shop.execute(
        "SELECT a.attname::text, p.privilege FROM pg_attribute AS a "
        "CROSS JOIN unnest('{SELECT,INSERT,UPDATE}'::text[]) AS p(privilege) "
        "WHERE a.attrelid = 'pgtrickle.pgt_calls'::regclass AND a.attnum > 0 "
        "AND has_column_privilege('public', a.attrelid, a.attnum, p.privilege) ORDER BY a.attnum"
    )
    assert columns == [("call", "INSERT"), ("source", "INSERT"), ("arguments", "INSERT"), ("result", "SELECT")]


def test_a_monitor_sees_states_but_no_errors_of_tables_it_may_not_read(shop: Database) -> None:
    shop.execute("UPDATE pgtrickle.pgt_stream_tables SET last_error = 'duplicate key (secret)'")
    shop.execute(
        "INSERT INTO pgtrickle.pgt_refresh_history (pgt_id, action, status, initiated_by, started_at, error) "
        "VALUES (1, 'FULL', 'FAILED', 'MANUAL', now(), 'duplicate key (secret)')"
    )
    shop.create_role("monitor")
    monitor = shop.connect()
    monitor.execute("SET SESSION AUTHORIZATION monitor")
    for function in sorted(PUBLIC_FUNCTIONS - WITH_ARGUMENTS - FOR_ONE_SOURCE):
        assert "secret" not in str(monitor.execute(f"SELECT * FROM pgtrickle.{function}()").fetchall())
    assert monitor.execute("SELECT * FROM pgtrickle.watermark_history('orders')").fetchall() == []
    assert monitor.execute("SELECT stream_table, decision FROM pgtrickle.pgt_status()").fetchall() == [
        ("public.report", "run")
    ]
    shop.execute("GRANT SELECT ON report, orders TO monitor")
    hidden = "SQLSTATE unknown; who may read all its sources sees the message"
    assert monitor.execute("SELECT last_error FROM pgtrickle.pgt_status()").fetchone() == (hidden,)
    shop.execute("GRANT SELECT ON order_lines TO monitor")
    assert monitor.execute("SELECT last_error FROM pgtrickle.pgt_status()").fetchone() == ("duplicate key (secret)",)
    assert monitor.execute("SELECT error FROM pgtrickle.refresh_history('report')").fetchone() == (
        "duplicate key (secret)",
    )


def test_a_hostile_search_path_gains_nothing_from_a_definer_function(shop: Database) -> None:
    shop.create_role("mallory")
    shop.execute("CREATE SCHEMA mallory AUTHORIZATION mallory")
    mallory = shop.connect()
    mallory.execute("SET SESSION AUTHORIZATION mallory")
    mallory.execute("CREATE TABLE mallory.ran (as_user text)")
    for name, result in (
        ("to_regclass(text)", "regclass"),
        ("quote_ident(text)", "text"),
        ("parse_ident(text)", "text[]"),
        ("current_setting(text)", "text"),
    ):
        mallory.execute(
            f"CREATE FUNCTION mallory.{name} RETURNS {result} LANGUAGE plpgsql AS "
            "'BEGIN INSERT INTO mallory.ran VALUES (current_user); RETURN NULL; END'"
        )
    mallory.execute("SET search_path = mallory, pg_catalog")
    mallory.execute("SELECT * FROM pgtrickle.refresh_history('report', 10, 'mallory, pg_catalog, public')")
    mallory.execute("SELECT * FROM pgtrickle.pgt_status()")
    for call in ("wait_for('report', now(), '0'", "assert_fresh('report', '1 hour'"):
        with refused("42501"):
            mallory.execute(f"SELECT pgtrickle.{call}, 'mallory, pg_catalog, public')")
    assert shop.execute("SELECT as_user FROM mallory.ran") == []


def test_history_is_newest_first_and_limited(shop: Database) -> None:
    shop.execute(
        "INSERT INTO pgtrickle.pgt_refresh_history (pgt_id, action, status, initiated_by, started_at) "
        "SELECT 1, 'NO_DATA', 'COMPLETED', 'SCHEDULER', now() FROM generate_series(1, 30)"
    )
    assert [i for (i,) in shop.execute("SELECT refresh_id FROM pgtrickle.refresh_history('report', 3)")] == [30, 29, 28]
    assert shop.value("SELECT count(*) FROM pgtrickle.refresh_history()") == 20
    with refused("42704"):
        shop.execute("SELECT * FROM pgtrickle.refresh_history('orders')")


@pytest.mark.parametrize("file", PREFLIGHTS)
def test_installing_beside_pg_trickle_is_refused(every_empty_db: Database, file: str) -> None:
    every_empty_db.execute(
        "INSERT INTO pg_extension (oid, extname, extowner, extnamespace, extrelocatable, "
        "extversion) VALUES (99999, 'pg_trickle', 10, 11, false, '1')"
    )
    with refused("55000", "DROP EXTENSION pg_trickle", "pg_trickle_installed"):
        run(every_empty_db, file)
    assert every_empty_db.value("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'pgtrickle%%' AND %s", True) == 0


@pytest.mark.parametrize("file", PREFLIGHTS)
def test_an_older_server_is_refused(every_empty_db: Database, file: str) -> None:
    """No such server at hand: the bound is raised instead of the server lowered."""
    script = (SQL / file).read_text().replace("< 150000", "< 990000")
    with refused("0A000", "Upgrade the server", "server_too_old"):
        every_empty_db.execute(script)


def test_functions_can_be_applied_again_at_any_time(shop: Database) -> None:
    shop.execute("INSERT INTO orders VALUES (1)")
    for path in sorted((SQL / "functions").rglob("*.sql")):
        shop.execute(path.read_text())
    assert shop.value("SELECT pgtrickle.capture_problem('orders')") is None


def test_uninstall_leaves_the_users_tables_and_nothing_of_ours(shop: Database) -> None:
    shop.execute("INSERT INTO orders VALUES (1)")
    shop.execute("UPDATE pgtrickle.pgt_stream_tables SET refresh_xid = NULL")
    run(shop, "uninstall.sql")
    assert shop.execute(f"SELECT nspname FROM pg_namespace WHERE nspname IN {OURS}") == []
    assert shop.execute("SELECT tgname FROM pg_trigger WHERE NOT tgisinternal") == []
    shop.execute("INSERT INTO orders VALUES (2)")
    shop.execute("INSERT INTO report VALUES (1, 'a stream table is a plain table now')")
    run(shop, "uninstall.sql")
    migrate.install(shop.connect())
    assert shop.value("SELECT count(*) FROM orders") == 2
