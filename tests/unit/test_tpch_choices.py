"""What the benchmark of AUTO's choices counts as right, and what it reports."""

from math import inf
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from benchmarks.tpch.choices import Round
from benchmarks.tpch.choices_report import write_choices

WAYS = {"DIFFERENTIAL postgres": 0.1, "FULL postgres": 0.2, "DIFFERENTIAL spark": 0.119, "FULL spark": inf}


def _round(way: str, auto: float = 0.1, orders: str = "q01") -> Round:
    return Round(orders, 5.0, 1, way, "", {"AUTO": auto, **WAYS}, 0.3)


def test_a_choice_is_right_where_its_way_is_hardly_slower_than_the_best_of_all() -> None:
    found = {way: (_round(way).right, _round(way).strictly_right) for way in (*WAYS, "failed")}
    assert [way for way, right in found.items() if right == (True, True)] == [
        "DIFFERENTIAL postgres",
        "DIFFERENTIAL spark",
    ]
    near = Round("q01", 5.0, 1, "FULL", "", {"AUTO": 0.02, "DIFFERENTIAL": 0.01, "FULL": 0.0128}, 0.01)
    assert (near.right, near.strictly_right) == (True, False), "within what repetitions differ by"


def test_a_run_replaces_its_own_section_and_keeps_the_others(tmp_path: Path) -> None:
    path = tmp_path / "choices.md"
    for orders, way in ((15_000, "FULL postgres"), (150_000, "FULL postgres"), (15_000, "DIFFERENTIAL postgres")):
        write_choices([_round(way, 0.5)], orders, {"machine": "here"}, path)
    text = path.read_text()
    assert text.index("## 15,000 orders") < text.index("## 150,000 orders")
    assert text.count("At 5 %, 1 of 1 choices were right") == text.count("At 5 %, 0 of 1 choices were right") == 1
    assert "| Q1 | DIFFERENTIAL postgres | 500 ms | 100 ms | 200 ms | 119 ms | failed | 300 ms |" in text
    assert text.count("At all sizes and rates together, 1 of 2 choices were right, 50 %.") == 1
