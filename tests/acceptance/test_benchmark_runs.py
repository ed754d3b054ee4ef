"""The long benchmarks run, on tables small enough to wait for, and what they measured is right."""

from pathlib import Path

import pytest

import pytrickle
from benchmarks.capture.pgbench import CAPTURED, REFRESHED, STATES, TABLES, Bench, cost, databases
from benchmarks.scale.__main__ import main as measure_scale
from benchmarks.server import debian_binaries
from pytrickle.demo.server import postgres_server

pytestmark = pytest.mark.soak


def test_pgbench_runs_in_every_state_and_what_was_captured_is_refreshed() -> None:
    programs = debian_binaries()
    assert programs is not None
    with postgres_server(programs, {"fsync": "off"}) as server, databases(server.dsn) as dsns:
        bench = Bench(programs, dsns, scale=1)
        bench.fill()
        runs = {("mixed", state): [bench.run("mixed", state, 1)] for state in STATES}
        assert all(min(cost(runs, "mixed", state)) > 0 for state in (CAPTURED, REFRESHED))
        with pytrickle.connect(dsns[CAPTURED], engine="postgres") as client:
            client.tick()
            assert {client.verify(name).matches for name in TABLES} == {True}
            assert client.history()[0].status == "COMPLETED"


def test_a_small_fleet_is_measured_and_reported(tmp_path: Path) -> None:
    figures = measure_scale(["--fleets", "20/4", "--rounds", "1", "--output", str(tmp_path)])
    assert figures["quiet tick, 20 tables, ms for each"] > 0
    report = (tmp_path / "benchmarks-scale.md").read_text(encoding="utf-8")
    assert "| 20 over 4 | quiet tick |" in report and "| 20 over 4 | create |" in report
