"""Which run plays which value of a parameter."""

from __future__ import annotations

from typing import Any

from tests.repeats import first, only


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


def test_a_case_of_several_values_stays_one_case() -> None:
    _, marked = first(1, ((1, 2), (3, 4)))
    assert marked.values == (3, 4)
