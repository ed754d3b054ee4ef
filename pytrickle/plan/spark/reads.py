"""What Spark reads for a delta: every table, change buffer and operation once, with the columns that terms ask for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from pytrickle.catalog.definition import ChangeRange, Definition
from pytrickle.plan.algebra.relation import Derived, Expr, Scan, Version, relids
from pytrickle.plan.postgres.buffer import changes_query, netted_changes
from pytrickle.plan.postgres.compile import Compiler
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.postgres.from_item import table_name
from pytrickle.plan.spark import expected_rows
from pytrickle.plan.spark.leaves import Computed, Frame, SparkLeaf
from pytrickle.plan.spark.on_grid import OntoGrid, PutOntoGrid
from pytrickle.plan.spark.operations.compute import Operations
from pytrickle.plan.spark.operations.input import LeftToPostgres
from pytrickle.plan.sql.dialect import quote

CTID = "pgt_ctid"
READ = "SELECT {items} FROM {rows} AS {alias}{where}"
# A part is read by a connection of its own, which takes some milliseconds to open.
PAGES_PER_PART = 8192
CHANGES_PER_PART = 100_000
MAX_PARTS = 16


@dataclass(slots=True)
class Reads:
    """Collects what the terms of a delta ask of their leaves, then writes the reads.

    Terms that read a leaf under one alias and one condition share its text, whichever of the columns each needs.
    """

    definition: Definition
    ranges: Mapping[int, ChangeRange]
    operations: Operations
    asked: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    grids: dict[tuple[str, str], dict[str, OntoGrid]] = field(default_factory=dict)

    def column(self, alias: str, where: str, expr: Expr) -> str:
        """Ask for an expression over the rows of a leaf; return the column that will hold it."""
        columns = self.asked.setdefault((alias, where), {})
        name = columns.setdefault(expr.sql, f"c{len(columns)}")
        if isinstance(expr, PutOntoGrid):
            self.grids.setdefault((alias, where), {})[name] = expr.grid
        return name

    def leaf(self, leaf: Scan | Derived, where: str, looked_up: bool = False) -> SparkLeaf:
        """Write the reads of a leaf with all that was asked of it: OLD = CURRENT - PAST and NEW = CURRENT - FUTURE for
        a source, whose rows may be `looked_up`, OLD = NEW - DELTA for an operation."""
        frames = self._operation(leaf, where) if isinstance(leaf, Derived) else self._source(leaf, where, looked_up)
        columns = tuple(self.asked.get((leaf.alias, where), {}).values())
        signed = tuple(replace(frame, negated=frame.negated != leaf.negated) for frame in frames)
        return SparkLeaf(signed, columns, self._expected_rows(leaf))

    def _expected_rows(self, leaf: Scan | Derived) -> int | None:
        if isinstance(leaf, Derived):
            return None
        if leaf.version is Version.DELTA:
            return self.ranges[leaf.relid].delta_rows
        return expected_rows.of_table(self.definition, leaf.relid)

    def _source(self, scan: Scan, where: str, looked_up: bool) -> list[Frame | Computed]:
        change_range = self.ranges[scan.relid]
        match scan.version:
            case Version.DELTA:
                return [self._buffered(scan, where, Version.DELTA, False)]
            case Version.OLD:
                correction, rows = Version.PAST, change_range.past_rows
            case _:
                correction, rows = Version.FUTURE, change_range.future_rows
        table = self._table(scan, where, looked_up)
        return [table, self._buffered(scan, where, correction, True)] if rows else [table]

    def _table(self, scan: Scan, where: str, looked_up: bool) -> Frame:
        source = self.definition.source(scan.relid)
        rows = self._expected_rows(replace(scan, version=Version.CURRENT))
        if looked_up:
            return Frame(self._select(scan, where, table_name(source)), weighted=False, looked_up=True, rows=rows)
        ctid = f"{quote(scan.alias)}.ctid AS {CTID}"
        parts = min(MAX_PARTS, max(1, source.pages // PAGES_PER_PART))
        return Frame(
            self._select(scan, where, table_name(source), ctid), source.pages, parts, weighted=False, rows=rows
        )

    def _buffered(self, scan: Scan, where: str, version: Version, negated: bool) -> Frame:
        """Many changes are read in parts, for Spark takes longer to receive rows than PostgreSQL to send them."""
        change_range = self.ranges[scan.relid]
        rows = change_range.delta_rows if version is Version.DELTA else change_range.past_rows
        parts = min(MAX_PARTS, rows // CHANGES_PER_PART) if rows >= 2 * CHANGES_PER_PART else 0
        source = self.definition.source(scan.relid)
        if parts:
            changes = changes_query(source, version, change_range, CTID)
        else:
            changes = netted_changes(source, version, change_range)
        further = f"{quote(scan.alias)}.{WEIGHT}" + (f", {quote(scan.alias)}.{CTID}" if parts else "")
        sql = self._select(scan, where, f"({changes})", further)
        return Frame(sql, change_range.pages, parts, negated=negated, rows=rows)

    def _operation(self, derived: Derived, where: str) -> list[Frame | Computed]:
        """An operation is computed for all keys, or for those that changes touch."""
        if derived.version is Version.DELTA:
            return [self._changed(derived, where)]
        new = replace(derived, version=Version.NEW)
        frames: list[Frame | Computed] = [self._computed_or(self._state, new, where)]
        if derived.version is Version.OLD and any(
            self.ranges[each].changed for each in relids(derived.operation.input)
        ):
            changed = self._changed(replace(derived, version=Version.DELTA), where)
            frames.append(replace(changed, negated=True))
        return frames

    def _computed_or(
        self, read: Callable[[Derived, str, str], Frame], derived: Derived, where: str
    ) -> Frame | Computed:
        """Return the operation as Spark computes it, else read what PostgreSQL computes."""
        try:
            place = (derived.alias, where)
            return self.operations.compute(derived, self.asked.get(place, {}), where, self.grids.get(place, {}))
        except LeftToPostgres as left:
            return read(derived, where, f"{derived.operation.name} that {left}")

    def _state(self, derived: Derived, where: str, left: str) -> Frame:
        compiler = Compiler(self.definition, self.ranges)
        rows = compiler.state(derived.operation, Version.NEW, frozenset())
        weight = f"{quote(derived.alias)}.{WEIGHT}" if derived.operation.linear else f"1 AS {WEIGHT}"
        expected = expected_rows.of_few(self.definition, relids(derived.operation.input))
        return Frame(compiler.within(self._select(derived, where, f"(\n{rows}\n)", weight)), left=left, rows=expected)

    def _changed(self, derived: Derived, where: str) -> Frame | Computed:
        return self._computed_or(self._delta, derived, where)

    def _delta(self, derived: Derived, where: str, left: str) -> Frame:
        compiler = Compiler(self.definition, self.ranges)
        name = compiler.delta(derived)
        weight = f"{quote(derived.alias)}.{WEIGHT}"
        expected = expected_rows.of_few(self.definition, relids(derived.operation.input))
        return Frame(compiler.within(self._select(derived, where, name, weight)), left=left, rows=expected)

    def _select(self, leaf: Scan | Derived, where: str, rows: str, *further: str) -> str:
        items = [f"{expression} AS {name}" for expression, name in self.asked.get((leaf.alias, where), {}).items()]
        return READ.format(items=", ".join([*items, *further]), rows=rows, alias=quote(leaf.alias), where=where)
