"""What the rows of the extension's catalog mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytrickle.errors import CatalogError
from pytrickle.extension.tables import CatalogTables, Row, oid_list

OWN_COLUMN = "__pgt_"


@dataclass(frozen=True, slots=True)
class StreamTable:
    """A stream table of the extension; `cycle` numbers the cycle that it belongs to, `columns` are name and type."""

    relation: int
    name: str
    query: str
    reads: frozenset[int]
    row: Row
    columns: Sequence[tuple[str, str]]

    @property
    def cycle(self) -> str | None:
        return self.row.get("scc_id")


@dataclass(frozen=True, slots=True)
class Group:
    """A watermark group; the tolerance is in seconds."""

    name: str
    sources: tuple[str, ...]
    tolerance: float


@dataclass(frozen=True, slots=True)
class RefreshGroup:
    """Stream tables that refresh together."""

    name: str
    members: tuple[str, ...]
    isolation: str


@dataclass(frozen=True, slots=True)
class Contents:
    """All that the extension's catalog holds and that has a counterpart here; sources are named, times are texts."""

    stream_tables: tuple[StreamTable, ...]
    groups: tuple[Group, ...]
    watermarks: tuple[tuple[str, str], ...]
    gates: tuple[str, ...]
    refresh_groups: tuple[RefreshGroup, ...]
    subscriptions: tuple[tuple[str, str], ...]
    settings: Mapping[str, str]
    dropped: frozenset[int]


def contents(tables: CatalogTables) -> Contents:
    """Read the rows, without sources that are gone; raises CatalogError naming the OIDs that nothing names."""
    names = _Names(tables)
    rows = tables.rows
    found = Contents(
        stream_tables=tuple(_stream_table(row, tables) for row in rows["pgt_stream_tables"]),
        groups=tuple(group for row in rows["pgt_watermark_groups"] if (group := _group(row, names)).sources),
        watermarks=tuple(
            (name, row["watermark"] or "")
            for row in rows["pgt_watermarks"]
            for name in names.of_all(row["source_relid"])
        ),
        gates=tuple(
            name
            for row in rows["pgt_source_gates"]
            if row["gated"] == "t"
            for name in names.of_all(row["source_relid"])
        ),
        refresh_groups=tuple(_refresh_group(row, names) for row in rows["pgt_refresh_groups"]),
        subscriptions=tuple((row["stream_table"] or "", row["channel"] or "") for row in rows["pgt_subscriptions"]),
        settings=tables.settings,
        dropped=tables.dropped,
    )
    names.refuse_unknown()
    return found


class _Names:
    """Names relations by their OIDs, and remembers those that it could not name."""

    def __init__(self, tables: CatalogTables) -> None:
        self._known, self._dropped = tables.relations, tables.dropped
        self._unknown: set[int] = set()

    def of_all(self, oids: str | None) -> tuple[str, ...]:
        wanted = [oid for oid in oid_list(oids or "") if oid not in self._dropped]
        self._unknown |= set(wanted) - set(self._known)
        return tuple(self._known.get(oid, "") for oid in wanted)

    def refuse_unknown(self) -> None:
        if not self._unknown:
            return
        listed = ", ".join(map(str, sorted(self._unknown)))
        raise CatalogError(
            f"The catalog speaks of relations by numbers that nothing names: {listed}.",
            f"Name each, as in --source {min(self._unknown)}=public.orders; in the old database,"
            f" SELECT {min(self._unknown)}::regclass tells the name.",
        )


def _stream_table(row: Row, tables: CatalogTables) -> StreamTable:
    (relation,) = oid_list(row["pgt_relid"] or "")
    read = (each for each in tables.rows["pgt_dependencies"] if each["pgt_id"] == row["pgt_id"])
    columns = [(name, type_) for name, type_ in tables.shapes.get(relation, ()) if not name.startswith(OWN_COLUMN)]
    return StreamTable(
        relation=relation,
        name=tables.relations[relation],
        query=row.get("original_query") or row["defining_query"] or "",
        reads=frozenset(oid for each in read for oid in oid_list(each["source_relid"] or "")),
        row=row,
        columns=columns,
    )


def _group(row: Row, names: _Names) -> Group:
    return Group(row["group_name"] or "", names.of_all(row["source_relids"]), float(row["tolerance_secs"] or 0))


def _refresh_group(row: Row, names: _Names) -> RefreshGroup:
    return RefreshGroup(row["group_name"] or "", names.of_all(row["member_oids"]), row["isolation"] or "")
