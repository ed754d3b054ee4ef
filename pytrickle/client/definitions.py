"""What keeps stream tables and groups as the files of a project define them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from os import PathLike
from pathlib import Path

from pytrickle.catalog.stream_table import stream_table
from pytrickle.database import AGAIN_SAFE, translate_errors
from pytrickle.definitions.apply import carry_out
from pytrickle.definitions.compare import compare
from pytrickle.definitions.export import export_project
from pytrickle.definitions.files import read_project
from pytrickle.definitions.values import Plan, Project
from pytrickle.refresh.cycle.rules import check_monotone
from pytrickle.refresh.refresher import Refresher

Source = str | PathLike[str] | Project


class Definitions(ABC):
    """The part of a client that compares a project with the database, and carries it out."""

    @abstractmethod
    def _refreshing(self) -> Refresher:
        """Return the refresher on a living connection."""

    @abstractmethod
    def _require(self, pgt_id: int) -> None:
        """Refuse what a planner must refuse: a mode that needs a delta rule, for a query that has none."""

    def plan(self, project: Source) -> Plan:
        """Return what makes the database follow a project, given as its directory or as a value; change nothing.

        The plan is false where nothing is to be done.
        """
        with translate_errors():
            return compare(self._refreshing().connection, _read(project))

    def apply(self, project: Source, *, dry_run: bool = False) -> Plan:
        """Make the database follow a project in one transaction, all or nothing; return what was done.

        A dry run does all of it and takes it back, so it raises what stands against it. Meanwhile sources are locked as
        they are by `apply`.
        """
        refresher = self._refreshing()
        connection = refresher.connection

        def check(pgt_id: int) -> None:
            connection.execute(AGAIN_SAFE)
            if stream_table(connection, pgt_id).differential_only:
                self._require(pgt_id)
            check_monotone(refresher.planner, connection, pgt_id)

        with translate_errors():
            return carry_out(connection, _read(project), check, dry_run)

    def export(self, project: str, directory: str | PathLike[str]) -> tuple[Path, ...]:
        """Write what the database has, but for what other projects own, as a project of that name; return the files."""
        return export_project(self._refreshing().connection, project, Path(directory))


def _read(project: Source) -> Project:
    return project if isinstance(project, Project) else read_project(Path(project))
