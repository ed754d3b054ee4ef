"""d limit(R) = limit(NEW|K) - limit(OLD|K), where K are the keys in dR, or all without keys: LIMIT and OFFSET."""

from dataclasses import dataclass

from pytrickle.plan.algebra.construct import Construct, Names, listed, prefixed
from pytrickle.plan.sql.dialect import row_order

TEXT = "SELECT {shown} FROM (SELECT d.*, {places} FROM {rows} AS d) AS e WHERE {condition}"
# How many rows come before a row, and how many come before all that tie with it; each is counted with it.
PLACE, RANK = "pgt_place", "pgt_rank"


@dataclass(frozen=True, slots=True)
class FirstRows(Construct):
    """LIMIT and OFFSET for every key: the rows from the one after `offset` on, in an `order` over arguments.

    Without `limit` all of these; `with_ties` adds those that tie with the last one. The order may be `total`: then no
    rows tie.

    >>> print(FirstRows(("a0",), ("d.o0",), 3, 1, True).over("(rows)", ("k0", "o0", "a0"), ("k0",)))
    SELECT e.k0, e.a0 FROM (SELECT d.*, \
row_number() OVER (PARTITION BY d.k0 ORDER BY d.o0, CAST(ROW(d.k0, d.o0, d.a0) AS text) COLLATE "C") AS pgt_place, \
rank() OVER (PARTITION BY d.k0 ORDER BY d.o0) AS pgt_rank \
FROM (rows) AS d) AS e WHERE pgt_place > 1 AND pgt_rank <= 4
    """

    shown: Names
    order: Names
    limit: int | None
    offset: int
    with_ties: bool
    total: bool = False
    label = "limit"

    @property
    def breaks_ties(self) -> bool:
        """Rows that tie come in the order of their text."""
        return not self.total

    def depends_on_order(self, exact: bool) -> bool:
        """Of rows that tie, one may look different from another."""
        return not (exact or self.total)

    def columns(self, arguments: Names, keys: Names) -> Names:
        """Name the keys, then what is shown."""
        return (*keys, *self.shown)

    @property
    def places(self) -> dict[str, str]:
        """Name the columns of places by the functions that count them: those that `kept` reads."""
        ranked = {RANK: "rank"} if self.with_ties else {}
        return ({PLACE: "row_number"} if self.offset or not self.with_ties else {}) | ranked

    @property
    def kept(self) -> str:
        """Say by their places which rows are shown: those that tie with the last one begin before it."""
        if self.limit == 0:
            return "false"
        last = RANK if self.with_ties else PLACE
        tests = [f"{PLACE} > {self.offset}"] if self.offset else []
        return " AND ".join([*tests, *([] if self.limit is None else [f"{last} <= {self.offset + self.limit}"])])

    def sorted_by(self, place: str, arguments: Names) -> Names:
        """List what a place is counted by: of rows that tie, each has a place of its own."""
        return self.order if place == RANK else (*self.order, row_order(arguments))

    def over(self, rows: str, arguments: Names, keys: Names) -> str:
        """Write it over the rows."""
        partition = f"PARTITION BY {listed(keys)} " if keys else ""
        orders = {place: ", ".join(self.sorted_by(place, prefixed(arguments))) for place in self.places}
        places = (
            f"{function}() OVER ({partition}ORDER BY {orders[place]}) AS {place}"
            for place, function in self.places.items()
        )
        return TEXT.format(
            shown=", ".join(f"e.{name}" for name in (*keys, *self.shown)),
            places=", ".join(places),
            rows=rows,
            condition=self.kept,
        )
