"""What repeats a promise that another test holds already: further seeds, servers, kills and sizes.

`make test` leaves them to `make test-long`.
"""

from collections.abc import Collection, Iterable
from typing import Any

import pytest

from tests.servers import NEWEST, OLDEST

# For tests of what the versions of PostgreSQL do differently, in every run.
on_both_servers = pytest.mark.parametrize("every_db", (OLDEST, NEWEST), indirect=True, ids="pg{}".format)


def first(number: int, values: Iterable[Any]) -> list[Any]:
    """Return a parameter's values; `make test` plays the first `number` of them, `make test-long` the others."""
    chosen = list(values)
    others = (value if isinstance(value, tuple) else (value,) for value in chosen[number:])
    return [*chosen[:number], *(pytest.param(*value, marks=pytest.mark.repeats) for value in others)]


def only(names: Collection[str], values: Iterable[str]) -> list[Any]:
    """Return a parameter's values; `make test` plays those that are named, `make test-long` the others."""
    every = list(values)
    assert set(names) <= set(every), set(names).difference(every)
    return [name if name in names else pytest.param(name, marks=pytest.mark.repeats) for name in every]
