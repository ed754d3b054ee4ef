"""The demonstration itself, on an embedded server, shortened."""

import json
import multiprocessing
from datetime import timedelta

import pytest

from pytrickle.demo.run import run_demo


def test_the_demo_keeps_its_promises_and_shows_what_they_are_worth(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_demo(None, timedelta(seconds=20), json=True) == 0
    reports = json.loads(capfd.readouterr().out)["reports"]
    assert reports["none"]["checks_with_incomplete_orders"] > 0
    assert reports["gate"]["most_incomplete_orders"] == reports["hold_back"]["most_incomplete_orders"] == 0
    assert all(report["verified"] for report in reports.values())
    assert all(report["refreshes"] > 0 for report in reports.values())
    assert not multiprocessing.active_children()
