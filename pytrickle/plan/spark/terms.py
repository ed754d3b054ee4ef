"""Terms of a delta as Spark joins: PostgreSQL evaluates what concerns one leaf, Spark joins on lossless carriers."""

from dataclasses import dataclass, field

from pytrickle.catalog.definition import ChangeRange, Definition
from pytrickle.plan.algebra.constructs.single import Single
from pytrickle.plan.algebra.delta import blocks_of
from pytrickle.plan.algebra.relation import Derived, Equality, Expr, Join, Predicate, Project, Relation, Scan, Version
from pytrickle.plan.spark.key_encoding import carrier, kind_of
from pytrickle.plan.spark.leaves import Keys, Output, SparkLeaf, SparkTerm, computed_in
from pytrickle.plan.spark.operations.compute import Carried, Operations
from pytrickle.plan.spark.reads import Reads
from pytrickle.plan.sql.dialect import quote

Side = tuple[str, str]


def as_texts(name: str, expr: Expr) -> tuple[tuple[str, str], ...]:
    """Carry a column as its text."""
    return ((name, f"CAST({expr.sql} AS text)"),)


def spark_terms(
    terms: tuple[Relation, ...],
    definition: Definition,
    ranges: dict[int, ChangeRange],
    carried: Carried = as_texts,
    whole: bool = False,
) -> tuple[SparkTerm, ...] | None:
    """Translate the terms of a delta; return None when an expression mixes leaves, a key has no carrier, a leaf cannot
    be read alone, or nothing is to be joined.

    `carried` lists the columns by which a leaf carries a column of the result, as name and SQL. Terms for the `whole`
    read large tables, so Spark takes them even if it has nothing to join.
    """
    drafts = [_Draft.of(block, definition, carried) for term in terms for block in blocks_of(term)]
    found = [draft for draft in drafts if draft is not None]
    if len(found) < len(drafts):
        return None

    def translate(inner: tuple[Relation, ...], carried: Carried) -> tuple[SparkTerm, ...] | None:
        return spark_terms(inner, definition, ranges, carried, whole=True)

    reads = Reads(definition, ranges, Operations(definition, ranges, translate))
    for draft in found:
        draft.restrict(reads)
    located = [draft.locate(reads) for draft in found]
    result = tuple(
        SparkTerm(draft.read(reads), keys, output, draft.negated, frozenset(draft.reached))
        for draft, (keys, output) in zip(found, located, strict=True)
    )
    computes = whole or any(len(term.leaves) > 1 for term in result) or any(computed_in(result))
    return result if computes else None


