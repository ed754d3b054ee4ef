"""What docs/howto/dbt.md shows works with the real dbt, in an environment of its own."""

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import DEVNULL, PIPE
from threading import Thread
from typing import Any

import pytest
from psycopg.conninfo import conninfo_to_dict

import pytrickle
from pytrickle.errors import InvalidArgument
from pytrickle.integrations.dbt import PACKAGE, add_package
from tests.commands import commands
from tests.conftest import Database
from tests.documents import ROOT, blocks
from tests.integrations.environments import python_with

SESSION = Path(__file__).with_name("dbt_session.py")
TABLES = """
CREATE TABLE orders (id int PRIMARY KEY, customer int);
CREATE TABLE order_lines (order_id int, line int, amount numeric, PRIMARY KEY (order_id, line));
INSERT INTO orders VALUES (1, 1), (2, 2);
INSERT INTO order_lines VALUES (1, 1, 5), (2, 1, 50)
"""
REVENUE = "SELECT customer, revenue FROM revenue ORDER BY customer"
Dbt = Callable[..., tuple[bool, dict[str, str]]]


@pytest.fixture(scope="module")
def python() -> Path:
    return python_with("dbt", "dbt-core>=1.10,<1.12", "dbt-postgres>=1.10,<1.11")


@pytest.fixture
def project(db: Database, tmp_path: Path) -> Path:
    """The project of the document, in a directory of its own, for a database that has the sources."""
    for statement in TABLES.split(";"):
        db.execute(statement)
    (tmp_path / "models").mkdir()
    for block in blocks(ROOT / "docs/howto/dbt.md"):
        if named := re.match(r"(?:--|#) (models/\S+)\n", block.text):
            (tmp_path / named[1]).write_text(block.text)
    (tmp_path / "dbt_project.yml").write_text("name: shop\nversion: '1.0'\nprofile: shop\n")
    told = conninfo_to_dict(db.dsn)
    target = {"type": "postgres", "schema": "public", "threads": 2, "password": "", **told}
    profiles = {"shop": {"target": "test", "outputs": {"test": target | {"port": int(str(told["port"]))}}}}
    (tmp_path / "profiles.yml").write_text(json.dumps(profiles))
    return tmp_path


@contextmanager
def dbt_at_work(python: Path, project: Path) -> Iterator[Dbt]:
    """Hold a process of dbt; yield what runs one of its commands and tells what became of each node."""
    command = [str(python), str(SESSION)]
    with subprocess.Popen(command, cwd=project, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, text=True) as process:
        assert process.stdin and process.stdout
        requests, answers = process.stdin, process.stdout

        def run(*arguments: str) -> tuple[bool, dict[str, str]]:
            requests.write(json.dumps([*arguments, "--no-use-colors"]) + "\n")
            requests.flush()
            line = answers.readline()
            assert line, "dbt has ended"
            answer: dict[str, Any] = json.loads(line)
            return answer["success"], answer["said"]

        try:
            yield run
        finally:
            process.kill()


@contextmanager
def refresher(db: Database) -> Iterator[None]:
    with pytrickle.connect(db.dsn, engine="postgres") as client:
        thread = Thread(target=client.run)
        thread.start()
        try:
            yield
        finally:
            client.stop()
            thread.join()


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.repeats
@pytest.mark.long
def test_models_become_stream_tables_and_follow_what_the_project_says(
    db: Database, python: Path, project: Path
) -> None:
    assert commands(db.dsn)("dbt", "init", "--project-dir", str(project)).exit_code == 0
    models = project / "models"
    with dbt_at_work(python, project) as dbt, refresher(db):
        assert dbt("deps")[0]
        assert_models_are_created(db, dbt)
        assert_freshness_is_what_loaders_said(db, dbt)
        assert_a_changed_query_keeps_the_table(db, dbt, models)
        assert_other_columns_need_a_full_refresh(db, dbt, models)
        assert_contracts_are_kept(dbt, models)
        assert_a_plain_table_is_replaced(db, dbt, models)
        assert_models_below_may_be_made_anew(db, dbt, models)
        assert_indexes_are_those_of_the_model(db, dbt, models)


def assert_models_are_created(db: Database, dbt: Dbt) -> None:
    built, said = dbt("build")
    assert built, said
    assert db.execute(REVENUE) == [(1, 5), (2, 50)] and db.execute("TABLE best") == [(2,)]
    assert db.execute("SELECT watermark_gating, schedule FROM pgtrickle.pgt_status() WHERE name ~ 'revenue'") == [
        ("hold_back", "10s")
    ]
    assert db.execute("SELECT group_name, tolerance::text FROM pgtrickle.watermark_groups()") == [
        ("order_pipeline", "00:05:00")
    ]


def assert_freshness_is_what_loaders_said(db: Database, dbt: Dbt) -> None:
    assert not dbt("source", "freshness")[0], "nobody said that orders is complete"
    db.execute("SELECT pgtrickle.advance_watermark('orders', now())")
    assert dbt("source", "freshness")[0]


