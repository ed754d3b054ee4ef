"""Terms of a delta as Spark joins: PostgreSQL evaluates what concerns one row, Spark joins on lossless carriers."""

from dataclasses import dataclass

from pytrickle.catalog.definition import Definition, Window
from pytrickle.plan.algebra import Expr, Join, Predicate, Project, Relation, Scan, Version
from pytrickle.plan.changes import changes_query
from pytrickle.plan.compile import blocks_of, table_name
from pytrickle.plan.dialect import quote
from pytrickle.plan.placement import TEXTUAL
from pytrickle.plan.zset import WEIGHT

INTEGER = frozenset({"int2", "int4", "int8"})
CANONICAL = frozenset({"uuid", "date", "timestamp", "timestamptz", "bool", "bytea"})
CTID = "pgt_ctid"


@dataclass(frozen=True, slots=True)
class Frame:
    """One JDBC read of one source at one version; its columns are j<i> (join keys), e<i> (outputs) and the weight.

    `pages` is set when the read covers a whole table, which is then split into ranges of ctid.
    """

    sql: str
    pages: int | None
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Leaf:
    """An input of a Spark join: the union of some frames."""

    frames: tuple[Frame, ...]


@dataclass(frozen=True, slots=True)
class SparkTerm:
    """Leaves joined in order. `keys[i]` pairs columns of leaf i with (earlier leaf, column); `output` locates each
    output column as (leaf, column)."""

    leaves: tuple[Leaf, ...]
    keys: tuple[tuple[tuple[str, int, str], ...], ...]
    output: tuple[tuple[str, int, str], ...]


def spark_terms(
    terms: tuple[Relation, ...], definition: Definition, windows: dict[int, Window]
) -> tuple[SparkTerm, ...] | None:
    """Translate the terms of a delta, or return None when an expression mixes sources or a key has no carrier."""
    result = []
    for block in (block for term in terms for block in blocks_of(term)):
        if not _joins_scans_only(block):
            return None
        term = _Translation.of(block, definition, windows)
        if term is None:
            return None
        result.append(term)
    return tuple(result)


def _joins_scans_only(block: Project) -> bool:
    join = block.input
    return isinstance(join, Join) and not join.negated and all(isinstance(leaf, Scan) for leaf in join.inputs)


