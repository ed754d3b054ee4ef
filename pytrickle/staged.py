"""What Spark hands over to the write transaction."""

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Staged:
    """Rows to apply, as Arrow tables whose columns are text, but for the weight where rows have one.

    `keyed` holds the recomputed values of groups that increments cannot maintain.
    """

    rows: pa.Table
    keyed: pa.Table | None
