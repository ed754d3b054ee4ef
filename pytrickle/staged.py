"""What Spark hands over to the write transaction."""

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Staged:
    """Rows to apply: an Arrow table whose columns are text, but for the weight where rows have one, or the name of
    the staging table that Spark filled.

    `keyed` holds the recomputed values of groups that increments cannot maintain.
    """

    rows: pa.Table | str
    keyed: pa.Table | None
