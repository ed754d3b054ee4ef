"""The benchmarks run, and what compares their runs names what became slower, and nothing else."""

import doctest
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from benchmarks import compare
from benchmarks.compare import main, measured, regressions, to_be_published
from benchmarks.scale import model
from tests.documents import ROOT


@pytest.mark.repeats
def test_each_single_step_can_be_measured() -> None:
    program = [
        sys.executable,
        "-m",
        "pytest",
        "benchmarks/small",
        "--benchmark-disable",
        "-q",
        "-p",
        "no:cacheprovider",
    ]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(program, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "skipped" not in done.stdout


@pytest.mark.repeats
def test_pytest_benchmark_compares_with_a_published_run_of_another_machine(tmp_path: Path) -> None:
    published = tmp_path / "published.json"
    run = {**saved(1.0), "machine_info": {"node": "desk"}, "version": "5.2.3"}
    run["benchmarks"][0]["stats"] |= dict.fromkeys(("min", "max", "mean", "stddev", "ops", "rounds", "iterations"), 1.0)
    run["benchmarks"] = [{**run["benchmarks"][0], "options": {}, "params": None, "extra_info": {}}]
    published.write_text(json.dumps(to_be_published(run)))
    program = [sys.executable, "-m", "pytest", "benchmarks/small/test_advance.py", "--benchmark-only", "-q"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    program += ["-p", "no:cacheprovider", f"--benchmark-compare={published}", "--benchmark-max-time=0.1"]
    done = subprocess.run(program, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_became_slower_is_named_and_ends_with_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    published, run = tmp_path / "published.json", tmp_path / "run.json"
    published.write_text(json.dumps(saved(1.0)))
    run.write_text(json.dumps(saved(2.0)))
    with pytest.raises(SystemExit) as ended:
        main([str(run), "--published", str(published)])
    assert ended.value.code == 3
    told = capsys.readouterr().out
    assert "Slower than published: test_steps.py::test_step[4], 2.00 times (up to 1.15 is noise)." in told
    assert told.count("Slower") == 1


def test_a_slower_machine_is_no_regression() -> None:
    slow = saved(1.0)
    for benchmark in slow["benchmarks"]:
        benchmark["stats"]["median"] *= 3
        benchmark["stats"]["iqr"] *= 3
    assert regressions(measured(slow), measured(saved(1.0))) == ()


def test_multiples_are_compared_as_they_are() -> None:
    assert [one.name for one in regressions(measured(told(1.5)), measured(told(1.0)))] == ["copies: COPY"]
    assert regressions(measured(told(1.2)), measured(told(1.0))) == ()


def test_a_published_run_has_no_single_measurements_and_names_no_machine(tmp_path: Path) -> None:
    published, run = tmp_path / "published.json", tmp_path / "run.json"
    machine = {"node": "desk", "system": "Linux", "cpu": {"count": 2, "flags": ["sse"]}}
    known = {**saved(1.0), "machine_info": machine, "commit_info": {"branch": "mine"}}
    run.write_text(json.dumps(known))
    main([str(run), "--published", str(published), "--publish"])
    kept = json.loads(published.read_text())
    assert kept["machine_info"] == {"system": "Linux", "cpu": {"count": 2}}
    assert kept["commit_info"] == {}
    assert measured(kept) == measured(saved(1.0))
    assert all("data" not in benchmark["stats"] for benchmark in kept["benchmarks"])


def test_what_became_slower_can_be_published_all_the_same(tmp_path: Path) -> None:
    published, run = tmp_path / "published.json", tmp_path / "run.json"
    published.write_text(json.dumps(saved(1.0)))
    run.write_text(json.dumps(saved(2.0)))
    with pytest.raises(SystemExit) as ended:
        main([str(run), "--published", str(published), "--publish"])
    assert ended.value.code == 3
    main([str(run), "--published", str(published)])


def saved(last: float) -> dict[str, Any]:
    """Return a run of five steps that take a second each, but for the last."""
    seconds = [1.0, 1.0, 1.0, 1.0, last]
    steps = [
        {
            "name": f"test_step[{number}]",
            "fullname": f"benchmarks/small/test_steps.py::test_step[{number}]",
            "group": "steps",
            "stats": {"median": taken, "iqr": 0.02 * taken, "data": [taken]},
        }
        for number, taken in enumerate(seconds)
    ]
    return {"datetime": "2026-01-01T00:00:00+00:00", "benchmarks": steps}


def told(times: float) -> dict[str, Any]:
    """Return a long run that tells one multiple."""
    return {"benchmarks": [{"name": "x", "group": "copies", "extra_info": {"figures": {"COPY": times}}}]}


@pytest.mark.parametrize("module", [compare, model])
def test_the_examples_of_what_judges_figures_hold(module: ModuleType) -> None:
    found = doctest.testmod(module)
    assert found.attempted > 0 and found.failed == 0


def test_the_document_about_scale_says_what_the_model_says() -> None:
    document = (ROOT / "docs/explanation/scale.md").read_text(encoding="utf-8")
    costs = model.IN_POSTGRESQL
    tables = [model.most_tables(costs, interval, share=0.5) for interval in (1, 10)]
    few, many = (
        [model.most_changes(costs, model.Load(tables, refreshed, 0, 2, interval)) for interval in (1, 10)]
        for tables, refreshed in ((100, 10), (1000, 50))
    )
    for figures in (tables, few, many):
        assert f"| {figures[0]:,.0f} | {figures[1]:,.0f} |" in document
    assert f"{costs.quiet_table * 1e3:g} ms for a stream table" in document
