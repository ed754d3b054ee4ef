"""d single(R) = single(NEW|K) - single(OLD|K), where K are the keys in dR: the row of a scalar subquery."""

from dataclasses import dataclass

from pytrickle.plan.algebra.construct import Construct, Names, listed, prefixed
from pytrickle.plan.sql.dialect import row_text

TEXT = "SELECT {on}{items} FROM {rows} AS d ORDER BY {order}{limit}"


@dataclass(frozen=True, slots=True)
class Single(Construct):
    """The row of a scalar subquery for every key: its columns, and how many rows there are, `n`.

    >>> print(Single().over("(rows)", ("k0", "v0"), ("k0",)))
    SELECT DISTINCT ON (d.k0) d.k0, d.v0, count(*) OVER (PARTITION BY d.k0) AS n \
FROM (rows) AS d ORDER BY d.k0, CAST(ROW(k0, v0) AS text)
    """

    label = "scalar"

    def columns(self, arguments: Names, keys: Names) -> Names:
        """Name the keys, the columns and the number of rows."""
        return (*arguments, "n")

    def over(self, rows: str, arguments: Names, keys: Names) -> str:
        """Write it over the rows."""
        partition = f"PARTITION BY {listed(keys)}" if keys else ""
        on = f"DISTINCT ON ({listed(keys)}) " if keys else ""
        items = ", ".join([*prefixed(arguments), f"count(*) OVER ({partition}) AS n"])
        order = ", ".join([*prefixed(keys), row_text(arguments)])
        return TEXT.format(on=on, items=items, rows=rows, order=order, limit="" if keys else " LIMIT 1")

    def depends_on_order(self, exact: bool) -> bool:
        """Where there is more than one row nothing is shown."""
        return False
