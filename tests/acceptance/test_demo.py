"""The demonstration itself, on an embedded server, shortened."""

import json
import multiprocessing
import re
from datetime import timedelta

import pytest

from pytrickle.cli.show.columns import columns
from pytrickle.config import EngineName
from pytrickle.demo.run import run_demo
from pytrickle.errors import JavaMissing, PackageMissing
from tests.conftest import Database


def test_the_demo_keeps_its_promises_and_shows_what_they_are_worth(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_demo(None, timedelta(seconds=15), json=True, columns=columns) == 0
    printed = capfd.readouterr()
    found = json.loads(printed.out)
    reports = found["reports"]
    assert list(found["refreshes_by_engine"]) == ["spark"]
    told = r"report_none: Spark job, differential, \d+ changed rows read through .* \(LSN \w+/\w+\)"
    assert re.search(told, printed.err)
    assert reports["none"]["checks_with_incomplete_orders"] > 0
    assert reports["gate"]["most_incomplete_orders"] == reports["hold_back"]["most_incomplete_orders"] == 0
    assert all(report["verified"] for report in reports.values())
    assert all(report["refreshes"] > 0 for report in reports.values())
    assert not multiprocessing.active_children()


@pytest.mark.repeats
def test_the_demo_needs_no_java_with_the_engine_postgres(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    assert run_demo(None, timedelta(seconds=10), json=True, columns=columns, engine=EngineName.POSTGRES) == 0
    assert list(json.loads(capfd.readouterr().out)["refreshes_by_engine"]) == ["postgres"]


def test_spark_that_is_missing_is_told_before_anything_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def started() -> None:
        raise AssertionError("a server was started")

    monkeypatch.setattr("pytrickle.demo.run.postgres_server", started)
    monkeypatch.setattr("pytrickle.compute.spark.java.has_spark", lambda: False)
    with pytest.raises(PackageMissing, match="PySpark is not installed"):
        run_demo(None, timedelta(seconds=10), json=True, columns=columns)
    monkeypatch.undo()
    monkeypatch.setattr("pytrickle.demo.run.postgres_server", started)
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(JavaMissing):
        run_demo(None, timedelta(seconds=10), json=True, columns=columns)


def test_on_a_database_of_somebody_only_the_reports_of_the_demo_are_refreshed(
    db: Database, capfd: pytest.CaptureFixture[str]
) -> None:
    db.execute("CREATE TABLE own (id integer)")
    db.execute("SELECT pgtrickle.create_stream_table('kept', 'SELECT id FROM own')")
    assert run_demo(db.dsn, timedelta(seconds=8), json=True, columns=columns, engine=EngineName.POSTGRES) == 0
    assert json.loads(capfd.readouterr().out)["reports"]["hold_back"]["refreshes"] > 0
    assert db.execute("SELECT stream_table, is_populated FROM pgtrickle.pgt_status()") == [("public.kept", False)]
    assert db.value("SELECT count(*) FROM pgtrickle.pgt_refresh_history") == 0
