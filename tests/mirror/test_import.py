"""import-from-pg-trickle: the calls that it writes recreate here what the extension's catalog holds."""

import json
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pytrickle.cli import app
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.servers import binaries

CATALOG = Path(__file__).with_name("extension.sql").read_text(encoding="utf-8")
SOURCES = """
    CREATE TABLE orders (id int PRIMARY KEY, region text, amount numeric(10, 2));
    CREATE TABLE lines (order_id int, line int, quantity int, PRIMARY KEY (order_id, line));
    CREATE TABLE links (a int, b int);
    INSERT INTO orders VALUES (1, 'north', 20), (2, 'south', 5);
    INSERT INTO lines VALUES (1, 1, 3);
    INSERT INTO links VALUES (1, 2), (2, 3)"""


def imported(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["import-from-pg-trickle", *arguments])
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


@pytest.fixture
def old(empty_db: Database) -> Database:
    """A database that the extension keeps stream tables in."""
    with empty_db.connect() as connection:
        connection.execute(CATALOG.encode())
    return empty_db


def dumped(old: Database, tmp_path: Path, *options: str) -> str:
    file = tmp_path / "shop.sql"
    pg_dump = binaries(old.version) / "pg_dump"
    subprocess.run([pg_dump, "--dbname", old.dsn, "--file", file, *options], check=True, capture_output=True)
    return str(file)


def named_sources(old: Database) -> list[str]:
    """What --source says of the numbers of base tables, which a dump does not name."""
    query = "SELECT '--source=' || oid || '=public.' || relname FROM pg_class WHERE relname = ANY (%s)"
    return [argument for (argument,) in old.execute(query, ["orders", "lines", "links"])]


def test_the_calls_recreate_stream_tables_groups_gates_and_watermarks(old: Database, db: Database) -> None:
    text = imported("--dsn", old.dsn)
    with db.connect() as connection:
        connection.execute(SOURCES)
        connection.execute(text.encode())
    tables = db.execute("SELECT pgt_name, schedule, refresh_mode, tier, fuse_ceiling, diamond_consistency, paused,"
                        " allow_circular FROM pgtrickle.pgt_stream_tables ORDER BY pgt_id")  # fmt: skip
    assert {name: rest for name, *rest in tables} == {
        "regions": ["1m", "AUTO", "hot", 5000, "atomic", False, False],
        "Top regions": ["calculated", "FULL", "warm", None, "none", True, False],
        "quantities": ["calculated", "AUTO", "hot", None, "atomic", False, False],
        "odd": ["*/5 * * * *", "DIFFERENTIAL", "hot", None, "atomic", False, False],
        "reach": ["1s", "DIFFERENTIAL", "hot", None, "atomic", False, True],
        "back": ["1s", "DIFFERENTIAL", "hot", None, "atomic", False, True],
    }
    assert db.value("SELECT defining_query FROM pgtrickle.pgt_stream_tables WHERE pgt_name = 'regions'") == (
        "SELECT region, sum(amount) AS amount\nFROM orders\nGROUP BY region"
    )
    assert db.execute("SELECT group_name, tolerance_secs, source_count FROM pgtrickle.watermark_groups()") == [
        ("order pipeline", 30.5, 2)
    ]
    watermarks = "SELECT source_table, (watermark AT TIME ZONE 'UTC')::text FROM pgtrickle.watermarks()"
    assert set(db.execute(watermarks)) == {("orders", "2026-03-01 12:05:00"), ("lines", "2026-03-01 11:55:00")}
    assert db.execute("SELECT source_table FROM pgtrickle.source_gates() WHERE gated") == [("links",)]
    assert db.execute("SELECT group_name, member_count, isolation FROM pgtrickle.refresh_groups()") == [
        ("dashboard", 2, "repeatable_read")
    ]
    assert db.execute("SELECT stream_table, channel FROM pgtrickle.list_subscriptions()") == [
        ("public.regions", "regions_changed")
    ]


def test_what_was_imported_refreshes_and_follows_its_queries(old: Database, db: Database) -> None:
    text = imported("--dsn", old.dsn)
    with db.connect() as connection:
        connection.execute(SOURCES)
        connection.execute(text.encode())
        connection.execute("SELECT pgtrickle.ungate_source('links')")
    with local_client(db.dsn) as (client, _):
        assert not [result for result in client.tick() if result.error]
        db.execute("INSERT INTO links VALUES (3, 4)")
        client.refresh("reach")
        client.resume('"Top regions"')
        client.refresh('"Top regions"')
        assert all(result.matches for result in client.verify())
    assert set(db.execute("SELECT * FROM reach")) == {(1, 2), (2, 3), (3, 4), (1, 3), (2, 4), (1, 4)}
    assert db.execute('SELECT * FROM "Top regions"') == [("north", 20)]