@dataclass(slots=True)
class _Draft:
    """One block: its leaves in the order of the join, the conditions on each, key pairs with carriers, and outputs."""

    leaves: list[Scan | Derived]
    negated: bool
    local: dict[str, list[str]]
    keys: list[tuple[Side, Side, str]] = field(default_factory=list)
    hashed: list[Predicate] = field(default_factory=list)
    reached: list[str] = field(default_factory=list)
    outputs: list[tuple[str, str, str]] = field(default_factory=list)

    @classmethod
    def of(cls, block: Project, definition: Definition, carried: Carried) -> "_Draft | None":
        join = block.input
        assert isinstance(join, Join)
        leaves = [leaf for leaf in join.inputs if isinstance(leaf, Scan | Derived)]
        if len(leaves) < len(join.inputs) or not all(map(_is_readable_alone, leaves)):
            return None
        leaves.sort(key=lambda leaf: leaf.version is not Version.DELTA)
        self = cls(leaves, join.negated, {leaf.alias: [] for leaf in leaves})
        if not all(self._take(predicate, definition) for predicate in join.predicates):
            return None
        for name, expr in block.columns:
            if len(expr.tables) > 1:
                return None
            home = next(iter(expr.tables), self._home)
            self.outputs += [(shown, home, sql) for shown, sql in carried(name, expr)]
        self.leaves = self._connected()
        return self

    @property
    def _home(self) -> str:
        """The leaf that evaluates what reads no leaf: the delta."""
        return self.leaves[0].alias

    def _take(self, predicate: Predicate, definition: Definition) -> bool:
        if len(predicate.expr.tables) <= 1:
            self.local[next(iter(predicate.expr.tables), self._home)].append(f"({predicate.expr.sql})")
            return True
        equality = predicate.equality
        template = self._carrier(equality, definition) if equality else None
        if equality is None or template is None:
            return False
        self.keys.append((equality.left, equality.right, template))
        if not equality.null_safe:
            self.hashed.append(predicate)
        return True

    def _carrier(self, equality: Equality, definition: Definition) -> str | None:
        known = {leaf.alias: leaf for leaf in self.leaves}
        left, right = (kind_of(known[alias], name, definition) for alias, name in (equality.left, equality.right))
        return carrier(equality, left, right)

    def _connected(self) -> list[Scan | Derived]:
        """Order the leaves so that each but the first has a key to an earlier one wherever the query gives one."""
        ordered, waiting = self.leaves[:1], self.leaves[1:]
        while waiting:
            reached = {leaf.alias for leaf in ordered}
            sides = [(a[0], b[0]) for a, b, _ in self.keys] + [(b[0], a[0]) for a, b, _ in self.keys]
            linked = {other for alias, other in sides if alias in reached}
            following = next((leaf for leaf in waiting if leaf.alias in linked), waiting[0])
            ordered.append(following)
            waiting.remove(following)
        return ordered

    def restrict(self, reads: Reads) -> None:
        """Keys first: ask a table only for the rows that the delta joins, where those are much fewer than all.

        IS NOT DISTINCT FROM would have PostgreSQL compare all rows with all.
        """
        delta, *others = self.leaves
        if not isinstance(delta, Scan) or delta.version is not Version.DELTA:
            return
        for leaf in others:
            linked = [each.expr.sql for each in self.hashed if each.expr.tables == {delta.alias, leaf.alias}]
            if linked and reads.pays_off(delta, leaf):
                tests = [*self.local[delta.alias], *(f"({sql})" for sql in linked)]
                self.local[leaf.alias].append(reads.reached(delta, tests))
                self.reached.append(leaf.alias)

    def locate(self, reads: Reads) -> tuple[Keys, Output]:
        """Ask the leaves for their keys and outputs; return where the term finds both."""
        order = {leaf.alias: i for i, leaf in enumerate(self.leaves)}
        pairs: list[list[tuple[str, int, str]]] = [[] for _ in self.leaves]
        for left, right, template in self.keys:
            earlier, later = sorted((left, right), key=lambda side: order[side[0]])
            one, other = (self._asked(reads, side[0], template.format(_column(side))) for side in (earlier, later))
            pairs[order[later[0]]].append((other, order[earlier[0]], one))
        output = [(name, order[alias], self._asked(reads, alias, sql)) for name, alias, sql in self.outputs]
        return tuple(map(tuple, pairs)), tuple(output)

    def read(self, reads: Reads) -> tuple[SparkLeaf, ...]:
        """Return the reads of the leaves, once all terms have asked."""
        return tuple(reads.leaf(leaf, self._where(leaf.alias)) for leaf in self.leaves)

    def _asked(self, reads: Reads, alias: str, expression: str) -> str:
        return reads.column(alias, self._where(alias), expression)

    def _where(self, alias: str) -> str:
        tests = self.local[alias]
        return f" WHERE {' AND '.join(tests)}" if tests else ""


def _is_readable_alone(leaf: Scan | Derived) -> bool:
    """A scalar subquery with several rows for one key is an error only where a row asks for that key."""
    return not (isinstance(leaf, Derived) and isinstance(leaf.operation.construct, Single))


def _column(side: Side) -> str:
    alias, name = side
    return f"{quote(alias)}.{quote(name)}"
