"""The state of a stream table in one word, the same on every screen and page and in the metrics."""

from pytrickle.catalog.reports import StreamTableStatus


def state_of(row: StreamTableStatus) -> str:
    """Name a stream table's state in one word: error, paused, frozen, gated, waiting, initializing or ok."""
    if row.status == "ERROR" or row.last_error:
        return "error"
    if row.paused or row.tier == "frozen":
        return "paused" if row.paused else "frozen"
    if row.decision != "run":
        return row.decision
    return "initializing" if row.status == "INITIALIZING" else "ok"
