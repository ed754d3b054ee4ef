"""Frozen values for what is wrong: incidents, and what keeps stream tables from being refreshed."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from pytrickle.readable import Readable


@dataclass(frozen=True, slots=True, repr=False)
class AlertRow(Readable):
    """One incident, as ``pgtrickle.alerts()`` reports it; `closed_at` is None while it lasts."""

    kind: str
    subject: str
    group_name: str | None
    since: datetime
    sentence: str
    opened_at: datetime
    closed_at: datetime | None


@dataclass(frozen=True, slots=True, repr=False)
class ProblemRow(Readable):
    """What is wrong with one stream table, as ``pgtrickle.problems()`` reports it.

    A `lasting` problem keeps it from being refreshed until the `remedy` is applied; others the next tick mends. An
    `incident` is an open one, perhaps of a source or of a group.
    """

    stream_table: str
    problem: str
    remedy: str | None
    lasting: bool
    incident: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class SourceLimitsRow(Readable):
    """Limits on the silence of a source, as ``pgtrickle.source_limits()`` reports them; None is no limit.

    They are its own, or those of one of its watermark groups, which count where its own is None.
    """

    group_name: str | None
    stale_after: timedelta | None
    on_stale: str
    idle_after: timedelta | None
