"""Groups within a query that are kept in a table of their own, so that no group is computed anew from all its rows.

d group(R) = merged(stored, increments of dR) - stored, for the groups that dR touches: their old rows are stored, as
the old frontier has them, and a new one is its old row and the increment of its group.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import md5

from pytrickle.plan.algebra.relation import Operation, relids
from pytrickle.plan.apply_plan import KeptTable
from pytrickle.plan.postgres.aggregate import Merge, StateColumn, result
from pytrickle.plan.postgres.aggregate_state import Grouped, row_hash
from pytrickle.plan.postgres.consolidate import WEIGHT, consolidate, new_less_old
from pytrickle.plan.postgres.few_rows import literal, rows_of
from pytrickle.plan.postgres.scales import first_scales
from pytrickle.plan.sql.dialect import quote
from pytrickle.plan.sql.types import MOST_INDEXED, is_short

# So many operations of one query are kept; `pgtrickle_private.kept_beside` knows their tables by these numbers.
MOST_KEPT = 2
# What calls add up, as PostgreSQL text over the rows below, under the names of their columns.
Values = tuple[tuple[str, str], ...]
VALUES = "SELECT {items} FROM (\n{rows}\n) AS d"
SHOWN = "SELECT {items} FROM (\n{state}\n) AS s"
WHOLE = "SELECT {items} FROM (\n{increments}\n) AS i{alive}"
MERGED = "SELECT {items} FROM {increments} AS i LEFT JOIN {table} AS s ON {same}"
TOUCHED = "SELECT {columns} FROM {increments} AS i JOIN {table} AS s ON {same}"
OTHERS = "{stored} WHERE NOT EXISTS (SELECT FROM {increments} AS i WHERE {same})"
# All parts see the table as it was before the statement.
TAKE_IN = """\
WITH i AS MATERIALIZED (
    SELECT * FROM {rows} AS i
), n AS MATERIALIZED (
{new}
), gone AS (
    DELETE FROM {table} AS s USING n WHERE {same} AND {emptied}
), merged AS (
    UPDATE {table} AS s SET {changes} FROM n WHERE {same} AND NOT ({emptied})
), added AS (
    INSERT INTO {table} ({columns}) SELECT {columns} FROM n
    WHERE NOT EXISTS (SELECT FROM {table} AS s WHERE {same}) AND n.pgt_rows <> 0
)
SELECT count(*) FROM n WHERE pgt_rows < 0"""
INDEX = "CREATE INDEX ON {table} USING {method} ({key})"


def kept_table(pgt_id: int, number: int) -> str:
    """Name the table of the groups of one operation of a stream table's query.

    >>> kept_table(7, 0)
    'pgtrickle_state.groups0_7'
    """
    return f"pgtrickle_state.groups{number}_{pgt_id}"


@dataclass(frozen=True, slots=True)
class KeptGroups:
    """The groups of one operation, kept in a table: their aggregate state, and what they show by it.

    `values` are what its calls add up, `layout` is a query with the columns of its aggregate state.
    """

    operation: Operation
    grouped: Grouped
    values: Values
    table: str
    layout: str

    @property
    def fingerprint(self) -> str:
        """Differ where the table would have other columns, or other rows."""
        return f"{self.table}\n{self._shown(self.layout)}\n{self.grouped.types}"

    @property
    def reads(self) -> frozenset[int]:
        """The sources of the rows below the groups."""
        return relids(self.operation.input)

    @property
    def stored(self) -> str:
        """Read the operation's rows at the old frontier."""
        return f"SELECT {', '.join(f's.{column}' for column in self.operation.columns)} FROM {self.table} AS s"

    def current(self, increments: str) -> str:
        """Read the operation's rows at the new frontier, given a table of all increments."""
        others = OTHERS.format(stored=self.stored, increments=increments, same=self.grouped.match("s", "i"))
        return f"{others}\nUNION ALL\n{self._new(increments)}"

    def increments(self, changed: str) -> str:
        """Compute the increments of groups from weighted rows below them."""
        return self.grouped.increments(with_values(changed, self.operation.keys, self.values))

    def whole(self, rows: str) -> str:
        """Compute all groups from weighted rows below them, as they are stored."""
        grouped = self.grouped
        items = [*(f"i.{key}" for key in grouped.keys), *(f"{_first(each)} AS {each.name}" for each in grouped.state)]
        alive = "\nWHERE i.pgt_rows <> 0" if grouped.keys else ""
        return self._shown(WHOLE.format(items=", ".join(items), increments=self.increments(rows), alive=alive))

    def delta(self, increments: str) -> str:
        """Compute the change of the operation from a table of increments."""
        columns = self.operation.columns
        stored = ", ".join(f"s.{column}" for column in columns)
        same = self.grouped.match("s", "i")
        old = TOUCHED.format(columns=stored, increments=increments, table=self.table, same=same)
        return consolidate(new_less_old(self._new(increments), old), columns, self.operation.columns_canonical)

    @property
    def plan(self) -> KeptTable:
        """Write what is done with its table."""
        return KeptTable(self.table, self.columns, self._shown(self.layout), self._take_in(), self._indexes())

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns of the table."""
        return (*self.grouped.columns, *self._calls)

    @property
    def _calls(self) -> tuple[str, ...]:
        return tuple(call.name for call in self.grouped.aggregate.calls)

    def _shown(self, state: str) -> str:
        """Add what groups show to their state."""
        types = dict(self.grouped.types)
        calls = (f"{result(call, types)} AS {call.name}" for call in self.grouped.aggregate.calls)
        return SHOWN.format(items=", ".join(["s.*", *calls]), state=state)

    def _new(self, increments: str) -> str:
        """Read the groups that increments touch at the new frontier."""
        alive = "\nWHERE s.pgt_rows > 0" if self.grouped.keys else ""
        return SHOWN.format(items=", ".join(self.operation.columns), state=self._merged(increments)) + alive

    def _merged(self, increments: str) -> str:
        """Compute what groups come to with their increments."""
        grouped, same = self.grouped, self.grouped.match("s", "i")
        items = [*(f"i.{key}" for key in grouped.keys), *(f"{_new(each)} AS {each.name}" for each in grouped.state)]
        return self._shown(MERGED.format(items=", ".join(items), increments=increments, table=self.table, same=same))

    def _take_in(self) -> str:
        written = [column for column in self.columns if column not in self.grouped.keys]
        return TAKE_IN.format(
            rows=rows_of(self.table),
            new=literal(self._merged("i")),
            table=self.table,
            same=literal(self.grouped.match("s", "n")),
            emptied="n.pgt_rows = 0" if self.grouped.keys else "false",
            changes=", ".join(f"{column} = n.{column}" for column in written),
            columns=", ".join(self.columns),
        )

    def _indexes(self) -> tuple[str, ...]:
        """Index groups by the hash of their keys, by which increments find them, and by the keys, by which joins do.

        Only a hash index holds values of any length, and that of one column.
        """
        grouped, types = self.grouped, dict(self.grouped.types)
        found = [("btree", row_hash("", grouped.hashed))] if grouped.hashed else []
        if short := [key for key in grouped.keys if is_short(types[key])]:
            found.append(("btree", ", ".join(map(quote, short[:MOST_INDEXED]))))
        elif grouped.hashed:
            found.append(("hash", quote(grouped.hashed[0])))
        return tuple(INDEX.format(table=self.table, method=method, key=key) for method, key in found)


def with_values(rows: str, keys: tuple[str, ...], values: Values) -> str:
    """Compute what is added up from weighted rows, beside their keys.

    >>> print(with_values("SELECT 1", ("k0",), (("a0", "d.a0 * 2"),)))
    SELECT d.k0, d.a0 * 2 AS a0, d.pgt_weight FROM (
    SELECT 1
    ) AS d
    """
    items = [*(f"d.{key}" for key in keys), *(f"{text} AS {name}" for name, text in values), f"d.{WEIGHT}"]
    return VALUES.format(items=", ".join(items), rows=rows)


def fingerprint(kept: Iterable[KeptGroups]) -> str:
    """Return what tells whether the tables of some kept groups are those of a query."""
    return md5("\n".join(each.fingerprint for each in kept).encode(), usedforsecurity=False).hexdigest()


def _first(column: StateColumn) -> str:
    return first_scales(f"i.{column.name}") if column.merge is Merge.SCALES else f"i.{column.name}"


def _new(column: StateColumn) -> str:
    return f"CASE WHEN s.pgt_rows IS NULL THEN {_first(column)} ELSE {column.merged()} END"
