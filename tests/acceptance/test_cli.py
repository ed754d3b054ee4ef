"""The command line against a real server and, where rows are computed, a real Spark."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from xml.etree import ElementTree

import pytest
from psycopg.conninfo import make_conninfo

from tests.commands import Run, commands
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.repeats import first

MAIN = [sys.executable, "-c", "from pytrickle.cli import main; main()"]
QUERY = "SELECT region, sum(amount) AS total FROM orders JOIN lines ON order_id = id GROUP BY region"


@pytest.fixture
def shop(db: Database) -> Database:
    return create_tables(db)


def create_tables(db: Database) -> Database:
    db.execute("CREATE TABLE orders (id int PRIMARY KEY, region text)")
    db.execute("CREATE TABLE lines (order_id int, amount numeric)")
    db.execute("INSERT INTO orders VALUES (1, 'north'), (2, 'south')")
    db.execute("INSERT INTO lines VALUES (1, 10), (1, 2.5), (2, 7)")
    return db


@pytest.fixture
def run(shop: Database) -> Run:
    return commands(shop.dsn)


@pytest.fixture
def gated(run: Run) -> Run:
    """A report over two sources whose watermarks are five minutes apart."""
    return gate(run)


@pytest.fixture(scope="module")
def steady(steady_db: Database) -> Run:
    """The same for tests that leave it as it is, and share it."""
    return gate(commands(create_tables(steady_db).dsn))


def gate(run: Run) -> Run:
    for arguments in (
        ("group", "create", "pipeline", "orders", "lines", "--tolerance", "30 seconds"),
        ("create", "report", QUERY),
        ("watermark", "advance", "orders", "2026-01-01T12:05:00Z"),
        ("watermark", "advance", "lines", "2026-01-01T12:00:00Z"),
    ):
        assert run(*arguments).exit_code == 0, arguments
    return run


def test_verify_of_all_goes_on_after_a_broken_table_and_names_it(run: Run, shop: Database) -> None:
    for name in ("first", "second", "third"):
        assert run("create", name, QUERY).exit_code == 0
    assert run("tick").exit_code == 0
    shop.execute("ALTER EVENT TRIGGER pgtrickle_drops DISABLE; DROP TABLE second")
    result = run("verify", "--json")
    assert result.exit_code == 3
    found = {row["stream_table"]: row for row in json.loads(result.stdout)}
    assert [row["matches"] for row in found.values()] == [True, False, True]
    assert "dropped" in found["public.second"]["error"] or "lost" in found["public.second"]["error"]
    assert "broken" in run("verify").stdout
    assert run("verify", "first", "third").exit_code == 0
    shop.execute("SELECT pgtrickle.repair_capture('orders')")
    pending = run("verify", "first")
    assert (pending.exit_code, "pending" in pending.stdout) == (0, True)


def test_uninstall_removes_the_catalog_and_leaves_the_tables(run: Run, shop: Database) -> None:
    assert run("create", "report", QUERY).exit_code == 0
    assert run("uninstall", "--yes").stdout == "Removed the catalog.\n"
    assert shop.value("SELECT to_regnamespace('pgtrickle')") is None
    shop.execute("INSERT INTO orders VALUES (3, 'east')")
    assert shop.value("SELECT count(*) FROM orders") == 3
    again = run("uninstall", "--yes", "--json")
    assert (again.exit_code, json.loads(again.stderr)["type"]) == (1, "NotInstalled")


def test_a_stream_table_that_is_created_with_initialize_has_its_rows(
    run: Run, shop: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTRICKLE_ENGINE", "postgres")
    created = run("create", "report", QUERY, "--initialize", "--json")
    assert (created.exit_code, json.loads(created.stdout)["action"]) == (0, "FULL")
    assert sorted(shop.execute("TABLE report")) == sorted(shop.execute(QUERY)) != []


def test_the_doctor_finds_an_installed_database_healthy(shop: Database) -> None:
    result = commands(shop.dsn)("doctor", "--json")
    problems = [check for check in json.loads(result.stdout) if not check["ok"]]
    assert (result.exit_code, problems) == (0, [])


def test_the_doctor_lets_spark_read_a_pinned_snapshot(run: Run) -> None:
    result = run("doctor", "--spark")
    assert result.exit_code == 0, result.stdout
    assert "read the exported snapshot" in result.stdout


def test_status_tells_who_waits_for_whom_and_can_fail_on_it(gated: Run) -> None:
    screen = gated("status").stdout
    for text in ("pipeline", "apart", "5 min", "public.lines", "public.report", "gated", "lines is 5 min behind"):
        assert text in screen, text
    assert gated("status", "--fail-on", "gated").exit_code == 3
    assert gated("status", "--fail-on", "error").exit_code == 0
    document = json.loads(gated("status", "--json").stdout)
    assert document["groups"][0]["lag"] == 300.0
    assert document["stream_tables"][0]["decision"] == "gated"


def test_watermarks_are_listed_with_their_history(gated: Run) -> None:
    assert gated("watermark", "advance", "lines", "infinity").exit_code == 0
    listed = json.loads(gated("watermark", "list", "--json").stdout)
    assert [row["watermark"] for row in listed if row["source"] == "public.lines"] == ["infinity"]
    assert "infinity" in gated("watermark", "list").stdout
    history = json.loads(gated("watermark", "history", "lines", "--json").stdout)
    assert len(history) == 2
    assert len(json.loads(gated("watermark", "history", "lines", "--limit", "1", "--json").stdout)) == 1


def test_groups_are_altered_listed_and_dropped(gated: Run) -> None:
    assert gated("group", "alter", "pipeline", "--tolerance", "10m", "--source", "orders").exit_code == 0
    (group,) = json.loads(gated("group", "list", "--json").stdout)
    assert (group["sources"], group["tolerance"]) == (["public.orders"], 600.0)
    assert gated("group", "drop", "pipeline").exit_code == 0
    assert gated("group", "list").stdout == "No watermark group yet.\n"


def test_a_stream_table_is_altered_and_dropped(gated: Run, shop: Database) -> None:
    assert gated("alter", "report", "--watermark-gating", "none", "--schedule", "5m").exit_code == 0
    (table,) = json.loads(gated("status", "--json").stdout)["stream_tables"]
    assert (table["watermark_gating"], table["decision"], table["schedule"]) == ("none", "run", "5m")
    assert gated("drop", "report").exit_code == 0
    assert shop.value("SELECT to_regclass('report')") is None


@pytest.mark.parametrize(
    ("arguments", "sqlstate"),
    [
        (("watermark", "advance", "nowhere", "2026-01-01T00:00Z"), "42P01"),
        (("watermark", "advance", "orders", "2026-01-01T12:00Z"), "22000"),
        (("group", "create", "pipeline", "orders"), "42710"),
        (("group", "create", "twice", "orders", "orders"), "22023"),
        (("group", "drop", "nothing"), "42704"),
        (("create", "report", "SELECT 1"), "42P07"),
        (("create", "broken", "SELECT FROM WHERE"), "42601"),
        (("create", "dice", "SELECT random() FROM orders"), "0A000"),
        (("create", "later", "SELECT 1", "--schedule", "sometimes"), "22023"),
        (("alter", "nothing", "--schedule", "5m"), "42704"),
        (("create", "broken", "SELECT * FROM pgtrickle.nothing"), "42P01"),
        (("gate", "pgtrickle.nothing"), "42P01"),
        (("refresh-group", "drop", "pgtrickle.nothing"), "42704"),
        (("drop", "nothing"), "42704"),
        (("refresh", "nothing"), "42704"),
        (("verify", "nothing"), "42704"),
        (("explain", "nothing"), "42704"),
        (("wait", "nothing", "2026-01-01T12:00Z"), "42704"),
        (("assert-fresh", "nothing", "5m"), "42704"),
    ],
)
def test_bad_input_is_a_typed_error_with_a_hint(steady: Run, arguments: tuple[str, ...], sqlstate: str) -> None:
    result = steady("--json", *arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    error = json.loads(result.stderr)
    assert error["sqlstate"] == sqlstate
    assert error["error"] and error["hint"] and error["type"] != "NotInstalled"
    plain = steady(*arguments)
    assert plain.stderr.startswith("error: ")
    assert "\nhint: " in plain.stderr and "Traceback" not in plain.output


def test_commands_that_compute_no_rows_load_no_spark(gated: Run, shop: Database) -> None:
    script = (
        "import sys\nfrom pytrickle.cli import app\n"
        "for words in sys.argv[2:]:\n"
        "    assert not app([*words.split(), '--dsn', sys.argv[1]], standalone_mode=False), words\n"
        "    assert not {'pyspark', 'py4j'} & set(sys.modules), f'Spark was loaded by {words}'\n"
    )
    commands = ("status", "history", "watermark list", "group list", "doctor", "verify", "explain report", "dag")
    command = [sys.executable, "-c", script, shop.dsn, *commands]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert finished.returncode == 0, finished.stderr


def test_the_graph_is_drawn_with_its_group_and_the_table_that_waits(gated: Run, shop: Database) -> None:
    screen = gated("dag").stdout
    for text in ("pipeline  apart", "public.report  gated", "calculated, gate: gated, never refreshed", "also reads"):
        assert text in screen, text
    document = json.loads(gated("dag", "--json").stdout)
    assert [row["relation"] for row in document["relations"]] == ["public.lines", "public.report", "public.orders"]
    ElementTree.fromstring(gated("dag", "--format", "svg").stdout)


def test_the_graph_of_an_empty_catalog_is_a_sentence(db: Database) -> None:
    assert commands(db.dsn)("dag").stdout == "No stream table yet; pytrickle create makes one.\n"


def test_wait_and_assert_fresh_exit_with_3_until_the_table_is_there(gated: Run, shop: Database) -> None:
    late = gated("wait", "report", "2026-01-01T12:05:00Z", "--timeout", "0")
    assert late.exit_code == 3
    assert "public.lines is 5 min behind public.orders" in late.stderr
    error = json.loads(gated("wait", "report", "2026-01-01T12:05Z", "--timeout", "0", "--json").stderr)
    assert (error["type"], error["sqlstate"]) == ("WaitTimeout", "57014")
    stale = gated("assert-fresh", "report", "1h")
    assert (stale.exit_code, "was never filled" in stale.stderr) == (3, True)
    shop.execute("SELECT pgtrickle.advance_watermark('lines', '2026-01-01 12:05:00+00')")
    with local_client(shop.dsn) as (client, _):
        client.tick()
    there = gated("wait", "report", "2026-01-01T12:05:00Z", "--timeout", "0")
    assert (there.exit_code, there.stdout) == (0, "report is complete through 2026-01-01 12:05:00+00:00.\n")
    assert gated("assert-fresh", "report", "1h").exit_code == 0


def test_a_refresh_is_shown_recorded_and_verified(gated: Run, shop: Database) -> None:
    skipped = json.loads(gated("tick", "--json").stdout)
    assert [row["action"] for row in skipped] == ["SKIP"]
    refreshed = json.loads(gated("refresh", "report", "--json").stdout)
    assert refreshed["rows_inserted"] == 2
    shop.execute("INSERT INTO lines VALUES (2, 1)")
    assert gated("watermark", "advance", "lines", "2026-01-01T12:05:00Z").exit_code == 0
    ticked = gated("tick").stdout
    assert "DIFFERENTIAL" in ticked and "through 2026-01-01 12:05:00+00:00" in ticked
    assert "matches" in gated("verify").stdout
    newest = json.loads(gated("history", "report", "--limit", "1", "--json").stdout)
    assert [(row["action"], row["status"]) for row in newest] == [("DIFFERENTIAL", "COMPLETED")]
    assert "gating" in json.loads(gated("explain", "report", "--json").stdout)


def test_verify_says_that_rows_which_tie_were_chosen(run: Run, shop: Database) -> None:
    shop.execute("CREATE TABLE prizes (id int PRIMARY KEY, points int)")
    run("create", "first_ten", "SELECT id FROM prizes ORDER BY points LIMIT 10")
    shop.execute("INSERT INTO prizes SELECT n, n % 2 FROM generate_series(100, 1, -1) AS n")
    run("refresh", "first_ten")
    verified = run("verify", "first_ten")
    assert verified.exit_code == 0
    assert "but for the choice among rows that tie, which the query leaves open" in " ".join(verified.stdout.split())


def test_verify_exits_with_3_when_somebody_tampered_with_the_table(gated: Run, shop: Database) -> None:
    assert gated("refresh", "report").exit_code == 0
    shop.execute("ALTER TABLE report DISABLE TRIGGER ALL")
    shop.execute("UPDATE report SET total = total + 1 WHERE region = 'north'")
    result = gated("verify", "report", "--json")
    assert result.exit_code == 3
    assert json.loads(result.stdout) == [
        {
            "stream_table": "public.report",
            "matches": False,
            "missing": 1,
            "unexpected": 1,
            "pending": None,
            "error": None,
            "withheld": 0,
            "ties": False,
        }
    ]


@contextmanager
def daemon(dsn: str) -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "PYTRICKLE_DSN": make_conninfo(dsn), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [*MAIN, "run", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.mark.parametrize("number", first(1, (signal.SIGTERM, signal.SIGINT)))
def test_run_serves_until_it_is_told_to_stop(gated: Run, shop: Database, number: signal.Signals) -> None:
    with daemon(shop.dsn) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["action"] == "SKIP"
        shop.execute("SELECT pgtrickle.advance_watermark('lines', '2026-01-01 12:05:00+00')")
        results = iter(lambda: json.loads(process.stdout.readline()), None)
        assert next(row for row in results if row["action"] != "SKIP")["rows_inserted"] == 2
        process.send_signal(number)
        _, messages = process.communicate(timeout=60)
        assert process.returncode == 0, messages
        assert "Stopping" in messages and "Traceback" not in messages
