"""Definitions beside the code: planned, applied, exported; only what a project owns is ever dropped."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import pytrickle
from pytrickle.definitions.apply import ALONE
from pytrickle.errors import CatalogError, InvalidArgument, NotDifferentiable, PytrickleError
from tests.acceptance.projects import LARGE, LEFT, SETTINGS, TOTALS, project, pt, shop, told, write
from tests.commands import commands
from tests.conftest import Database
from tests.waiting import wait_until_blocked

__all__ = ["project", "pt", "shop"]


def test_a_project_is_planned_and_applied_once_in_the_order_in_which_it_is_read(
    shop: Database, pt: pytrickle.Client, project: Path
) -> None:
    before = shop.execute(LEFT)
    created = [
        ("create", "stream table", "public.totals"),
        ("create", "stream table", "public.large"),
        ("create", "watermark group", "pipeline"),
        ("create", "refresh group", "both"),
    ]
    assert told(pt.plan(project)) == created
    assert shop.execute(LEFT) == before
    assert told(pt.apply(project)) == created
    assert not pt.plan(project) and not pt.apply(project)
    assert [result.action for result in pt.tick()] == ["FULL", "FULL"]
    assert shop.execute("SELECT pgt_name, schedule, tier, project FROM pgtrickle.pgt_stream_tables ORDER BY 1") == [
        ("large", "1m", "hot", "shop"),
        ("totals", "5m", "warm", "shop"),
    ]


def test_a_plan_makes_no_writer_wait_and_a_reader_sees_the_old_rows_until_the_new_ones_are_there(
    shop: Database, pt: pytrickle.Client, project: Path
) -> None:
    pt.apply(project)
    pt.tick()
    write(project, {"totals.sql": TOTALS.replace("sum(amount)", "sum(amount + 1)")})
    old = shop.execute("SELECT * FROM totals ORDER BY 1")
    with shop.connect(autocommit=False) as writer:
        writer.execute("UPDATE orders SET amount = 3 WHERE id = 1")
        (change,) = pt.plan(project).changes
    assert (change.action, change.details, change.rebuilt) == ("alter", ("query",), "its query is another one")
    pt.apply(project)
    assert shop.execute("SELECT * FROM totals ORDER BY 1") == old
    assert pt.refresh("totals").action == "REINITIALIZE"
    assert shop.execute("SELECT * FROM totals ORDER BY 1") != old and pt.verify("totals").matches


SLOW_COMMIT = """
CREATE FUNCTION wait_for_the_test() RETURNS trigger LANGUAGE plpgsql AS
    $$BEGIN PERFORM pg_advisory_xact_lock_shared(7); RETURN NULL; END$$;
CREATE TRIGGER wait_for_the_test AFTER INSERT OR UPDATE OR DELETE ON totals
    FOR EACH STATEMENT EXECUTE FUNCTION wait_for_the_test();
