"""What a computation hands over to the write transaction."""

from __future__ import annotations

import re
from dataclasses import dataclass
from os import SEEK_END
from typing import IO, TYPE_CHECKING, Self

if TYPE_CHECKING:
    import pyarrow as pa

# A field of CSV as PostgreSQL writes it: quoted, or empty for NULL, or plain; then a comma or the end of the line.
FIELD = re.compile(r'("[^"]*(?:""[^"]*)*"|[^,\n]*)([,\n])')
Row = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Copied:
    """Rows as PostgreSQL's COPY wrote them in CSV; `columns` names them in order."""

    columns: tuple[str, ...]
    data: IO[bytes]

    def rows(self, most_bytes: int) -> list[Row] | None:
        """Return the rows, a column that is NULL as None, unless they take more than so many bytes."""
        if self.data.seek(0, SEEK_END) > most_bytes:
            return None
        self.data.seek(0)
        found: list[Row] = []
        row: list[str | None] = []
        for field, end in FIELD.findall(self.data.read().decode()):
            row.append(field[1:-1].replace('""', '"') if field.startswith('"') else field or None)
            if end == "\n":
                found.append(tuple(row))
                row = []
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.data.close()


@dataclass(frozen=True, slots=True)
class Staged:
    """Rows to apply: an Arrow table whose columns are text, but for the weight where rows have one, rows copied, or
    the name of the staging table that Spark filled.

    `keyed` holds the recomputed values of groups that increments cannot maintain, `kept` the increments of groups
    within the query.
    """

    rows: pa.Table | Copied | str
    keyed: pa.Table | Copied | None
    kept: tuple[Copied, ...] = ()

    @property
    def size(self) -> int | None:
        """How many bytes the rows take; None where they are in a staging table."""
        sizes = [_size(part) for part in (self.rows, self.keyed) if part is not None]
        known = [size for size in sizes if size is not None]
        return sum(known) if len(known) == len(sizes) else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of copied rows."""
        for part in (self.rows, self.keyed, *self.kept):
            if isinstance(part, Copied):
                part.data.close()


def _size(part: pa.Table | Copied | str) -> int | None:
    match part:
        case str():
            return None
        case Copied():
            return part.data.seek(0, SEEK_END)
        case _:
            return int(part.nbytes)
