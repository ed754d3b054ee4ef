"""What can be declared about sources: groups that must agree, watermarks, gates and limits on silence."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Unpack

from psycopg.sql import SQL, Composed

from pytrickle.catalog.alert_limits import AlertLimits, call_with_alert_limits
from pytrickle.catalog.silence_limits import Limits, call_with_limits, tolerance_of_a_kind
from pytrickle.catalog.source_name import SOURCE
from pytrickle.client.several import several
from pytrickle.database import filled
from pytrickle.progress import sql_type


class Sources(ABC):
    """The part of a client that is about sources and watermark groups; each method is one transaction."""

    @abstractmethod
    def _call(self, statement: str, *arguments: object) -> Any:
        """Run a call of one function and return what it returns."""

    @abstractmethod
    def _execute(self, statement: SQL | Composed, arguments: Sequence[object]) -> Any:
        """Run a composed call of one function and return what it returns."""

    def create_watermark_group(
        self,
        group_name: str,
        sources: Sequence[str],
        tolerance: timedelta | str | int = timedelta(0),
        **limits: Unpack[Limits],
    ) -> None:
        """Have the watermarks of some sources agree within a tolerance (an int counts batches); limit their silence."""
        given = {
            "group_name": group_name,
            "sources": several("sources", sources),
            **tolerance_of_a_kind(tolerance),
            **limits,
        }
        self._execute(*call_with_limits("create_watermark_group", given))

    def alter_watermark_group(
        self,
        group_name: str,
        sources: Sequence[str] | None = None,
        tolerance: timedelta | str | int | None = None,
        *,
        reset: Sequence[str] = (),
        **limits: Unpack[Limits],
    ) -> None:
        """Change what is given of a watermark group, from the next tick on; what is in `reset` goes to its default."""
        found = None if sources is None else several("sources", sources)
        given = {"group_name": group_name, "sources": found, "reset": several("reset", reset)}
        self._execute(*call_with_limits("alter_watermark_group", given | tolerance_of_a_kind(tolerance) | limits))

    def drop_watermark_group(self, group_name: str) -> None:
        """Drop a watermark group; the stream tables over its sources are no longer gated by it."""
        self._call("SELECT pgtrickle.drop_watermark_group(group_name => %s)", group_name)

    def advance_watermark(self, source: str, watermark: datetime | int) -> None:
        """Assert that a source is complete through `watermark`, in a transaction of its own.

        It is an event time or the number of a batch. A loader should rather call the SQL function as it loads the rows.
        """
        call = "advance_batch" if isinstance(watermark, int) else "advance_watermark"
        template = f"SELECT pgtrickle.{{call}}({SOURCE}, %s::{{kind}})"
        self._execute(filled(template, call=call, kind=sql_type(watermark)), (source, watermark))

    def reset_watermark(self, source: str, watermark: datetime | int | None = None) -> None:
        """Take back wrong watermarks of a source: it is complete through this one, and those beyond are withdrawn.

        Without one, forget all watermarks of a source that is in no group; its next one may be of either kind.
        """
        if watermark is None:
            self._call(f"SELECT pgtrickle.reset_watermark({SOURCE})", source)
            return
        call = "reset_batch" if isinstance(watermark, int) else "reset_watermark"
        template = f"SELECT pgtrickle.{{call}}({SOURCE}, %s::{{kind}})"
        self._execute(filled(template, call=call, kind=sql_type(watermark)), (source, watermark))

    def set_watermark_checks(
        self, source: str, max_ahead: timedelta | None = timedelta(days=1), on_doubt: str = "warn"
    ) -> None:
        """Say which watermarks of a source are probably typos, and whether those are taken (warn) or refused (error).

        They are those further in the future than `max_ahead` (None: no limit), and those without a time zone.
        """
        call = f"SELECT pgtrickle.set_watermark_checks({SOURCE}, %s::interval, %s::pg_catalog.text)"
        self._call(call, source, max_ahead, on_doubt)

    def gate_source(self, source: str, reason: str | None = None) -> None:
        """Keep ticks from refreshing what is made of a source, until `ungate_source`."""
        self._call(f"SELECT pgtrickle.gate_source({SOURCE}, %s)", source, reason)

    def ungate_source(self, source: str) -> None:
        """Open the gate of a source."""
        self._call(f"SELECT pgtrickle.ungate_source({SOURCE})", source)

    def mark_idle(self, source: str) -> None:
        """Let the watermark groups of a source go on without it, until its next advance."""
        self._call(f"SELECT pgtrickle.mark_idle({SOURCE})", source)

    def adopt_source(self, source: str) -> None:
        """Put a table that was created again in the place of the dropped one of its name."""
        self._call(f"SELECT pgtrickle.adopt_source({SOURCE})", source)

    def forget_source(self, source: str) -> int:
        """Take a table that was dropped out of its watermark groups; return how many groups there were."""
        groups: int = self._call("SELECT pgtrickle.forget_source(%s)", source)
        return groups

    def set_source_limits(self, source: str, **limits: Unpack[Limits]) -> None:
        """Limit the time since the loader of a source was last seen; what is left out its groups decide."""
        given = {"source": source, "stale_after": None, **limits}
        self._execute(*call_with_limits("set_source_limits", given))

    def set_alert_limits(
        self, source: str | None = None, group_name: str | None = None, **limits: Unpack[AlertLimits]
    ) -> None:
        """Set the limits beyond which ticks raise an alert: of a source, of a group, or with neither of all others.

        A limit that is left out gets its default, one that is None is none.
        """
        self._execute(*call_with_alert_limits(source, group_name, limits))

    def reset_alert_limits(self, source: str | None = None, group_name: str | None = None) -> bool:
        """Remove the limits of a source, of a group, or those of all others; say whether there were any."""
        call = "SELECT pgtrickle.reset_alert_limits(source => %s, group_name => %s)"
        removed: bool = self._call(call, source, group_name)
        return removed
