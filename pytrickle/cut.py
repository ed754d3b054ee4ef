"""A cut: the point in a source's history up to which a reader has seen its changes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from pytrickle.errors import CatalogError

_SNAPSHOT = re.compile(r"[0-9]+:[0-9]+:([0-9]+(,[0-9]+)*)?")
_XID = re.compile(r"[0-9]+")
_LSN = re.compile(r"[0-9A-F]{1,8}/[0-9A-F]{1,8}")


@dataclass(frozen=True, slots=True)
class Cut:
    """What ``pgtrickle.cut`` holds: a change (xid, pos) is covered iff its transaction is visible in ``snapshot``,
    or it is one of transaction ``xid``'s own changes up to ``pos``.

    ``snapshot`` and ``lsn`` are in PostgreSQL's text form; ``lsn`` is for people only and may be None.
    Raises CatalogError when a field does not have that form, so that ``literal`` is safe to put into SQL.
    """

    snapshot: str
    xid: str | None
    pos: int | None
    lsn: str | None

    def __post_init__(self) -> None:
        wellformed = (
            _SNAPSHOT.fullmatch(self.snapshot)
            and (self.xid is None or _XID.fullmatch(self.xid))
            and (self.pos is None or type(self.pos) is int)
            and (self.lsn is None or _LSN.fullmatch(self.lsn))
        )
        if not wellformed:
            raise CatalogError("The catalog holds a malformed cut.", "Reinitialize the stream tables that read it.")

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Return the cut that ``to_json`` of a ``pgtrickle.cut`` wrote: snapshot, xid, pos, lsn; absent means NULL."""
        xid = value.get("xid")
        return cls(value["snapshot"], None if xid is None else str(xid), value.get("pos"), value.get("lsn"))

    def to_json(self) -> dict[str, Any]:
        """Return the fields by name; the inverse of ``from_json``."""
        return asdict(self)

    @property
    def xmin(self) -> int:
        """The lowest transaction that may not be covered: every change outside the cut has ``xid >= xmin``."""
        return int(self.snapshot.partition(":")[0])

    def literal(self) -> str:
        """Return the cut as an SQL expression of type ``pgtrickle.cut``.

        >>> Cut("10:12:11", "11", 7, None).literal()
        "ROW('10:12:11'::pg_snapshot, '11'::xid8, 7::bigint, NULL::pg_lsn)::pgtrickle.cut"
        """
        xid = "NULL" if self.xid is None else f"'{self.xid}'"
        pos = "NULL" if self.pos is None else f"({self.pos})" if self.pos < 0 else str(self.pos)
        lsn = "NULL" if self.lsn is None else f"'{self.lsn}'"
        return f"ROW('{self.snapshot}'::pg_snapshot, {xid}::xid8, {pos}::bigint, {lsn}::pg_lsn)::pgtrickle.cut"

    def covered(self) -> str:
        """Write the condition that a buffered change is covered by this cut, as ``pgtrickle.covers`` defines it."""
        visible = f"pg_visible_in_snapshot(pgt_xid, '{self.snapshot}'::pg_snapshot)"
        if self.xid is None:
            return visible
        return f"({visible} OR (pgt_xid = '{self.xid}'::xid8 AND pgt_pos <= {self.pos}))"

    def beyond(self) -> str:
        """Write the condition that a buffered change is not covered; it leads with what an index is on."""
        return f"pgt_xid >= '{self.xmin}'::xid8 AND NOT {self.covered()}"


@dataclass(frozen=True, slots=True)
class GivenCut:
    """A cut that a statement is given as parameters, named after it: so the text is the same whatever the cut is."""

    name: str

    def covered(self) -> str:
        """Write the condition that a buffered change is covered, as ``Cut.covered`` does."""
        own = f"pgt_xid = %({self.name}_xid)s::xid8 AND pgt_pos <= %({self.name}_pos)s::bigint"
        return f"(pg_visible_in_snapshot(pgt_xid, %({self.name}_snapshot)s::pg_snapshot) OR ({own}) IS TRUE)"

    def beyond(self) -> str:
        """Write the condition that it is not; it leads with the transaction, as that of ``Cut`` does."""
        return f"pgt_xid >= %({self.name}_xmin)s::xid8 AND NOT {self.covered()}"

    def given(self, cut: Cut) -> dict[str, str | None]:
        """Return the parameters for a cut.

        >>> GivenCut("old").given(Cut("10:12:11", "11", 7, None))
        {'old_snapshot': '10:12:11', 'old_xid': '11', 'old_pos': '7', 'old_xmin': '10'}
        """
        pos = None if cut.pos is None else str(cut.pos)
        parts = {"snapshot": cut.snapshot, "xid": cut.xid, "pos": pos, "xmin": str(cut.xmin)}
        return {f"{self.name}_{part}": value for part, value in parts.items()}
