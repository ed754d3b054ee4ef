"""d domain(R) = domain(NEW|K) - domain(OLD|K), where K are the values in dR: what a subquery is computed for."""

from dataclasses import dataclass

from pytrickle.plan.algebra.construct import Construct, Names, listed

TEXT = "SELECT DISTINCT {keys} FROM {rows} AS d"


@dataclass(frozen=True, slots=True)
class Domain(Construct):
    """The distinct values for which the rows around a subquery need it.

    >>> Domain().over("(rows)", ("k0",), ("k0",))
    'SELECT DISTINCT d.k0 FROM (rows) AS d'
    """

    label = "domain"

    def over(self, rows: str, arguments: Names, keys: Names) -> str:
        """Write it over the rows."""
        return TEXT.format(keys=listed(keys), rows=rows)
