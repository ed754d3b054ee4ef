"""Which run plays which value of a parameter."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.repeats import divided, first, in_parts, only


def marks(values: list[Any]) -> list[str]:
    """Return the mark of each value, or nothing where every run plays it."""
    return ["".join(mark.name for mark in getattr(value, "marks", ())) for value in values]


def test_what_comes_after_the_first_values_is_for_longer_runs() -> None:
    assert marks(first(1, range(3))) == ["", "repeats", "repeats"]
    assert marks(first(1, range(4), then=2)) == ["", "repeats", "repeats", "soak"]
    assert marks(first(1, (1, 2), then=0)) == ["", "soak"]


def test_what_is_not_named_is_for_longer_runs() -> None:
    assert marks(only({"a"}, "abc")) == ["", "repeats", "repeats"]
    assert marks(only({"a"}, "abc", then={"c"})) == ["", "soak", "repeats"]


def test_each_part_after_the_first_is_for_longer_runs() -> None:
    name, numbers = in_parts(3).mark.args
    assert (name, marks(numbers)) == ("nth", ["", "repeats", "repeats"])


def test_a_case_of_several_values_stays_one_case() -> None:
    _, marked = first(1, ((1, 2), (3, 4)))
    assert marked.values == (3, 4)


def item(name: str, marked: bool) -> pytest.Item:
    """Return a test of a name, which repeats another one or does not."""
    return cast(pytest.Item, SimpleNamespace(nodeid=name, get_closest_marker=lambda mark: marked or None))


def test_every_repetition_is_in_one_part_and_the_rest_in_each() -> None:
    promises = [item(f"tests/sql/test_a.py::test_{i}", False) for i in range(9)]
    real_packages = [item(f"tests/integrations/test_{i}.py::test", True) for i in range(9)]
    repetitions = [item(f"tests/sql/test_a.py::test[{i}]", True) for i in range(90)]
    always = [*promises, *real_packages]
    parts = [divided([*always, *repetitions], f"{number}/3") for number in range(3)]
    for played, left in parts:
        assert played[: len(always)] == always and len(played) + len(left) == len(always) + len(repetitions)
        assert 15 < len(played) - len(always) < 45
    of_parts = [test.nodeid for played, _ in parts for test in played[len(always) :]]
    assert sorted(of_parts) == sorted(test.nodeid for test in repetitions)
