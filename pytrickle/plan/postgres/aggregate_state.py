"""Aggregates compiled to PostgreSQL: increments, keyed recomputation, and final rows from the state."""

from dataclasses import dataclass

from pytrickle.plan.algebra.query import Aggregate
from pytrickle.plan.postgres import by_scale
from pytrickle.plan.postgres.aggregate import Merge, StateColumn, result, state_columns
from pytrickle.plan.postgres.consolidate import PLACE, TABLE, WEIGHT, consolidate
from pytrickle.plan.sql.copies import copies
from pytrickle.plan.sql.dialect import quote, row_text
from pytrickle.plan.sql.types import is_short

GROUPED = "SELECT {items}\nFROM (\n{rows}\n) AS d{group}"
FINAL = "SELECT {output}\nFROM (SELECT {inner} FROM {state}) AS g{having}"
ONE_BY_ONE = f"SELECT d.*{{places}} FROM (\n{{rows}}\n) AS d, {copies(f'd.{WEIGHT}')}"

# The expression of an index must fit on a page before PostgreSQL 18, where some 460 columns do.
MOST_HASHED = 400


@dataclass(frozen=True, slots=True)
class Grouped:
    """An aggregate with its state: `keys` and `arguments` are the columns of the rows below it.

    `canonical` says that equal values of each argument are the same text.
    """

    aggregate: Aggregate
    keys: tuple[str, ...]
    arguments: tuple[str, ...]
    state: tuple[StateColumn, ...]
    types: tuple[tuple[str, str], ...]
    hashed: tuple[str, ...]
    canonical: bool

    @classmethod
    def of(
        cls, aggregate: Aggregate, types: dict[str, str], hashable: frozenset[str], exact: frozenset[str]
    ) -> "Grouped":
        """Lay out the state of an aggregate whose input columns have these types; of `exact` ones equal values are one.

        That is, they are the same text. Rows are found by the hash of the keys that are `hashable`.
        """
        arguments = tuple(name for name in types if name not in aggregate.keys)
        state = state_columns(aggregate.calls, types)
        hashed = tuple(key for key in aggregate.keys if key in hashable)
        canonical = exact.issuperset(arguments)
        return cls(aggregate, aggregate.keys, arguments, state, tuple(types.items()), hashed, canonical)

    @property
    def extrema(self) -> tuple[StateColumn, ...]:
        """The columns that hold a minimum or maximum."""
        return tuple(column for column in self.state if column.merge in {Merge.LEAST, Merge.GREATEST})

    @property
    def values(self) -> tuple[StateColumn, ...]:
        """The columns that a keyed recomputation may have to read afresh."""
        return tuple(column for column in self.state if column.value is not None)

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns of the state table."""
        return self.keys + tuple(column.name for column in self.state)

    @property
    def merged(self) -> tuple[StateColumn, ...]:
        """The columns that increments carry: all but those that are always recomputed."""
        return tuple(column for column in self.state if column.merge is not Merge.RECOMPUTE)

    def increments(self, rows: str, plain: bool = False) -> str:
        """Compile the increments of every touched group from weighted rows; `plain` says that every weight is one.

        Weighted rows are consolidated first where a minimum or maximum would otherwise see those that cancel out. Sums
        over numeric without a declared scale are taken per scale first: that of a sum is that of its widest addend.
        """
        source = self.consolidate(rows) if self.extrema and not plain else rows
        if not by_scale.arguments_of(self.merged):
            return self._select([f"{c.once if plain else c.increment} AS {c.name}" for c in self.merged], source)
        items, further_keys = by_scale.parts(self.merged, plain)
        columns = by_scale.combined(self.merged)
        parts = self._select(items, source, further_keys)
        return self._select([f"{columns[c.name]} AS {c.name}" for c in self.merged], parts)

    def parts(self, rows: str) -> str:
        """Compile the increments of groups in as many parts as there are scales of each summed value."""
        source = self.consolidate(rows) if self.extrema else rows
        arguments = by_scale.arguments_of(self.merged)
        told = [f"scale({argument}) AS {argument}_scale" for argument in arguments]
        direct = [column for column in self.merged if column.merge is not Merge.SCALES]
        items = [f"{column.increment} AS {column.name}" for column in direct]
        return self._select([*told, *items], source, tuple(f"{argument}_scale" for argument in arguments))

    def combined(self, parts: str) -> str:
        """Compile the increments of groups from their parts."""
        return self._select([f"{column.combined()} AS {column.name}" for column in self.merged], parts)

    def recomputed(self, rows: str, placed: bool = False) -> str:
        """Compile the values of all groups that weighted rows show; a weight counts as so many rows.

        Rows that are `placed` are those of a table, each once, with their places. For others, where a call asks for
        places, their content serves as one.
        """
        if not placed:
            places = self._content() if self.takes_places else ""
            rows = ONE_BY_ONE.format(places=places, rows=self.consolidate(rows))
        return self._select([f"{column.value} AS {column.name}" for column in self.values], rows)

    def _content(self) -> str:
        # Numbers and moments are sorted as such: users look at the elements.
        ordered = [name for name, type_name in self.types if name in self.arguments and is_short(type_name)]
        return f", ROW({', '.join(ordered)}) AS {TABLE}, {row_text(self.arguments)} AS {PLACE}"

    @property
    def takes_places(self) -> bool:
        """Whether a call takes rows in the order of their places."""
        return any(call.placed for call in self.aggregate.calls)

    def layout(self, rows: str) -> str:
        """Compile a query with the columns of the state table, in order, for CREATE TABLE AS."""
        return self._select([f"{column.increment} AS {column.name}" for column in self.state], rows)

    def final(self, state: str) -> str:
        """Compile the stream table's rows from a relation with the state's columns."""
        types = dict(self.types)
        calls = [f"{result(call, types)} AS {call.name}" for call in self.aggregate.calls]
        output = ", ".join(f"{sql} AS {quote(name)}" for name, sql in self.aggregate.output)
        having = f"\nWHERE {self.aggregate.having}" if self.aggregate.having else ""
        inner = ", ".join([*self.keys, *calls]) or "pgt_rows"
        return FINAL.format(output=output, inner=inner, state=state, having=having)

    def match(self, left: str, right: str) -> str:
        """Compile the condition that two aliases stand for the same group; NULL keys are equal."""
        return same_row(left, right, self.keys, self.hashed)

    def consolidate(self, rows: str) -> str:
        """Consolidate rows; arguments such as 1.0 and 1.00 do not cancel out, because sums and extrema show them."""
        return consolidate(rows, self.keys + self.arguments, self.canonical)

    def _select(self, items: list[str], rows: str, further_keys: tuple[str, ...] = ()) -> str:
        keys = ", ".join([*self.keys, *further_keys])
        group = f"\nGROUP BY {keys}" if keys else ""
        return GROUPED.format(items=", ".join([*self.keys, *items]), rows=rows, group=group)


def row_hash(alias: str, columns: tuple[str, ...]) -> str:
    """Write the 64-bit hash under which rows are found: equal rows hash equally, whatever their types.

    Of very many columns it is that of the first ones. All are compared where rows are found by it.
    """
    prefix = f"{alias}." if alias else ""
    return f"hash_record_extended(ROW({', '.join(prefix + column for column in columns[:MOST_HASHED])}), 0)"


def same_row(left: str, right: str, columns: tuple[str, ...], hashed: tuple[str, ...]) -> str:
    """Compile null-safe equality of two rows, led by the indexed hash."""
    tests = [f"{left}.{column} IS NOT DISTINCT FROM {right}.{column}" for column in columns]
    if hashed:
        tests.insert(0, f"{row_hash(left, hashed)} = {row_hash(right, hashed)}")
    return " AND ".join(tests) or "true"
