"""d first(R) = first(NEW|K) - first(OLD|K), where K are the keys in dR: DISTINCT ON."""

from dataclasses import dataclass

from pytrickle.plan.algebra.construct import Construct, Names, listed, prefixed
from pytrickle.plan.sql.dialect import row_order

TEXT = "SELECT DISTINCT ON ({keys}) {shown} FROM {rows} AS d ORDER BY {order}"


@dataclass(frozen=True, slots=True)
class DistinctOn(Construct):
    """DISTINCT ON the keys: the first row for each, in an `order` over arguments; `shown` are its columns.

    `entered` are columns that show a key.

    >>> print(DistinctOn(("a0",), ("d.o0 DESC",), ()).over("(rows)", ("k0", "o0", "a0"), ("k0",)))
    SELECT DISTINCT ON (d.k0) d.a0 FROM (rows) AS d ORDER BY d.k0, d.o0 DESC, CAST(ROW(k0, o0, a0) AS text) COLLATE "C"
    """

    shown: Names
    order: Names
    entered: Names
    label = "distinct on"

    @property
    def breaks_ties(self) -> bool:
        """Rows that tie come in the order of their text."""
        return True

    @property
    def pushed_down(self) -> Names:
        """The keys that are shown."""
        return self.entered

    def columns(self, arguments: Names, keys: Names) -> Names:
        """Name what is shown."""
        return self.shown

    def entries(self, arguments: Names, keys: Names) -> Names:
        """Name the keys that are shown."""
        return self.entered

    def over(self, rows: str, arguments: Names, keys: Names) -> str:
        """Write it over the rows."""
        order = ", ".join([*prefixed(keys), *self.order, row_order(arguments)])
        return TEXT.format(keys=listed(keys), shown=listed(self.shown), rows=rows, order=order)
