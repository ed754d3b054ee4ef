"""d limit(R) = limit(NEW|K) - limit(OLD|K), where K are the keys in dR, or all without keys: LIMIT and OFFSET."""

from dataclasses import dataclass

from pytrickle.plan.algebra.construct import ROW, Construct, Names, listed, prefixed
from pytrickle.plan.sql.dialect import row_text


@dataclass(frozen=True, slots=True)
class FirstRows(Construct):
    """LIMIT and OFFSET for every key: the rows from the one after `offset` on, in an `order` over arguments.

    Without `limit` all of these; `with_ties` adds those that tie with the last one.

    >>> print("(rows)".join(FirstRows(("a0",), ("d.o0",), 3, 1, True).around(("k0", "o0", "a0"), ("k0",))))
    SELECT e.k0, e.a0 FROM (SELECT d.*, rank() OVER (PARTITION BY d.k0 ORDER BY d.o0) AS pgt_place \
FROM (rows) AS d) AS e WHERE e.pgt_place > 1 AND e.pgt_place <= 4
    """

    shown: Names
    order: Names
    limit: int | None
    offset: int
    with_ties: bool
    label = "limit"

    @property
    def breaks_ties(self) -> bool:
        """Rows that tie come in the order of their text."""
        return True

    def columns(self, arguments: Names, keys: Names) -> Names:
        """Name the keys, then what is shown."""
        return (*keys, *self.shown)

    def around(self, arguments: Names, keys: Names) -> tuple[str, str]:
        """Write what stands before and behind the rows."""
        place = "rank()" if self.with_ties else "row_number()"
        partition = f"PARTITION BY {listed(keys)} " if keys else ""
        order = self.order if self.with_ties else (*self.order, row_text(prefixed(arguments)))
        number = f"{place} OVER ({partition}ORDER BY {', '.join(order)}) AS pgt_place"
        shown = ", ".join(f"e.{name}" for name in (*keys, *self.shown))
        last = f" AND e.pgt_place <= {self.offset + self.limit}" if self.limit is not None else ""
        head = f"SELECT {shown} FROM (SELECT {ROW}.*, {number} FROM "
        return head, f" AS {ROW}) AS e WHERE e.pgt_place > {self.offset}{last}"
