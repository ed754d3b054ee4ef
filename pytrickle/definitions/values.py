"""A project of definitions as values, and what it differs in from a database."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Options = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StreamTableDefinition:
    """A stream table as a project defines it: `options` by the names that create_stream_table has for them.

    `origin` is where it is written, for errors. A `search_path` of None is that of the project.
    """

    name: str
    query: str
    options: Options
    origin: str
    renamed_from: str | None = None
    search_path: str | None = None


@dataclass(frozen=True, slots=True)
class GroupDefinition:
    """A watermark group or a refresh group: its sources or members, and its settings by the names of the SQL calls."""

    name: str
    members: tuple[str, ...]
    settings: Options


@dataclass(frozen=True, slots=True)
class SourceDefinition:
    """What a project says of a source: limits on its silence by the names that set_source_limits has for them, and its
    `event_time` column with the `time_zone` and `too_late` of set_event_time."""

    name: str
    settings: Options


@dataclass(frozen=True, slots=True)
class Project:
    """All definitions of one project; whatever else in the database carries its name is no longer wanted."""

    name: str
    stream_tables: tuple[StreamTableDefinition, ...]
    watermark_groups: tuple[GroupDefinition, ...] = ()
    refresh_groups: tuple[GroupDefinition, ...] = ()
    search_path: str | None = None
    sources: tuple[SourceDefinition, ...] = ()


@dataclass(frozen=True, slots=True)
class Change:
    """One step from the database to the project: create, alter, rename, replace or drop, of what, and in what it shows.

    `rebuilt` says why the rows are computed anew, None where they stay as they are.
    """

    action: str
    kind: str
    name: str
    details: tuple[str, ...] = ()
    rebuilt: str | None = None
    step: Any = field(default=None, repr=False, compare=False)

    def data(self) -> dict[str, Any]:
        """Return what there is to show."""
        return {
            "action": self.action,
            "kind": self.kind,
            "name": self.name,
            "details": list(self.details),
            "rebuilt": self.rebuilt,
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """What makes the database follow the project, in the order in which it is done; nothing where it does already."""

    project: str
    changes: tuple[Change, ...]

    def __bool__(self) -> bool:
        return bool(self.changes)

    def data(self) -> dict[str, Any]:
        """Return what there is to show."""
        return {"project": self.project, "changes": [change.data() for change in self.changes]}