ALTER TABLE totals ENABLE ALWAYS TRIGGER wait_for_the_test
"""


def test_a_reader_sees_all_old_rows_until_the_commit_of_all_new_ones_and_does_not_wait(
    shop: Database, pt: pytrickle.Client, project: Path
) -> None:
    pt.apply(project)
    pt.tick()
    write(project, {"totals.sql": TOTALS.replace("sum(amount)", "sum(amount + 1)")})
    pt.apply(project)
    shop.execute(SLOW_COMMIT)
    rows = "SELECT * FROM totals ORDER BY 1"
    old = shop.execute(rows)
    with shop.connect(autocommit=False) as gate, ThreadPoolExecutor(1) as thread:
        gate.execute("SELECT pg_advisory_xact_lock(7)")
        refresh = thread.submit(pt.refresh, "totals")
        wait_until_blocked(shop, "totals", lambda: not refresh.done())
        with shop.connect() as reader:
            reader.execute("SET lock_timeout = 1")
            assert reader.execute(rows).fetchall() == old
        gate.rollback()
        assert refresh.result().action == "REINITIALIZE"
    new = shop.execute(rows)
    assert [(region, amount + 10) for region, amount in old] == new


def test_other_columns_are_created_anew_with_what_reads_them_and_show_their_rows_in_the_same_commit(
    shop: Database, pt: pytrickle.Client, project: Path
) -> None:
    pt.apply(project)
    pt.tick()
    write(project, {"totals.sql": TOTALS.replace("sum(amount)", "count(*) AS many, sum(amount)")})
    plan = pt.apply(project)
    assert [(change.action, change.name) for change in plan.changes[:2]] == [
        ("replace", "public.totals"),
        ("replace", "public.large"),
    ]
    assert shop.value("SELECT count(*) FROM totals") == 3 and shop.value("SELECT count(*) FROM large") == 3
    written = [(result.action, result.rows_inserted + result.rows_deleted) for result in pt.tick()]
    assert written == [("FULL", 0), ("FULL", 0)]
    shop.execute("INSERT INTO orders VALUES (100, 'r9', 99)")
    assert {pt.refresh(name).action for name in ("totals", "large")} <= {"DIFFERENTIAL", "NO_DATA"}
    assert all(result.matches for result in pt.verify()) and not pt.plan(project)


def test_only_what_the_project_owns_is_dropped(shop: Database, pt: pytrickle.Client, project: Path) -> None:
    pt.create_stream_table("by_hand", "SELECT id FROM orders")
    pt.apply(project)
    (project / "a_part/large.sql").unlink()
    write(project, {"pytrickle.toml": 'project = "shop"'})
    assert told(pt.apply(project)) == [
        ("drop", "stream table", "public.large"),
        ("drop", "watermark group", "pipeline"),
        ("drop", "refresh group", "both"),
    ]
    (project / "totals.sql").unlink()
    pt.create_stream_table("reader", "SELECT amount FROM totals")
    with pytest.raises(CatalogError, match=r"public\.reader.*reads public\.totals"):
        pt.apply(project)
    pt.drop_stream_table("reader")
    pt.apply(project)
    assert [table.stream_table for table in pt.stream_tables()] == ["public.by_hand"]


def test_of_two_who_apply_the_second_one_finds_what_the_first_one_did(
    shop: Database, pt: pytrickle.Client, project: Path
) -> None:
    with (
        shop.connect(autocommit=False) as writer,
        pytrickle.connect(shop.dsn, engine="postgres") as other,
        ThreadPoolExecutor(2) as threads,
    ):
        writer.execute("UPDATE orders SET amount = amount")
        first = threads.submit(pt.apply, project)
        wait_until_blocked(shop, "create_from", lambda: not first.done())
        second = threads.submit(other.apply, project)
        wait_until_blocked(shop, ALONE, lambda: not second.done())
        assert shop.value("SELECT count(*) FROM pg_locks WHERE locktype = 'relation' AND NOT granted") == 2
        writer.rollback()
        assert first.result().changes and not second.result().changes


def test_a_project_takes_over_what_nobody_owns_and_nothing_of_another_project(
    shop: Database, pt: pytrickle.Client, project: Path
) -> None:
    pt.create_stream_table("totals", TOTALS, tier="warm", schedule="5m")
    assert told(pt.plan(project))[0] == ("create", "stream table", "public.large")
    pt.apply(project)
    write(project, {"pytrickle.toml": SETTINGS.replace('"shop"', '"other"')})
    with pytest.raises(CatalogError, match="belongs to the project shop"):
        pt.plan(project)


def test_a_renamed_stream_table_keeps_its_rows_and_its_readers(
    shop: Database, pt: pytrickle.Client, project: Path
) -> None:
    pt.apply(project)
    pt.tick()
    (project / "totals.sql").unlink()
    write(
        project,
        {
            "sums.sql": "-- pytrickle: renamed_from = totals\n" + TOTALS,
            "a_part/large.sql": LARGE.replace("totals", "sums"),
            "pytrickle.toml": SETTINGS.replace('"totals"', '"sums"'),
        },
    )
    rename, reader, _ = pt.apply(project).changes
    assert (rename.action, rename.details) == ("rename", ("name: public.totals → public.sums",))
    assert (reader.action, reader.details, reader.name) == ("alter", ("query",), "public.large")
    assert shop.value("SELECT count(*) FROM sums") == 3
    shop.execute("INSERT INTO orders VALUES (100, 'r9', 99)")
    assert pt.refresh("sums").action == "DIFFERENTIAL"
    assert all(result.matches for result in pt.verify()) and not pt.plan(project)


def test_what_cannot_be_applied_changes_nothing(shop: Database, pt: pytrickle.Client, project: Path) -> None:
    write(project, {"wrong.sql": "SELECT nothing FROM orders"})
    with pytest.raises(PytrickleError, match=r'wrong\.sql: column "nothing" does not exist'):
        pt.apply(project)
    strict = "-- pytrickle: refresh_mode = DIFFERENTIAL_STRICT\nSELECT sum(amount::real) AS s FROM orders"
    write(project, {"wrong.sql": strict})
    with pytest.raises(NotDifferentiable):
        pt.apply(project)
    assert not pt.stream_tables()
    wrong = (
        ("-- pytrickle: tier = lukewarm\nSELECT 1 AS one", "lukewarm"),
        ("-- pytrickle: teir = warm\nSELECT 1 AS one", r"wrong\.sql: 'teir' is not a valid key"),
        ("-- pytrickle: paused = true\nSELECT 1 AS one", "paused"),
        ("-- nothing", "no query"),
    )
    for text, said in wrong:
        write(project, {"wrong.sql": text})
        with pytest.raises(PytrickleError, match=said):
            pt.plan(project)
    write(project, {"pytrickle.toml": 'projct = "shop"'})
    with pytest.raises(InvalidArgument, match="projct"):
        pt.plan(project)


PYTHON = """
import pytrickle


