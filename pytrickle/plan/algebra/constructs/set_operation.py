"""d (L op R) = (L op R)(NEW|K) - (L op R)(OLD|K), where K are the rows in dL and dR: UNION, INTERSECT and EXCEPT."""

from dataclasses import dataclass
from typing import Literal

from pytrickle.plan.algebra.construct import ROW, Construct, Names, listed
from pytrickle.plan.sql.copies import copies

COUNTS = tuple(f"count(*) FILTER (WHERE {ROW}.side = {side})" for side in (0, 1))
# How often a row is shown that the left side has so often, and the right side so often.
TIMES = {"intersect": f"least({COUNTS[0]}, {COUNTS[1]})", "except": f"{COUNTS[0]} - {COUNTS[1]}"}
SHOWN = {
    "union": "",
    "intersect": f" HAVING {COUNTS[0]} > 0 AND {COUNTS[1]} > 0",
    "except": f" HAVING {COUNTS[0]} > 0 AND {COUNTS[1]} = 0",
}
ONCE = "SELECT {items} FROM {rows} AS d GROUP BY {keys}{shown}"
COUNTED = "SELECT {items}, {times} AS n FROM {rows} AS d GROUP BY {keys}"
LEFT = f"CAST(min({ROW}.{{key}}) FILTER (WHERE {ROW}.side = 0) AS {{type_name}}) AS {{key}}"
REPEATED = f"SELECT {{columns}} FROM ({COUNTED}) AS g, {copies('g.n')}"


@dataclass(frozen=True, slots=True)
class SetOperation(Construct):
    """UNION, INTERSECT or EXCEPT by how often two sides have a row, l and r times; the argument `side` is 0 or 1.

    INTERSECT ALL shows it min(l, r) times, EXCEPT ALL max(l - r, 0) times; without ALL they show it once, if l and r
    are positive, or if l is positive and r is zero.
    Of keys in `left`, with their types, the value of that side is shown.

    >>> SetOperation("except", distinct=False).name
    'except all'
    >>> print(SetOperation("except", distinct=True).over("(rows)", ("k0", "side"), ("k0",)))
    SELECT d.k0 FROM (rows) AS d GROUP BY d.k0 \
HAVING count(*) FILTER (WHERE d.side = 0) > 0 AND count(*) FILTER (WHERE d.side = 1) = 0
    """

    operator: Literal["union", "intersect", "except"]
    distinct: bool
    left: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """What it is called."""
        return self.operator if self.distinct else f"{self.operator} all"

    def representatives(self, keys: Names) -> Names:
        """Name the columns of the row that stands for those that equal it."""
        return keys

    def over(self, rows: str, arguments: Names, keys: Names) -> str:
        """Write it over the rows."""
        left = {key: LEFT.format(key=key, type_name=type_name) for key, type_name in self.left}
        items = ", ".join(left.get(key, f"{ROW}.{key}") for key in keys)
        if self.distinct:
            return ONCE.format(items=items, keys=listed(keys), rows=rows, shown=SHOWN[self.operator])
        columns, times = ", ".join(f"g.{key}" for key in keys), TIMES[self.operator]
        return REPEATED.format(columns=columns, items=items, keys=listed(keys), times=times, rows=rows)
