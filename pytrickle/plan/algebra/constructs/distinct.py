"""d distinct(R) = distinct(NEW|K) - distinct(OLD|K), where K are the rows in dR: SELECT DISTINCT."""

from dataclasses import dataclass

from pytrickle.plan.algebra.construct import ROW, Construct, Names, listed


@dataclass(frozen=True, slots=True)
class Distinct(Construct):
    """SELECT DISTINCT: each row once.

    >>> "(rows)".join(Distinct().around(("k0", "k1"), ("k0", "k1")))
    'SELECT DISTINCT d.k0, d.k1 FROM (rows) AS d'
    """

    label = "distinct"

    def representatives(self, keys: Names) -> Names:
        """Name the columns of the row that stands for those that equal it."""
        return keys

    def around(self, arguments: Names, keys: Names) -> tuple[str, str]:
        """Write what stands before and behind the rows."""
        return f"SELECT DISTINCT {listed(keys)} FROM ", f" AS {ROW}"