@dataclass(slots=True)
class _Translation:
    scans: list[Scan]
    local: dict[str, list[Expr]]
    keys: list[tuple[tuple[str, str], tuple[str, str]]]
    outputs: list[tuple[str, str, Expr]]
    definition: Definition
    windows: dict[int, Window]

    @classmethod
    def of(cls, block: Project, definition: Definition, windows: dict[int, Window]) -> SparkTerm | None:
        join = block.input
        assert isinstance(join, Join)
        scans = [child for child in join.inputs if isinstance(child, Scan)]
        scans.sort(key=lambda scan: scan.version is not Version.DELTA)
        home = scans[0].alias
        self = cls(scans, {scan.alias: [] for scan in scans}, [], [], definition, windows)
        if not all(self._take(predicate, home) for predicate in join.predicates):
            return None
        for name, expr in block.columns:
            if len(expr.tables) > 1:
                return None
            self.outputs.append((name, next(iter(expr.tables), home), expr))
        self.scans = self._connected()
        return self._term()

    def _connected(self) -> list[Scan]:
        """Order the scans so that each but the first has a key to an earlier one wherever the query gives one."""
        ordered, waiting = self.scans[:1], self.scans[1:]
        while waiting:
            reached = {scan.alias for scan in ordered}
            linked = {b[0] for a, b in self.keys if a[0] in reached} | {a[0] for a, b in self.keys if b[0] in reached}
            following = next((scan for scan in waiting if scan.alias in linked), waiting[0])
            ordered.append(following)
            waiting.remove(following)
        return ordered

    def _take(self, predicate: Predicate, home: str) -> bool:
        if len(predicate.expr.tables) <= 1:
            self.local[next(iter(predicate.expr.tables), home)].append(predicate.expr)
            return True
        equality = predicate.equality
        if equality is None or self._carrier(equality.left, equality.right) is None:
            return False
        if equality.as_text and not {self._base_type(side)[0] for side in (equality.left, equality.right)} <= TEXTUAL:
            return False
        self.keys.append((equality.left, equality.right))
        return True

    def _base_type(self, column: tuple[str, str]) -> tuple[str, bool]:
        scan = next(scan for scan in self.scans if scan.alias == column[0])
        found = self.definition.source(scan.relid).column(column[1])
        return (found.base_type, found.deterministic) if found else ("", False)

    def _carrier(self, left: tuple[str, str], right: tuple[str, str]) -> str | None:
        """Return a template that maps both sides to text that is equal exactly where PostgreSQL finds them equal."""
        (one, bytewise), (other, also) = self._base_type(left), self._base_type(right)
        if one in INTEGER and other in INTEGER:
            return "CAST({} AS bigint)"
        if one in TEXTUAL and other in TEXTUAL and bytewise and also:
            return "CAST({} AS text)"
        if one == other == "numeric":
            return "CAST(trim_scale({}) AS text)"
        return "CAST({} AS text)" if one == other and one in CANONICAL else None

    def _term(self) -> SparkTerm:
        order = {scan.alias: i for i, scan in enumerate(self.scans)}
        columns: dict[str, list[str]] = {scan.alias: [] for scan in self.scans}
        pairs: list[list[tuple[str, int, str]]] = [[] for _ in self.scans]
        for number, (left, right) in enumerate(self.keys):
            earlier, later = sorted((left, right), key=lambda side: order[side[0]])
            template = self._carrier(left, right) or ""
            for alias, column in (earlier, later):
                columns[alias].append(template.format(f"{quote(alias)}.{quote(column)}") + f" AS j{number}")
            pairs[order[later[0]]].append((f"j{number}", order[earlier[0]], f"j{number}"))
        output = []
        for number, (name, alias, expr) in enumerate(self.outputs):
            columns[alias].append(f"CAST({expr.sql} AS text) AS e{number}")
            output.append((name, order[alias], f"e{number}"))
        leaves = tuple(self._leaf(scan, columns[scan.alias]) for scan in self.scans)
        return SparkTerm(leaves, tuple(map(tuple, pairs)), tuple(output))

    def _leaf(self, scan: Scan, columns: list[str]) -> Leaf:
        window = self.windows[scan.relid]
        match scan.version:
            case Version.DELTA:
                return Leaf((self._buffered(scan, columns, Version.DELTA, False),))
            case Version.OLD:
                correction, rows = Version.PAST, window.past_rows
            case _:
                correction, rows = Version.FUTURE, window.future_rows
        whole = self._whole(scan, columns)
        return Leaf((whole, self._buffered(scan, columns, correction, True)) if rows else (whole,))

    def _whole(self, scan: Scan, columns: list[str]) -> Frame:
        source = self.definition.source(scan.relid)
        items = ", ".join([*columns, f"1 AS {WEIGHT}", f"{quote(scan.alias)}.ctid AS {CTID}"])
        return Frame(
            f"SELECT {items} FROM {table_name(source)} AS {quote(scan.alias)}{self._where(scan)}", source.pages
        )

    def _buffered(self, scan: Scan, columns: list[str], version: Version, negated: bool) -> Frame:
        source, window = self.definition.source(scan.relid), self.windows[scan.relid]
        items = ", ".join([*columns, f"{quote(scan.alias)}.{WEIGHT}"])
        changes = changes_query(source, version, window)
        return Frame(f"SELECT {items} FROM ({changes}) AS {quote(scan.alias)}{self._where(scan)}", None, negated)

    def _where(self, scan: Scan) -> str:
        tests = [f"({expr.sql})" for expr in self.local[scan.alias]]
        return f" WHERE {' AND '.join(tests)}" if tests else ""
