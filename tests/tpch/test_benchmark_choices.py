"""The benchmark of AUTO's choices measures every mode, and replaces its own section of the report."""

from pathlib import Path

from benchmarks.tpch.choices import MODES, Choices, Round
from benchmarks.tpch.choices_report import write_choices
from benchmarks.tpch.database import Database as Tpch
from benchmarks.tpch.queries import read_queries
from tests.conftest import Database
from tests.equivalence.local_engine import local_client


def test_every_mode_is_measured_in_every_round(db: Database) -> None:
    tpch = Tpch(db.connect(), 600)
    tpch.create()
    with local_client(db.dsn) as (client, _):
        choices = Choices(tpch, client, read_queries(["q01", "q06"]), lambda message: None)
        choices.create()
        choices.measure(5, 2)
    assert [(each.query, each.number) for each in choices.rounds] == [("q01", 1), ("q06", 1), ("q01", 2), ("q06", 2)]
    assert all(set(each.seconds) == set(MODES) and each.view > 0 for each in choices.rounds)
    assert choices.unequal == set()


def test_a_run_replaces_the_section_of_its_size_and_leaves_the_others(tmp_path: Path) -> None:
    report = tmp_path / "choices.md"
    right = Round("q01", 0.1, 1, "DIFFERENTIAL", "", {"AUTO": 0.02, "DIFFERENTIAL": 0.02, "FULL": 0.1}, 0.1)
    wrong = Round("q01", 0.1, 1, "FULL", "", {"AUTO": 0.2, "DIFFERENTIAL": 0.02, "FULL": 0.1}, 0.1)
    for orders, one in ((150_000, wrong), (15_000, wrong), (150_000, right)):
        write_choices([one], orders, {"Date": "today"}, report)
    text = report.read_text()
    assert [line for line in text.splitlines() if line.startswith("## ")] == ["## 15,000 orders", "## 150,000 orders"]
    small, large = text.split("## 150,000 orders")
    assert "0 of 1 choices were right (at least 90 % expected: **missed**)" in small
    assert "1 of 1 choices were right (at least 90 % expected: met)" in large
    assert "| Q1 | D | 20 ms | 20 ms | 100 ms | 100 ms |" in large