@pytrickle.stream_table(watermark_gating="hold_back", schedule="5m", refresh_mode="DIFFERENTIAL")
def busy() -> str:
    return "SELECT region, count(*) AS many FROM orders GROUP BY region"


def not_one() -> str:
    return busy()
"""


def test_a_decorated_function_defines_a_stream_table(shop: Database, pt: pytrickle.Client, project: Path) -> None:
    write(project, {"more.py": PYTHON})
    assert ("create", "stream table", "public.busy") in told(pt.apply(project))
    settings = (
        "SELECT watermark_gating, schedule, refresh_mode FROM pgtrickle.pgt_stream_tables WHERE pgt_name = 'busy'"
    )
    assert shop.execute(settings) == [("hold_back", "5m", "DIFFERENTIAL")]
    with pytest.raises(InvalidArgument, match="tempo"):
        pytrickle.stream_table(tempo="fast")  # type: ignore[call-arg]


POLICY = """
import pytrickle


@pytrickle.stream_table(name="busy", gating="gate", schedule="5m", refresh_policy="incremental_strict")
def any_name() -> str:
    return "SELECT region, count(*) AS many FROM orders GROUP BY region"
"""


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("import nowhere_to_be_found", "ModuleNotFoundError: No module named 'nowhere_to_be_found'."),
        ("def broken(:", r"SyntaxError: .*more\.py, line 1\)\."),
        ("raise SystemExit(3)", "SystemExit: 3."),
        ("assert False", "AssertionError."),
    ],
)
def test_a_python_file_that_cannot_be_run_is_named(shop: Database, project: Path, text: str, sentence: str) -> None:
    write(project, {"more.py": text})
    planned = commands(shop.dsn)("plan", str(project))
    assert planned.exit_code == 1 and "Traceback" not in planned.output
    output = " ".join(planned.output.split())
    assert re.search(rf"more\.py cannot be run: {sentence}", output) and "Run it with python" in output


def test_a_decorator_takes_the_words_of_declarative_pipelines(
    shop: Database, pt: pytrickle.Client, project: Path
) -> None:
    write(project, {"more.py": POLICY})
    pt.apply(project)
    settings = (
        "SELECT watermark_gating, schedule, refresh_mode FROM pgtrickle.pgt_stream_tables WHERE pgt_name = 'busy'"
    )
    assert shop.execute(settings) == [("gate", "5m", "DIFFERENTIAL_STRICT")] and not pt.plan(project)
    with pytest.raises(InvalidArgument, match="'strict' is no refresh_policy"):
        pytrickle.stream_table(refresh_policy="strict")
    with pytest.raises(InvalidArgument, match="refresh_policy and refresh_mode mean the same"):
        pytrickle.stream_table(refresh_policy="full", refresh_mode="AUTO")


def test_the_commands_say_whether_there_is_a_difference(shop: Database, project: Path) -> None:
    run = commands(shop.dsn)
    planned = run("--json", "plan", str(project))
    assert planned.exit_code == 2 and len(json.loads(planned.stdout)["changes"]) == 4
    assert run("apply", "--dry-run", str(project)).exit_code == 0 and run("plan", str(project)).exit_code == 2
    shown = run("apply", str(project))
    assert shown.exit_code == 0 and "+ create stream table public.totals" in shown.stdout
    assert run("plan", str(project)).exit_code == 0
    assert run("plan", str(project / "nowhere")).exit_code == 1
