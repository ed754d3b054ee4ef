"""d distinct(R) = distinct(NEW|K) - distinct(OLD|K), where K are the rows in dR: SELECT DISTINCT."""

from dataclasses import dataclass

from pytrickle.plan.algebra.construct import Construct, Names, listed

TEXT = "SELECT DISTINCT {keys} FROM {rows} AS d"


@dataclass(frozen=True, slots=True)
class Distinct(Construct):
    """SELECT DISTINCT: each row once.

    >>> Distinct().over("(rows)", ("k0", "k1"), ("k0", "k1"))
    'SELECT DISTINCT d.k0, d.k1 FROM (rows) AS d'
    """

    label = "distinct"

    def representatives(self, keys: Names) -> Names:
        """Name the columns of the row that stands for those that equal it."""
        return keys

    def over(self, rows: str, arguments: Names, keys: Names) -> str:
        """Write it over the rows."""
        return TEXT.format(keys=listed(keys), rows=rows)
