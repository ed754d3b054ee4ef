"""Previews and definitions under pg_trickle's names: nothing is left behind, and what is exported can be run."""

from __future__ import annotations

import json
from importlib.metadata import version

import pytest

from tests.mirror.conftest import Mirror
from tests.sql.checks import refused

PACKAGE = version("pytrickle-postgres")


@pytest.fixture
def tables(mirror: Mirror) -> Mirror:
    mirror.run("CREATE TABLE a (id integer, v integer)", "CREATE TABLE b (id integer)")
    return mirror


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("SELECT id, sum(v) FROM a GROUP BY id", {"dvm_supported": "true", "refresh_strategy": "DIFFERENTIAL"}),
        (
            "SELECT id, now() FROM a",
            {"dvm_supported": "false", "refresh_strategy": "FULL", "source_tables": "public.a"},
        ),
        (
            "SELECT id, random() FROM a",
            {
                "dvm_supported": "false",
                "dvm_rejection_reason": "the defining query calls the volatile function random()",
            },
        ),
        ("SELEC", {"dvm_supported": "false", "parse_error": 'syntax error at or near "SELEC"'}),
        ("SELECT 1 FROM nothing", {"parse_error": 'relation "nothing" does not exist'}),
        (
            "WITH RECURSIVE r AS (SELECT 1 AS n UNION SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r",
            {"recursive_cte": "true"},
        ),
    ],
)
def test_a_preview_says_what_would_become_of_a_query_and_creates_nothing(
    tables: Mirror, query: str, found: dict[str, str]
) -> None:
    before = tables.value("SELECT count(*) FROM pg_class")
    told = dict(tables.db.execute("SELECT property, value FROM pgtrickle.preview_stream_table(%s)", query))
    assert found.items() <= told.items()
    assert tables.value("SELECT count(*) FROM pg_class") == before
    assert tables.value("SELECT count(*) FROM pgtrickle.pgt_stream_tables") == 0


def test_a_preview_checks_the_schedule(tables: Mirror) -> None:
    with refused("22023"):
        tables.run("SELECT pgtrickle.preview_stream_table('SELECT id FROM a', 'whenever')")
    with refused("22004"):
        tables.run("SELECT pgtrickle.preview_stream_table(NULL)")


def test_a_query_is_validated_by_what_it_uses(tables: Mirror) -> None:
    query = "SELECT a.id, (SELECT max(v) FROM a), row_number() OVER () FROM a JOIN b USING (id)"
    found = {name: (result, level) for name, result, level in tables.rows(
        f"SELECT check_name, result, severity FROM pgtrickle.validate_query('{query}')")}  # fmt: skip
    assert found["resolved_refresh_mode"] == ("DIFFERENTIAL", "INFO")
    assert {"join", "aggregate", "window_function", "scalar_subquery"} <= found.keys()
    assert found["volatility"] == ("immutable", "INFO") and "set_op" not in found
    volatile = dict(tables.rows("SELECT check_name, severity FROM pgtrickle.validate_query('SELECT random() FROM a')"))
    assert (volatile["unsupported_construct"], volatile["volatility"]) == ("ERROR", "ERROR")
    assert tables.rows("SELECT check_name, severity FROM pgtrickle.validate_query('SELEC') LIMIT 1") == [
        ("dvm_parse_error", "ERROR")
    ]


DEFINITIONS = (
    "'plain', 'SELECT id FROM a'",
    """'"all ""of"" it"', $q$SELECT id, '$pgt$' AS text FROM a$q$, '*/5 * * * *', 'FULL', tier => 'warm',"""
    " fuse_ceiling => 7, watermark_gating => 'hold_back', require_watermark => true, gate_deadline => '90 min',"
    " statement_timeout => '5 s', diamond_consistency => 'none', watermark_tolerance => '1 day',"
    " schedule_timezone => 'Europe/Berlin'",
    "'lent', 'SELECT id FROM a', NULL, 'full', cdc_mode => 'trigger', append_only => true, partition_by => 'id',"
    " max_differential_joins => 3, max_delta_fraction => 0.5, fillfactor => 70, target_freshness => '5 seconds',"
    " pooler_compatibility_mode => true, orchestration_mode => 'external'",
)
SETTINGS = (
    "SELECT to_jsonb(t) - '{pgt_id,pgt_relid,view_relid,created_at,updated_at,view_stamp}'::text[]"
    " FROM pgtrickle.pgt_stream_tables AS t"
)


