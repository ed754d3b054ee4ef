"""d (L op R) = (L op R)(NEW|K) - (L op R)(OLD|K), where K are the rows in dL and dR: UNION, INTERSECT and EXCEPT."""

from dataclasses import dataclass
from typing import Literal

from pytrickle.plan.algebra.construct import ROW, Construct, Names, listed

COUNTS = tuple(f"count(*) FILTER (WHERE {ROW}.side = {side})" for side in (0, 1))
# How often a row is shown that the left side has so often, and the right side so often.
TIMES = {"intersect": f"least({COUNTS[0]}, {COUNTS[1]})", "except": f"{COUNTS[0]} - {COUNTS[1]}"}
SHOWN = {
    "union": "",
    "intersect": f" HAVING {COUNTS[0]} > 0 AND {COUNTS[1]} > 0",
    "except": f" HAVING {COUNTS[0]} > 0 AND {COUNTS[1]} = 0",
}


@dataclass(frozen=True, slots=True)
class SetOperation(Construct):
    """UNION, INTERSECT or EXCEPT by how often two sides have a row, l and r times; the argument `side` is 0 or 1.

    INTERSECT ALL shows it min(l, r) times, EXCEPT ALL max(l - r, 0) times; without ALL they show it once, if l and r
    are positive, or if l is positive and r is zero.

    >>> SetOperation("except", distinct=False).name
    'except all'
    >>> print("(rows)".join(SetOperation("except", distinct=True).around(("k0", "side"), ("k0",))))
    SELECT d.k0 FROM (rows) AS d GROUP BY d.k0 \
HAVING count(*) FILTER (WHERE d.side = 0) > 0 AND count(*) FILTER (WHERE d.side = 1) = 0
    """

    operator: Literal["union", "intersect", "except"]
    distinct: bool

    @property
    def name(self) -> str:
        """What it is called."""
        return self.operator if self.distinct else f"{self.operator} all"

    def representatives(self, keys: Names) -> Names:
        """Name the columns of the row that stands for those that equal it."""
        return keys

    def around(self, arguments: Names, keys: Names) -> tuple[str, str]:
        """Write what stands before and behind the rows."""
        group = f" AS {ROW} GROUP BY {listed(keys)}"
        if self.distinct:
            return f"SELECT {listed(keys)} FROM ", f"{group}{SHOWN[self.operator]}"
        shown = ", ".join(f"g.{key}" for key in keys)
        inner = f"SELECT {listed(keys)}, {TIMES[self.operator]} AS n FROM "
        return f"SELECT {shown} FROM ({inner}", f"{group}) AS g, generate_series(1, g.n) AS e (pgt_n)"
