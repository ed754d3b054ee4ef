"""What a computation hands over to the write transaction."""

from dataclasses import dataclass
from typing import IO, Self

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Copied:
    """Rows as PostgreSQL's COPY wrote them in CSV; `columns` names them in order."""

    columns: tuple[str, ...]
    data: IO[bytes]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.data.close()


@dataclass(frozen=True, slots=True)
class Staged:
    """Rows to apply: an Arrow table whose columns are text, but for the weight where rows have one, rows copied, or
    the name of the staging table that Spark filled.

    `keyed` holds the recomputed values of groups that increments cannot maintain.
    """

    rows: pa.Table | Copied | str
    keyed: pa.Table | Copied | None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of copied rows."""
        for part in (self.rows, self.keyed):
            if isinstance(part, Copied):
                part.data.close()
