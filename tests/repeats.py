"""What repeats a promise that another test holds already: further seeds, servers, kills and sizes.

`make test` leaves it to `make test-long`, of which `.ci/run` plays a part, and what repeats the repetition is left to
`make test-soak`.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Any
from zlib import crc32

import pytest

from tests.servers import NEWEST, OLDEST

# The fixtures whose parameter is the version of a server.
SERVERS = ("every_db", "every_empty_db", "home")
# The fixtures that also play through Spark what another one plays without, and the parameter for it.
THROUGH_SPARK = {"shop": "spark_shop", "diamond": 0}

# For tests of what the versions of PostgreSQL do differently, in every run.
on_both_servers = pytest.mark.parametrize("every_db", (OLDEST, NEWEST), indirect=True, ids="pg{}".format)
since_18 = pytest.mark.skipif(NEWEST < 18, reason="the newest server that was given is older than PostgreSQL 18")
only_on_18 = pytest.mark.parametrize(
    "every_db", [pytest.param(NEWEST, marks=since_18)], indirect=True, ids="pg{}".format
)


def in_parts(number: int) -> pytest.MarkDecorator:
    """Play a test so many times, once of them in `make test`; it takes an argument ``nth``, which counts from 0.

    A test of generated examples draws others each time; one of a list of cases plays ``cases[nth::number]``, so that
    every run plays some of each kind.
    """
    return pytest.mark.parametrize("nth", first(1, range(number)))


def first(number: int, values: Iterable[Any], then: int | None = None) -> list[Any]:
    """Return a parameter's values, marked with the run that plays them.

    `make test` plays the first `number`, `make test-long` the next `then`, or all, and `make test-soak` the others.
    """
    chosen = list(values)
    end = len(chosen) if then is None else number + then
    return [
        *chosen[:number],
        *(_marked(value, pytest.mark.repeats) for value in chosen[number:end]),
        *(_marked(value, pytest.mark.soak) for value in chosen[end:]),
    ]


def only(names: Collection[str], values: Iterable[str], then: Collection[str] | None = None) -> list[Any]:
    """Return a parameter's values, marked with the run that plays them.

    `make test` plays those that are named, `make test-long` those that `then` names, or all, and `make test-soak` the
    others.
    """
    every = list(values)
    named = {*names, *(then or ())}
    assert named <= set(every), named.difference(every)
    rest = pytest.mark.repeats if then is None else pytest.mark.soak
    marks = {name: pytest.mark.repeats if name in (then or ()) else rest for name in every}
    return [name if name in names else _marked(name, marks[name]) for name in every]


def _marked(value: Any, mark: pytest.MarkDecorator) -> Any:
    return pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=mark)


def soak_further_repetitions(items: Iterable[pytest.Item]) -> None:
    """Have `make test-long` play the first of what one parameter repeats, and `make test-soak` the others.

    One of these that is chosen by its name is the first one, so it plays alone in `make test-long`.
    """
    begun: Counter[str] = Counter()
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        for what, most in _repeated(item) if "repeats" in marks and "soak" not in marks else ():
            begun[what] += 1
            if begun[what] > most:
                item.add_marker(pytest.mark.soak(alone="test-long"))


def divided(items: Iterable[pytest.Item], part: str) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Divide tests into those that a part K/N of the repetitions plays, and the others.

    Every part plays all tests that repeat nothing, and those of `tests/integrations`: only these meet the real package.
    """
    number, parts = map(int, part.split("/"))
    played: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        always = item.get_closest_marker("repeats") is None or item.nodeid.startswith("tests/integrations/")
        (played if always or crc32(item.nodeid.encode()) % parts == number else left).append(item)
    return played, left


def _repeated(item: pytest.Item) -> Iterator[tuple[str, int]]:
    """Tell of what a test is one of several repetitions, and how many of these the long run plays.

    On the newest server that is the first case of a test, through Spark the first test of a file.
    """
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    if any(parameters.get(name) == NEWEST for name in SERVERS):
        yield item.nodeid.partition("[")[0], 1
    if any(parameters.get(name) == value for name, value in THROUGH_SPARK.items()):
        yield item.nodeid.partition("::")[0], 1
