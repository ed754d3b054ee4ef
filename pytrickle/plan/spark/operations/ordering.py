"""ORDER BY over the input of an operation, in Spark where it sorts values exactly as PostgreSQL does.

Numbers, days, moments and bytes sort alike in both. What ties is sorted by the text of its whole row, byte by byte, as
PostgreSQL is asked to do it as well: Spark puts that text together from the parts that PostgreSQL writes.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from sqlglot import exp

from pytrickle.catalog.definition import Definition
from pytrickle.plan.algebra.construct import prefixed
from pytrickle.plan.algebra.constructs.window import COPY
from pytrickle.plan.algebra.delta import blocks_of
from pytrickle.plan.algebra.relation import Derived, Expr
from pytrickle.plan.spark.bounds import NUMERIC
from pytrickle.plan.spark.key_encoding import INTEGER, row_kind
from pytrickle.plan.spark.mixed import ORDERED, parsed
from pytrickle.plan.spark.numeric_text import power
from pytrickle.plan.spark.operations.input import AS_BIGINT, AS_TEXT, InputCarriers, LeftToPostgres, plain
from pytrickle.plan.spark.operations.results import OTHER, read_numeric
from pytrickle.plan.sql.dialect import row_order

OF_ORDER = "is sorted by what only PostgreSQL can sort"
# What stands for a value in the text of a row, as the server stores it.
PART = "convert_to(left(substr(CAST(ROW({0}) AS text), 2), -1), getdatabaseencoding())"
COMMA, END = "X'2C'", "X'29'"


@dataclass(slots=True)
class Ordering:
    """Writes what windows over one operation's input are sorted by; `read` collects the numbers that Spark reads.

    `row_texts` are the ways in which the text of the whole row is written.
    """

    derived: Derived
    definition: Definition
    rows: InputCarriers
    read: dict[str, str] = field(default_factory=dict)
    row_texts: tuple[exp.Expr, ...] = field(init=False)

    def __post_init__(self) -> None:
        names = self.derived.operation.arguments
        texts = (row_order(names), row_order(prefixed(names)))
        self.row_texts = tuple(parsed(Expr(text, frozenset())) for text in texts)

    def written(self, items: Iterable[exp.Ordered]) -> str:
        """Write an ORDER BY with the place of NULL in each; raise LeftToPostgres where Spark sorts otherwise."""
        return ", ".join(
            f"{self._value(item)} {'DESC' if item.args.get('desc') else 'ASC'}"
            f" NULLS {'FIRST' if item.args.get('nulls_first') else 'LAST'}"
            for item in items
        )

    def breaks_ties(self, items: Iterable[exp.Ordered]) -> bool:
        """Whether one of the things to sort by is the text of the whole row."""
        return any(item.this in self.row_texts for item in items)

    def _value(self, item: exp.Ordered) -> str:
        if item.this in self.row_texts:
            parts = [self.rows.column(argument, PART) for argument in self.derived.operation.arguments]
            return f" || {COMMA} || ".join(parts) + f" || {END}"
        column = item.this.unnest()
        if column == exp.column(COPY):
            return COPY
        if not isinstance(column, exp.Column):
            raise LeftToPostgres(OF_ORDER)
        return self._key(column.name) or self._sorted(column.name)

    def _key(self, name: str) -> str | None:
        """Return the column of a key that says the same: all rows of a partition tie in it."""
        blocks = [dict(block.columns) for block in blocks_of(self.derived.operation.input)]
        for key in self.derived.operation.keys:
            if all(block[key] == block[name] for block in blocks):
                return f"{key}_0"
        return None

    def _sorted(self, name: str) -> str:
        kind = row_kind(self.derived, name, self.definition)
        if kind is not None and kind.base_type == NUMERIC:
            text = self.rows.column(name, AS_TEXT)
            self.read[f"{text}_o"] = _sorted_numeric(text)
            return f"{text}_o"
        if kind is not None and kind.base_type in INTEGER:
            return self.rows.column(name, AS_BIGINT)
        if kind is None or kind.base_type not in ORDERED:
            raise LeftToPostgres(OF_ORDER)
        return self.rows.column(name, plain(ORDERED[kind.base_type]))


def _sorted_numeric(text: str) -> str:
    """Read a numeric so that NaN comes after infinity, and that after all others that Spark's decimals hold."""
    digits, scale = OTHER
    highest = power(digits)
    places = {"-Infinity": f"-{highest}", "Infinity": highest, "NaN": f"{highest} + 1"}
    beyond = " ".join(f"WHEN '{name}' THEN {place}" for name, place in places.items())
    value = f"CASE {text} {beyond} ELSE {read_numeric(text, digits, scale)} END"
    return f"CAST({value} AS DECIMAL({digits + 1 + scale},{scale}))"
