"""The demonstration itself, on an embedded server, shortened."""

import json
import multiprocessing
import re
from datetime import timedelta

import pytest

from pytrickle.cli.show.columns import columns
from pytrickle.config import EngineName
from pytrickle.demo.run import run_demo


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