def assert_a_changed_query_keeps_the_table(db: Database, dbt: Dbt, models: Path) -> None:
    numbers = "SELECT name, pgt_id FROM pgtrickle.pgt_status()"
    made = dict(db.execute(numbers))
    replace(models / "revenue.sql", "sum(l.amount)", "sum(l.amount * 2)")
    replace(models / "revenue.sql", "    schedule='10s',\n", "")
    assert dbt("build")[0]
    assert db.execute(REVENUE) == [(1, 10), (2, 100)] and db.execute("TABLE best") == [(2,)]
    assert db.value("SELECT schedule FROM pgtrickle.pgt_status() WHERE name ~ 'revenue'") == "calculated"
    assert dbt("run", "--full-refresh")[0]
    assert dict(db.execute(numbers)) == made, "the columns are the same, so nothing is made anew"


def assert_other_columns_need_a_full_refresh(db: Database, dbt: Dbt, models: Path) -> None:
    replace(models / "best.sql", "SELECT customer", "SELECT customer, revenue")
    refused, said = dbt("run")
    assert not refused and "The columns of" in said["best"] and "--full-refresh" in said["best"]
    assert db.execute("TABLE best") == [(2,)]
    assert dbt("run", "--full-refresh")[0]
    assert db.execute("TABLE best") == [(2, 100)]


def assert_contracts_are_kept(dbt: Dbt, models: Path) -> None:
    replace(models / "revenue.sql", "AS revenue", "AS income")
    broken, said = dbt("run", "--select", "revenue")
    assert not broken and "contract" in said["revenue"]


def assert_a_plain_table_is_replaced(db: Database, dbt: Dbt, models: Path) -> None:
    assert dbt("run-operation", "pytrickle.drop_stream_table", "--args", "{name: public.best}")[0]
    replace(models / "best.sql", "stream_table", "table")
    assert dbt("run", "--select", "best")[0]
    replace(models / "best.sql", "'table'", "'stream_table'")
    assert dbt("run", "--select", "best")[0]
    assert db.execute("TABLE best") == [(2, 100)]


def assert_models_below_may_be_made_anew(db: Database, dbt: Dbt, models: Path) -> None:
    (models / "staged.sql").write_text("SELECT id, customer FROM {{ source('shop', 'orders') }}")
    (models / "names.sql").write_text("{{ config(materialized='table') }} SELECT 1 AS customer, 'Ann' AS name")
    (models / "named.sql").write_text(
        "{{ config(materialized='stream_table') }} SELECT n.name, count(*) AS orders "
        "FROM {{ ref('staged') }} AS s JOIN {{ ref('names') }} AS n USING (customer) GROUP BY n.name"
    )
    for orders in (1, 2, 3):
        # PostgreSQL itself has two sessions that drop both tables below one view with CASCADE deadlock now and then.
        ran, said = dbt("run", "--select", "+named", "--threads", "1")
        assert ran and db.execute("TABLE named") == [("Ann", orders)], said
        db.execute("INSERT INTO orders VALUES (%s, 1)", 100 + orders)


def assert_indexes_are_those_of_the_model(db: Database, dbt: Dbt, models: Path) -> None:
    columns = "SELECT pg_get_indexdef(indexrelid, 1, true) FROM pg_index WHERE indrelid = 'named'::regclass ORDER BY 1"
    before = db.execute(columns)
    written = (models / "named.sql").read_text()
    for column in ("name", "name", "orders"):
        indexed = f"'stream_table', indexes=[{{'columns': ['{column}']}}]"
        (models / "named.sql").write_text(written.replace("'stream_table'", indexed))
        assert dbt("run", "--select", "named")[0]
        assert sorted(db.execute(columns)) == sorted([*before, (column,)])


def test_the_macros_are_added_to_a_project_once(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"no dbt_project\.yml"):
        add_package(tmp_path)
    (tmp_path / "dbt_project.yml").touch()
    others = "# Ours.\npackages:\n  - package: dbt-labs/dbt_utils\n    version: 1.3.0\n"
    (tmp_path / "packages.yml").write_text(others)
    written = add_package(tmp_path).read_text()
    assert str(PACKAGE) in written and written.startswith("# Ours.\npackages:\n  # ") and written.endswith(others[18:])
    assert add_package(tmp_path).read_text() == written
    (tmp_path / "packages.yml").write_text("projects: []\n")
    with pytest.raises(InvalidArgument, match="no list of packages"):
        add_package(tmp_path)
    (tmp_path / "packages.yml").write_bytes(b"packages:\n\xff\n")
    with pytest.raises(InvalidArgument, match="it is not UTF-8 text"):
        add_package(tmp_path)
    (tmp_path / "packages.yml").unlink()
    (tmp_path / "packages.yml").mkdir()
    with pytest.raises(InvalidArgument, match=r"packages\.yml cannot be changed: Is a directory") as refused:
        add_package(tmp_path)
    assert "a text file that you may change" in str(refused.value.hint)


def test_the_macros_take_the_options_that_the_function_has(db: Database) -> None:
    text = (PACKAGE / "macros/stream_table.sql").read_text()
    named = re.findall(
        r"'(\w+)'", "".join(re.findall(r"{% macro options_of_\w+\(\) %}(.*?){% endmacro %}", text, re.S))
    )
    functions = "SELECT proargnames FROM pg_proc WHERE pronamespace = 'pgtrickle'::regnamespace AND proname = %s"
    taken = db.value(functions, "create_stream_table")
    assert len(named) > 10 and set(named) <= set(taken)
