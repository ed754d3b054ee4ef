"""Waiting for what another session does, by looking at the server instead of the clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tests.conftest import Database

PATIENCE = 60.0


def wait_for(
    condition: Callable[[], Any],
    what: str,
    still_possible: Callable[[], bool] = lambda: True,
    patience: float = PATIENCE,
) -> Any:
    """Return the condition's first true answer; fail when time is up, or it has become impossible."""
    deadline = time.monotonic() + patience
    while not (answer := condition()):
        assert still_possible() and time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.01)
    return answer


def wait_until_blocked(db: Database, query: str, still_possible: Callable[[], bool] = lambda: True) -> int:
    """Wait until a session hangs on a lock in a statement that contains `query`; return its process id."""
    blocked = (
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        " AND wait_event_type = 'Lock' AND strpos(query, %s) > 0 LIMIT 1"
    )
    ((pid,),) = wait_for(lambda: db.execute(blocked, query), f"a session blocked in {query}", still_possible)
    return int(pid)
