"""What repeats a promise that another test holds already: further seeds, servers, kills and sizes.

`make test` leaves it to `make test-long`, and what repeats the repetition is left to `make test-soak`.
"""

from collections.abc import Collection, Iterable
from typing import Any

import pytest

from tests.servers import NEWEST, OLDEST

# The fixtures whose parameter is the version of a server.
SERVERS = ("every_db", "every_empty_db", "home")

# For tests of what the versions of PostgreSQL do differently, in every run.
on_both_servers = pytest.mark.parametrize("every_db", (OLDEST, NEWEST), indirect=True, ids="pg{}".format)


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


def soak_further_cases_of_the_newest_server(items: Iterable[pytest.Item]) -> None:
    """Have `make test-long` play the first case of a test on the newest server, and `make test-soak` the others."""
    for item in items:
        if not isinstance(item, pytest.Function) or not hasattr(item, "callspec"):
            continue
        server = next((name for name in SERVERS if item.callspec.params.get(name) == NEWEST), None)
        others = (index for name, index in item.callspec.indices.items() if name != server)
        if server and item.get_closest_marker("repeats") and any(others):
            item.add_marker(pytest.mark.soak)
