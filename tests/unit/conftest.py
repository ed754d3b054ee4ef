"""What tests without a server share."""

import time
from collections.abc import Iterator

import pytest


@pytest.fixture
def in_berlin() -> Iterator[None]:
    """The machine is where the clocks are an hour ahead of UTC in winter."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "Europe/Berlin")
        time.tzset()
        yield
    time.tzset()
