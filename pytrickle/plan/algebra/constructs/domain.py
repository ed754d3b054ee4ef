"""d domain(R) = domain(NEW|K) - domain(OLD|K), where K are the values in dR: what a subquery is computed for."""

from dataclasses import dataclass

from pytrickle.plan.algebra.construct import ROW, Construct, Names, listed


@dataclass(frozen=True, slots=True)
class Domain(Construct):
    """The distinct values for which the rows around a subquery need it.

    >>> "(rows)".join(Domain().around(("k0",), ("k0",)))
    'SELECT DISTINCT d.k0 FROM (rows) AS d'
    """

    label = "domain"

    def around(self, arguments: Names, keys: Names) -> tuple[str, str]:
        """Write what stands before and behind the rows."""
        return f"SELECT DISTINCT {listed(keys)} FROM ", f" AS {ROW}"
