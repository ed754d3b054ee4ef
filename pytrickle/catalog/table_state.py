"""The state of a stream table in one word, and the reason in a sentence: the same on every screen and page."""

from typing import Protocol

from pytrickle.catalog.reports import StreamTableStatus


class Behind(Protocol):
    """How far a stream table is behind, as ``pgtrickle.freshness()`` says it: in one word, and in a sentence."""

    @property
    def status(self) -> str: ...

    @property
    def reason(self) -> str: ...


def state_of(row: StreamTableStatus) -> str:
    """Name a stream table's state in one word: error, paused, frozen, gated, waiting, initializing or ok."""
    if row.status == "ERROR" or row.last_error:
        return "error"
    if row.paused or row.tier == "frozen":
        return "paused" if row.paused else "frozen"
    if row.decision != "run":
        return row.decision
    return "initializing" if row.status == "INITIALIZING" else "ok"


def reason_for(row: StreamTableStatus, behind: Behind | None) -> str:
    """Say what keeps a stream table from running, and what the changes that it lacks waited for; "" for nothing."""
    held = "" if row.decision == "run" else row.reason or ""
    if behind is not None and behind.status != "fresh":
        return "; ".join(filter(None, (held, behind.reason)))
    return "" if row.watermark_gating == "none" and not held else row.reason or ""
