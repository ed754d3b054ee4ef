"""d (R + S) = dR + dS: several blocks of rows as one leaf."""

from dataclasses import dataclass

from pytrickle.plan.algebra.construct import Construct, Names

# A table by its number: what is read in its stead is known when the query is compiled.
TABLE = "\x00{relid}\x00"


@dataclass(frozen=True, slots=True)
class Folded(Construct):
    """A sum of blocks as one leaf. With `cancels` it shows no row that another block takes away.

    `written` is a query for its rows as the tables are, where there is one: each of these stands in it as TABLE.

    >>> Folded().linear, Folded(cancels=True).consolidated
    (True, True)
    """

    cancels: bool = False
    written: str | None = None
    label = "rows"

    @property
    def linear(self) -> bool:
        """A sum is linear."""
        return True

    @property
    def consolidated(self) -> bool:
        """Whether weights are added up before anything is computed from the rows."""
        return self.cancels

    def columns(self, arguments: Names, keys: Names) -> Names:
        """Name all columns."""
        return arguments

    def entries(self, arguments: Names, keys: Names) -> Names:
        """Name all columns."""
        return arguments

    def depends_on_order(self, exact: bool) -> bool:
        """It shows every row."""
        return False
