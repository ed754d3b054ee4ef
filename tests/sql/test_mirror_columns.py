"""The tables and views of pg_trickle are here under their names, with its columns and their types."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import Database
from tests.documents import ROOT

COLUMNS = """
    SELECT a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_attribute AS a
    WHERE a.attrelid = to_regclass('pgtrickle.' || %s) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""


def _listed(name: str) -> dict[str, dict[str, str]]:
    """Return the columns and types of each relation in a file: its name in brackets, then one column in each line."""
    found: dict[str, dict[str, str]] = {}
    for line in (Path(__file__).parent / "mirrored" / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            found[line.strip("[]")] = columns = {}
        elif line and not line.startswith("#"):
            column, _, written = line.partition(" ")
            columns[column] = written
    return found


TABLES, VIEWS, ABSENT = _listed("tables.txt"), _listed("views.txt"), _listed("absent.txt")
# Where the page says that a column of a table is, or what stands for it.
ELSEWHERE = {
    "stream_tables_info": ("last_full_ms", "has_keyless_source", "tentative_frontier", "is_topk"),
    "pgt_cdc_status": ("slot_name", "decoder_confirmed_lsn", "transition_started_at"),
}


@pytest.mark.parametrize("table", TABLES)
def test_a_table_has_the_columns_that_scripts_for_pg_trickle_read(db: Database, table: str) -> None:
    found = dict(db.execute(COLUMNS, table))
    assert {name: found.get(name) for name in TABLES[table]} == TABLES[table]


@pytest.mark.parametrize("table", ABSENT)
def test_a_column_that_is_not_in_its_table_is_on_the_page_that_says_where_it_is(db: Database, table: str) -> None:
    assert not ABSENT[table].keys() & dict(db.execute(COLUMNS, table)).keys()
    page = (ROOT / "docs/howto/come-from-pg-trickle.md").read_text(encoding="utf-8")
    _, _, rows = page.partition(f"| `{table}` |")
    named = re.findall(r"`(\w+)`", "".join(row for row in re.split(r"\n(?=\| `)", rows)[0].splitlines()))
    assert ABSENT[table].keys() <= set(named)


@pytest.mark.parametrize("view", ELSEWHERE)
def test_a_view_has_the_columns_that_the_page_sends_readers_to(db: Database, view: str) -> None:
    assert set(ELSEWHERE[view]) <= dict(db.execute(COLUMNS, view)).keys()


def test_the_readers_of_a_source_are_known_through_all_that_changes_them(db: Database) -> None:
    db.execute("CREATE TABLE t (id int PRIMARY KEY, x int); CREATE TABLE u (id int)")
    numbers = [
        db.value(f"SELECT pgtrickle.create_stream_table('{name}', 'SELECT id FROM {source}')")
        for name, source in {"a": "t", "b": "t", "c": "a"}.items()
    ]
    tracked = (
        "SELECT source_relid::text, tracked_by_pgt_ids FROM pgtrickle.pgt_change_tracking"
        " WHERE source_relid::text IN ('t', 'u', 'a') ORDER BY 1"
    )
    a, b, c = numbers
    assert db.execute(tracked) == [("a", [c]), ("t", [a, b])]
    db.execute("SELECT pgtrickle.repair_capture('t')")
    assert db.execute(tracked) == [("a", [c]), ("t", [a, b])]
    db.execute("SELECT pgtrickle.alter_stream_table('b', query => 'SELECT id FROM u')")
    assert db.execute(tracked) == [("a", [c]), ("t", [a]), ("u", [b])]
    db.execute("SELECT pgtrickle.drop_stream_table('a', cascade => true)")
    assert db.execute(tracked) == [("u", [b])]


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_has_the_columns_of_pg_trickle_in_their_order(db: Database, view: str) -> None:
    assert db.execute(COLUMNS, view) == list(VIEWS[view].items())


def test_the_view_of_all_stream_tables_has_the_columns_of_the_table_as_pg_trickle_types_them(db: Database) -> None:
    found = dict(db.execute(COLUMNS, "stream_tables_info"))
    expected = TABLES["pgt_stream_tables"] | {"pgt_relid": "oid"}
    expected |= {"staleness": "interval", "stale": "boolean", "is_topk": "boolean", "has_keyless_source": "boolean"}
    assert {name: found.get(name) for name in expected} == expected


def test_a_column_that_is_derived_follows_ours(shop: Database) -> None:
    shop.execute(
        "UPDATE pgtrickle.pgt_stream_tables SET last_error = 'it failed', last_sqlstate = 'SQLSTATE 40P01',"
        " consecutive_failures = 2, reinitialize_reason = 'why', fuse_ceiling = 5, fuse_blown_at = '2026-01-01Z',"
        " last_skip_reason = 'too much', frontier_version = 1, tier = 'cold'"
    )
    assert shop.execute(
        "SELECT original_query = defining_query, requested_refresh_mode, is_populated, consecutive_errors,"
        " needs_reinit, refresh_tier, last_error_message, defining_search_path FROM pgtrickle.pgt_stream_tables"
    ) == [(True, "AUTO", True, 2, True, "cold", "it failed", "pg_catalog, public")]
    fuse = "SELECT fuse_mode, fuse_state, blown_at = '2026-01-01Z', blow_reason FROM pgtrickle.pgt_stream_tables"
    assert shop.execute(fuse) == [("on", "blown", True, "too much")]
    shop.execute("UPDATE pgtrickle.pgt_stream_tables SET fuse_blown_at = '-infinity'")
    assert shop.execute(fuse) == [("on", "armed", None, None)]


@pytest.mark.parametrize(
    ("error", "sqlstate", "code", "retryable"),
    [
        ("a", "SQLSTATE 55P03", "LOCK_TIMEOUT", True),
        ("A statement ran for longer than statement_timeout allows.", "SQLSTATE 57014", "STATEMENT_TIMEOUT", False),
        ("canceling statement due to user request", "SQLSTATE 57014", "CANCELLED", False),
        ("a", "SQLSTATE 40001", "SERIALIZATION", True),
        ("a", "SparkOutOfMemory", "OUT_OF_MEMORY", False),
        ("a", "RefreshConflict", "UNKNOWN_RETRYABLE", True),
        ("a", "SQLSTATE 08006", "UNKNOWN_RETRYABLE", True),
        ("division by zero", "SQLSTATE 22012", "PERMANENT", False),
        ("unknown time zone", None, "PERMANENT", False),
        (None, None, None, None),
    ],
)
def test_an_error_has_the_class_that_pg_trickle_gives_it(
    shop: Database, error: str | None, sqlstate: str | None, code: str | None, retryable: bool | None
) -> None:
    shop.execute("UPDATE pgtrickle.pgt_stream_tables SET last_error = %s, last_sqlstate = %s", error, sqlstate)
    shop.execute(
        "INSERT INTO pgtrickle.pgt_refresh_history (pgt_id, action, status, initiated_by, started_at, error, sqlstate)"
        " VALUES (1, 'FULL', 'FAILED', 'MANUAL', now(), %s, %s)",
        error,
        sqlstate,
    )
    found = [(code, retryable)]
    assert shop.execute("SELECT last_error_code, last_error_retryable FROM pgtrickle.pgt_stream_tables") == found
    assert shop.execute("SELECT error_code, retryable FROM pgtrickle.pgt_refresh_history") == found
    plain = sqlstate[9:] if sqlstate and sqlstate.startswith("SQLSTATE") else None
    assert shop.value("SELECT error_sqlstate FROM pgtrickle.pgt_refresh_history") == plain
