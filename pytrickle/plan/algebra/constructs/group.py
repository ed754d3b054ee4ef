"""d group(R) = group(NEW|K) - group(OLD|K), where K are the groups that dR touches: GROUP BY."""

import re
from dataclasses import dataclass

from pytrickle.plan.algebra.construct import Construct, Names, listed, prefixed

# An aggregate of a column of its rows, or of rows: its name, the column as it is written, and that column's name.
SIMPLE = re.compile(r'(count|sum|avg|min|max)\((?:("?d"?\."?(\w+)"?)|\*)\)', re.IGNORECASE)
TEXT = "SELECT {items} FROM {rows} AS d GROUP BY {keys}"


@dataclass(frozen=True, slots=True)
class Group(Construct):
    """GROUP BY the keys, with aggregate `calls`; without keys there is one group, even over no rows.

    `settled` says that some call sorts its rows further than the user's text does, `any_order` that no call and no key
    depends on the order of rows although equal arguments may differ.

    >>> Group(("count(*)",)).columns(("k0",), ("k0",)), Group(()).columns((), ())
    (('k0', 'c0'), ('one',))
    >>> Group(("sum(d.a0)",)).over("(rows)", ("k0", "a0"), ("k0",))
    'SELECT d.k0, sum(d.a0) AS c0 FROM (rows) AS d GROUP BY d.k0'
    """

    calls: Names
    settled: bool = False
    any_order: bool = False
    label = "aggregate"

    @property
    def breaks_ties(self) -> bool:
        """Whether the order of some call breaks ties."""
        return self.settled

    def depends_on_order(self, exact: bool) -> bool:
        """Whether the result may depend on the order of rows."""
        return not (exact or self.any_order)

    def columns(self, arguments: Names, keys: Names) -> Names:
        """Name the keys, then the calls."""
        return (*keys, *(f"c{i}" for i in range(len(self.calls)))) or ("one",)

    def representatives(self, keys: Names) -> Names:
        """Name the key that stands for those of its group."""
        return keys

    def over(self, rows: str, arguments: Names, keys: Names) -> str:
        """Write it over the rows."""
        calls = [f"{call} AS c{i}" for i, call in enumerate(self.calls)]
        items = ", ".join([*prefixed(keys), *calls]) or "1 AS one"
        # Without keys there is one group, even over no rows, and even where no call asks for it.
        return TEXT.format(items=items, rows=rows, keys=listed(keys) or "()")
