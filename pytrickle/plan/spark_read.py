"""What Spark reads for a delta: every table, change buffer and operation once, with the columns that terms ask for."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pytrickle.catalog.definition import Definition, Window
from pytrickle.plan.algebra import Derived, Scan, Version, relids
from pytrickle.plan.changes import changes_query
from pytrickle.plan.compile import Compiler, table_name
from pytrickle.plan.dialect import quote
from pytrickle.plan.zset import WEIGHT

CTID = "pgt_ctid"


@dataclass(frozen=True, slots=True)
class Frame:
    """One JDBC read of one source, or of one operation, at one version: columns c<i> and the weight.

    `pages` is set when the read covers a whole table, which is then split into ranges of ctid.
    """

    sql: str
    pages: int | None
    negated: bool = False


@dataclass(frozen=True, slots=True)
class SparkLeaf:
    """An input of a Spark join: the union of some frames."""

    frames: tuple[Frame, ...]


@dataclass(slots=True)
class Reads:
    """Collects what the terms of a delta ask of their leaves, then writes the reads.

    Terms that read a leaf under one alias and one condition share its text, whichever of the columns each needs.
    """

    definition: Definition
    windows: Mapping[int, Window]
    asked: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)

    def column(self, alias: str, where: str, expression: str) -> str:
        """Ask for an expression over the rows of a leaf; return the column that will hold it."""
        columns = self.asked.setdefault((alias, where), {})
        return columns.setdefault(expression, f"c{len(columns)}")

    def leaf(self, leaf: Scan | Derived, where: str) -> SparkLeaf:
        """Write the reads of a leaf with all that was asked of it: OLD = CURRENT - PAST and NEW = CURRENT - FUTURE for
        a source, OLD = NEW - DELTA for an operation."""
        frames = self._operation(leaf, where) if isinstance(leaf, Derived) else self._source(leaf, where)
        return SparkLeaf(tuple(Frame(f.sql, f.pages, f.negated != leaf.negated) for f in frames))

    def _source(self, scan: Scan, where: str) -> list[Frame]:
        window = self.windows[scan.relid]
        match scan.version:
            case Version.DELTA:
                return [self._buffered(scan, where, Version.DELTA, False)]
            case Version.OLD:
                correction, rows = Version.PAST, window.past_rows
            case _:
                correction, rows = Version.FUTURE, window.future_rows
        source = self.definition.source(scan.relid)
        ctid = f"{quote(scan.alias)}.ctid AS {CTID}"
        whole = Frame(self._select(scan, where, table_name(source), f"1 AS {WEIGHT}, {ctid}"), source.pages)
        return [whole, self._buffered(scan, where, correction, True)] if rows else [whole]

    def _buffered(self, scan: Scan, where: str, version: Version, negated: bool) -> Frame:
        changes = changes_query(self.definition.source(scan.relid), version, self.windows[scan.relid])
        weight = f"{quote(scan.alias)}.{WEIGHT}"
        return Frame(self._select(scan, where, f"({changes})", weight), None, negated)

    def _operation(self, derived: Derived, where: str) -> list[Frame]:
        """An operation is computed where its input is: for all keys, or for those that changes touch."""
        if derived.version is Version.DELTA:
            return [self._changed(derived, where, False)]
        compiler = Compiler(self.definition, self.windows)
        rows = compiler.state(derived.operation, Version.NEW, frozenset())
        new = Frame(compiler.within(self._select(derived, where, f"(\n{rows}\n)", f"1 AS {WEIGHT}")), None)
        changed = any(self.windows[relid].delta_rows for relid in relids(derived.operation.input))
        return [new, self._changed(derived, where, True)] if derived.version is Version.OLD and changed else [new]

    def _changed(self, derived: Derived, where: str, negated: bool) -> Frame:
        compiler = Compiler(self.definition, self.windows)
        name = compiler.delta(derived)
        weight = f"{quote(derived.alias)}.{WEIGHT}"
        return Frame(compiler.within(self._select(derived, where, name, weight)), None, negated)

    def _select(self, leaf: Scan | Derived, where: str, rows: str, weight: str) -> str:
        items = [f"{expression} AS {name}" for expression, name in self.asked.get((leaf.alias, where), {}).items()]
        return f"SELECT {', '.join([*items, weight])} FROM {rows} AS {quote(leaf.alias)}{where}"