def test_a_dump_gives_the_same_calls_as_the_server(old: Database, tmp_path: Path) -> None:
    live = imported("--dsn", old.dsn)
    old.execute("DELETE FROM pgtrickle.pgt_refresh_groups")  # what the extension's dumps leave out
    expected = [
        line for line in live.splitlines() if "create_refresh_group" not in line and "ARRAY['public.regions" not in line
    ]
    file = dumped(old, tmp_path)
    found = imported("--dump", file, *named_sources(old)).splitlines()
    assert [line for line in found if line] == [line for line in expected if line]


def test_numbers_that_a_dump_does_not_name_are_asked_for(old: Database, tmp_path: Path) -> None:
    file = dumped(old, tmp_path)
    result = CliRunner().invoke(app, ["import-from-pg-trickle", "--dump", file])
    number = old.value("SELECT 'orders'::regclass::oid::int")
    assert (result.exit_code, result.stdout) == (1, "")
    assert str(number) in result.stderr and f"--source {number}=public.orders" in result.stderr.replace("\n", " ")
    result = CliRunner().invoke(app, ["import-from-pg-trickle", "--dump", file, "--source", "orders"])
    assert result.exit_code == 2


def test_sources_that_are_gone_are_left_out_and_named(old: Database) -> None:
    gone = old.value("SELECT 'gone'::regclass::oid::int")
    old.execute("UPDATE pgtrickle.pgt_watermark_groups SET source_relids = source_relids || 'gone'::regclass::oid")
    old.execute("INSERT INTO pgtrickle.pgt_watermarks VALUES ('gone'::regclass, '2026-01-01Z')")
    old.execute("DROP TABLE gone")
    text = imported("--dsn", old.dsn)
    assert f"-- Left out, since they are gone: {gone}." in text
    assert "ARRAY['public.lines', 'public.orders']" in text or "ARRAY['public.orders', 'public.lines']" in text


def test_what_has_no_counterpart_is_said(old: Database) -> None:
    old.execute("UPDATE pgtrickle.pgt_stream_tables SET temporal_mode = true, orchestration_mode = 'EXTERNAL'")
    text = imported("--dsn", old.dsn)
    for words in ("it was IMMEDIATE", "it kept the history", "it was partitioned", "it was refreshed from outside"):
        assert f"-- public.quantities: {words}" in text


def test_names_cannot_break_out_of_the_script(old: Database, db: Database) -> None:
    old.execute("""UPDATE pgtrickle.pgt_stream_tables SET pgt_name = E'x\nDROP TABLE orders; --', temporal_mode = true
        WHERE pgt_name = 'regions'""")
    old.execute('ALTER TABLE regions RENAME TO "x\nDROP TABLE orders; --"')
    old.execute("DELETE FROM pgtrickle.pgt_stream_tables WHERE pgt_name = 'Top regions'")
    with db.connect() as connection:
        connection.execute(SOURCES)
        connection.execute(imported("--dsn", old.dsn).encode())
    assert db.value("SELECT to_regclass('orders') IS NOT NULL")


def test_a_catalog_of_another_kind_is_refused(empty_db: Database, db: Database, old: Database, tmp_path: Path) -> None:
    ours = CliRunner().invoke(app, ["import-from-pg-trickle", "--dsn", db.dsn, "--json"])
    assert (ours.exit_code, json.loads(ours.stderr)["type"]) == (1, "CatalogError")
    custom = CliRunner().invoke(app, ["import-from-pg-trickle", "--dump", dumped(old, tmp_path, "--format=custom")])
    assert custom.exit_code == 1 and "pg_restore -f -" in custom.stderr
    old.execute("CREATE TABLE straße ()")
    latin = CliRunner().invoke(app, ["import-from-pg-trickle", "--dump", dumped(old, tmp_path, "--encoding=LATIN1")])
    assert latin.exit_code == 1 and "pg_dump --encoding=UTF8" in latin.stderr
    empty = tmp_path / "empty.sql"
    empty.write_text("-- nothing\n", encoding="utf-8")
    none = CliRunner().invoke(app, ["import-from-pg-trickle", "--dump", str(empty)])
    assert none.exit_code == 1 and "There is no catalog of the extension pg_trickle." in none.stderr
