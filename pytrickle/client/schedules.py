"""What keeps ticks from refreshing a stream table, or has them refresh several together: pauses, fuses, groups."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from pytrickle.client.several import several


class Schedules(ABC):
    """The part of a client that is about ticks; each method is one transaction."""

    @abstractmethod
    def _call(self, statement: str, *arguments: object) -> Any:
        """Run a call of one function and return what it returns."""

    def pause(self, name: str | None = None) -> int:
        """Have ticks leave out one stream table, or all, until resumed; return how many were not paused yet."""
        paused: int = self._call("SELECT pgtrickle.pause_stream_table(name => %s)", name)
        return paused

    def resume(self, name: str | None = None) -> int:
        """Have ticks take up one stream table again, or all; return how many were left out or to be retried."""
        resumed: int = self._call("SELECT pgtrickle.resume_stream_table(name => %s)", name)
        return resumed

    def request_refresh(self, name: str) -> int:
        """Ask whoever runs `pytrickle run` to refresh a stream table at once, and return the number of the request."""
        number: int = self._call("SELECT pgtrickle.refresh_stream_table(name => %s, wait => false)", name)
        return number

    def create_refresh_group(self, group_name: str, members: Sequence[str], isolation: str = "repeatable_read") -> None:
        """Have stream tables refreshed when one is due: in one transaction, or under read_committed one by one."""
        statement = (
            "SELECT pgtrickle.create_refresh_group(group_name => %s, members => %s::pg_catalog.text[], isolation => %s)"
        )
        self._call(statement, group_name, several("members", members), isolation)

    def drop_refresh_group(self, group_name: str) -> None:
        """Drop a refresh group; its members are refreshed on their own again."""
        self._call("SELECT pgtrickle.drop_refresh_group(group_name => %s)", group_name)

    def reset_fuse(self, name: str, action: str = "apply") -> None:
        """Decide about a delta that a fuse holds: let it pass (apply), or compute the table anew (reinitialize)."""
        self._call("SELECT pgtrickle.reset_fuse(name => %s, action => %s)", name, action)