@pytest.mark.parametrize("arguments", DEFINITIONS)
def test_what_is_exported_makes_the_same_stream_table_anew(tables: Mirror, arguments: str) -> None:
    tables.run(f"SELECT pgtrickle.create_stream_table({arguments})")
    name = tables.value("SELECT stream_table FROM pgtrickle.stream_tables_info")
    before = tables.rows(SETTINGS)
    (text,) = tables.db.execute("SELECT pgtrickle.export_definition(%s)", name)[0]
    assert text == tables.db.execute("SELECT pgtrickle.stream_table_definition(%s)", name)[0][0]
    first, _, rest = text.partition("\n")
    assert first == f"-- DROP STREAM TABLE IF EXISTS {name};"
    tables.db.execute("SELECT pgtrickle.drop_stream_table(%s)", name)
    tables.run("SET search_path = pg_catalog", "SET TimeZone = 'Asia/Tokyo'", rest.rstrip(";"))
    tables.run("RESET search_path", "RESET TimeZone")
    assert [without_zone(row) for (row,) in tables.rows(SETTINGS)] == [without_zone(row) for (row,) in before]


def test_a_definition_is_there_as_an_object_too(tables: Mirror) -> None:
    tables.run("SELECT pgtrickle.create_stream_table('s', 'SELECT id FROM a', '1h', tier => 'cold', fuse_ceiling => 7)")
    spec = tables.value("SELECT pgtrickle.stream_table_spec('s')")
    by_number = tables.value("SELECT pgtrickle.stream_table_spec('s'::regclass)")
    options = {"schedule": "1h", "refresh_mode": "AUTO", "tier": "cold", "fuse_ceiling": "7"}
    assert spec["options"] == options | {"search_path": "pg_catalog, public"}
    assert (spec["schema"], spec["name"], spec["query"]) == ("public", "s", "SELECT id FROM a")
    assert spec == by_number
    unknown = "SELECT pgtrickle.stream_table_spec('nothing'), pgtrickle.stream_table_spec(0)"
    assert tables.rows(unknown) == [(None, None)]


def without_zone(row: dict[str, object]) -> dict[str, object]:
    """Leave out the zone of the session, which counts for cron schedules only, and settings that follow it."""
    cron = str(row["schedule"]).startswith("*")
    return {
        key: value for key, value in row.items() if key != "session_settings" and (cron or key != "schedule_timezone")
    }


def test_the_version_is_that_of_the_package(mirror: Mirror) -> None:
    assert mirror.value("SELECT pgtrickle.version()") == PACKAGE
    check = json.loads(mirror.value("SELECT pgtrickle.version_check()"))
    assert (check["library_version"], check["version_match"]) == (PACKAGE, True)
    assert check["mirrors"] == "pg_trickle 0.108.3"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1h30m", 5400), ("60", 60), ("2w", 1209600), ("5x", None), ("-5", None), ("s", None), ("", None), (None, None)],
)
def test_a_duration_is_read_as_pg_trickle_reads_it(mirror: Mirror, text: str | None, seconds: int | None) -> None:
    assert mirror.db.execute("SELECT pgtrickle.parse_duration_seconds(%s)", text) == [(seconds,)]


def test_what_has_no_rows_here_has_its_columns(mirror: Mirror) -> None:
    mirror.run("CREATE TABLE a (id integer)", "SELECT pgtrickle.create_stream_table('s', 'SELECT id FROM a')")
    for call in (
        "integration_capabilities()",
        "view_evolution_status()",
        "list_auxiliary_columns('s')",
        "pg_stat_progress_pgtrickle",
    ):
        assert mirror.rows(f"SELECT * FROM pgtrickle.{call}") == []
    assert mirror.rows("SELECT paused, capture_mode FROM pgtrickle.cdc_pause_status()") == [(False, "hold")]
