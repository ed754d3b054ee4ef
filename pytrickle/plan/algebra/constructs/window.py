"""d window(R) = window(NEW|K) - window(OLD|K), where K are the partitions that dR touches: window functions."""

from dataclasses import dataclass

from pytrickle.plan.algebra.construct import Construct, Names, prefixed
from pytrickle.plan.sql.dialect import row_order

TEXT = "SELECT {items} FROM {rows} AS d"
COPY = "pgt_copy"
COPIES = "(SELECT d.*, row_number() OVER (PARTITION BY {row}) AS {copy} FROM {rows} AS d)"


@dataclass(frozen=True, slots=True)
class Window(Construct):
    """Window `functions` beside each row of a partition; the rows come sorted by `order`.

    `entered` are arguments by which all windows are partitioned, `partitioned` those that occur in their partitions. If
    it `numbers_copies`, the functions find a number of each of several equal rows as COPY. `ties` are keys by which the
    windows are partitioned too, and which are shown.

    >>> window = Window(("rank() OVER (ORDER BY d.a0)",), ("d.a0",))
    >>> window.columns(("k0", "a0"), ("k0",))
    ('a0', 'w0')
    >>> window.over("(rows)", ("k0", "a0"), ("k0",))
    'SELECT d.a0, rank() OVER (ORDER BY d.a0) AS w0 FROM (rows) AS d'
    """

    functions: Names
    order: Names
    entered: Names = ()
    partitioned: Names = ()
    numbers_copies: bool = False
    ties: Names = ()
    label = "window"

    @property
    def ordering(self) -> Names:
        """The order of the first window."""
        return self.order

    @property
    def pushed_down(self) -> Names:
        """What partitions are told apart by."""
        return (*self.partitioned, *self.ties)

    def columns(self, arguments: Names, keys: Names) -> Names:
        """Name the arguments beside the keys, then the functions, then the ties."""
        return (*arguments[len(keys) :], *(f"w{i}" for i in range(len(self.functions))), *self.ties)

    def entries(self, arguments: Names, keys: Names) -> Names:
        """Name what every window is partitioned by."""
        return (*self.entered, *self.ties)

    def depends_on_order(self, exact: bool) -> bool:
        """Rows that tie for one window need not tie for another."""
        return True

    def over(self, rows: str, arguments: Names, keys: Names) -> str:
        """Write it over the rows."""
        functions = [f"{function} AS w{i}" for i, function in enumerate(self.functions)]
        if self.numbers_copies:
            rows = COPIES.format(row=row_order(prefixed(arguments)), copy=COPY, rows=rows)
        items = (*prefixed(arguments[len(keys) :]), *functions, *prefixed(self.ties))
        return TEXT.format(items=", ".join(items), rows=rows)
