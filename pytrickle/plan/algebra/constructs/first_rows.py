"""d limit(R) = limit(NEW|K) - limit(OLD|K), where K are the keys in dR, or all without keys: LIMIT and OFFSET."""

from dataclasses import dataclass

from pytrickle.plan.algebra.construct import Construct, Names, listed, prefixed
from pytrickle.plan.sql.dialect import row_text

TEXT = (
    "SELECT {shown} FROM (SELECT d.*, {place} OVER ({window}) AS pgt_place FROM {rows} AS d) AS e "
    "WHERE e.pgt_place > {offset}{last}"
)


@dataclass(frozen=True, slots=True)
class FirstRows(Construct):
    """LIMIT and OFFSET for every key: the rows from the one after `offset` on, in an `order` over arguments.

    Without `limit` all of these; `with_ties` adds those that tie with the last one.

    >>> print(FirstRows(("a0",), ("d.o0",), 3, 1, True).over("(rows)", ("k0", "o0", "a0"), ("k0",)))
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

    def over(self, rows: str, arguments: Names, keys: Names) -> str:
        """Write it over the rows."""
        partition = f"PARTITION BY {listed(keys)} " if keys else ""
        order = self.order if self.with_ties else (*self.order, row_text(prefixed(arguments)))
        return TEXT.format(
            shown=", ".join(f"e.{name}" for name in (*keys, *self.shown)),
            place="rank()" if self.with_ties else "row_number()",
            window=f"{partition}ORDER BY {', '.join(order)}",
            rows=rows,
            offset=self.offset,
            last="" if self.limit is None else f" AND e.pgt_place <= {self.offset + self.limit}",
        )
