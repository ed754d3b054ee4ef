"""Terms of a delta as Spark joins: PostgreSQL evaluates what concerns one input, Spark joins on lossless carriers.

An input is one leaf, or a sub-join of those that have to be together: an expression reads them that Spark could not
evaluate exactly, a key has no carrier, or one is computed from the other's rows.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from pytrickle.catalog.definition import ChangeRange, Definition
from pytrickle.plan.algebra.constructs.single import Single
from pytrickle.plan.algebra.delta import blocks_of
from pytrickle.plan.algebra.relation import (
    Column,
    Derived,
    Equality,
    Expr,
    Function,
    Join,
    Leaf,
    Predicate,
    Project,
    Relation,
    Scan,
    Version,
)
from pytrickle.plan.spark.key_encoding import Kind, carrier, kind_of
from pytrickle.plan.spark.leaves import Keys, NothingToJoin, Output, SparkLeaf, SparkTerm, Tests, computed_in
from pytrickle.plan.spark.mixed import Mixed, Translator
from pytrickle.plan.spark.operations.compute import Operations
from pytrickle.plan.spark.outputs import Carriers, Carrying
from pytrickle.plan.spark.reads import Reads
from pytrickle.plan.spark.restriction import Restriction, columns_of, paths
from pytrickle.plan.spark.sub_join import JOINED, Input, SubJoins, further_test, inputs_of
from pytrickle.plan.sql.dialect import quote

AS_TEXTS = Carriers()


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is wanted of Spark: `sub_joins` where leaves have to be together, and `sums` of numerics in groups.

    Terms for the `whole` read large tables, so Spark takes them even if it has nothing to join, unless PostgreSQL has
    joined everything.
    """

    whole: bool = False
    sub_joins: bool = False
    sums: bool = True


AS_USUAL = Wanted()


def spark_terms(
    terms: tuple[Relation, ...],
    definition: Definition,
    ranges: dict[int, ChangeRange],
    carriers: Carrying = AS_TEXTS,
    wanted: Wanted = AS_USUAL,
) -> tuple[SparkTerm, ...] | NothingToJoin:
    """Translate the terms of a delta, unless nothing is left to be joined or computed.

    So it is, too, when leaves have to be together, or rows are compared with all others, where no sub-joins are wanted.
    """
    drafts = [_Draft.of(block, definition, carriers) for term in terms for block in blocks_of(term)]
    if not wanted.sub_joins and any(draft.takes_long for draft in drafts):
        return NothingToJoin(JOINED)
    reads, restriction = _Asked.between(definition, ranges, wanted.sums), Restriction(definition, ranges)
    for draft in drafts:
        draft.restrict(restriction)
    located = [draft.locate(reads) for draft in drafts]
    result = tuple(draft.term(reads, *each) for draft, each in zip(drafts, located, strict=True))
    joins = any(len(draft.inputs) > 1 for draft in drafts)
    scans = wanted.whole and any(len(draft.inputs[0].leaves) == 1 for draft in drafts)
    return result if joins or scans or any(computed_in(result)) else NothingToJoin.of(result)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What terms ask of inputs that are one leaf, and of sub-joins."""

    leaves: Reads
    sub_joins: SubJoins

    @classmethod
    def between(cls, definition: Definition, ranges: dict[int, ChangeRange], sums: bool) -> "_Asked":
        """Ask for the rows between two frontiers; no part of an operation's input is a sub-join."""

        def translate(terms: tuple[Relation, ...], carriers: Carrying) -> tuple[SparkTerm, ...] | None:
            return spark_terms(terms, definition, ranges, carriers, Wanted(whole=True, sums=sums)) or None

        operations = Operations(definition, ranges, translate, sums)
        return cls(Reads(definition, ranges, operations), SubJoins(definition, ranges))

    def column(self, each: Input, expr: Expr) -> str:
        if each.joined:
            return self.sub_joins.column(each, expr)
        return self.leaves.column(each.name, each.where, expr)

    def leaf(self, each: Input) -> SparkLeaf:
        (leaf, *_) = each.leaves
        if each.joined or isinstance(leaf, Function):
            return self.sub_joins.leaf(each)
        return self.leaves.leaf(leaf, each.where, each.looked_up)


@dataclass(slots=True)
class _Draft:
    """One block: its inputs in the order of the join, key pairs with carriers, further conditions, and outputs."""

    inputs: list[Input]
    negated: bool
    keys: list[tuple[Column, Column, str]] = field(default_factory=list)
    hashed: list[Predicate] = field(default_factory=list)
    mixed: list[Mixed] = field(default_factory=list)
    reached: list[str] = field(default_factory=list)
    outputs: list[tuple[str, Mixed]] = field(default_factory=list)

    @classmethod
    def of(cls, block: Project, definition: Definition, carriers: Carrying) -> "_Draft":
        join = block.input
        assert isinstance(join, Join)
        leaves = [leaf for leaf in join.inputs if isinstance(leaf, Scan | Derived | Function)]
        leaves.sort(key=lambda leaf: isinstance(leaf, Function) or leaf.version is not Version.DELTA)
        split = _Split({leaf.alias: leaf for leaf in leaves}, definition, carriers)
        self = cls(inputs_of(leaves, split.together(block)), join.negated)
        for predicate in join.predicates:
            self._take(predicate, split)
        for name, expr in block.columns:
            self.outputs += self._shown(name, expr, split)
        self.inputs = self._connected()
        return self

    @property
    def takes_long(self) -> bool:
        """Whether it has sub-joins, or conditions link inputs without a key: PostgreSQL may have an index there."""
        keyed = {max(self._at(left[0]), self._at(right[0])) for left, right, _ in self.keys}
        tested = {self._last(mixed) for mixed in self.mixed}
        return any(each.joined for each in self.inputs) or bool(tested - keyed)

    def _take(self, predicate: Predicate, split: "_Split") -> None:
        if self._is_local(predicate.expr):
            self._home(predicate.expr).tests.append(predicate)
        elif template := split.carrier(predicate.equality):
            assert predicate.equality
            self.keys.append((predicate.equality.left, predicate.equality.right, template))
            if not predicate.equality.null_safe:
                self.hashed.append(predicate)
        else:
            mixed = split.translator.condition(predicate.expr)
            assert mixed
            self.mixed.append(mixed)

    def _shown(self, name: str, expr: Expr, split: "_Split") -> Iterable[tuple[str, Mixed]]:
        if self._is_local(expr):
            yield from split.carriers.of(name, expr)
        else:
            yield from split.carriers.mixed(name, expr, split.translator) or ()

    def _is_local(self, expr: Expr) -> bool:
        return len({self._at(alias) for alias in expr.tables}) <= 1

    def _home(self, expr: Expr) -> Input:
        """Return the input that evaluates an expression; what reads no leaf, the changes do."""
        return self.inputs[min(map(self._at, expr.tables), default=0)]

    def _at(self, alias: str) -> int:
        return next(i for i, each in enumerate(self.inputs) if alias in {leaf.alias for leaf in each.leaves})

    def _connected(self) -> list[Input]:
        """Order the inputs so that each but the first has a key to an earlier one wherever the query gives one."""
        ordered, waiting = self.inputs[:1], self.inputs[1:]
        pairs = [(self.inputs[self._at(a[0])].name, self.inputs[self._at(b[0])].name) for a, b, _ in self.keys]
        while waiting:
            reached = {each.name for each in ordered}
            linked = {other for a, b in pairs for name, other in ((a, b), (b, a)) if name in reached}
            following = next((each for each in waiting if each.name in linked), waiting[0])
            ordered.append(following)
            waiting.remove(following)
        return ordered

    def restrict(self, restriction: Restriction) -> None:
        """Ask tables only for the rows that the delta joins, where those are much fewer than all.

        IS NOT DISTINCT FROM would have PostgreSQL compare all rows with all.
        """
        delta, *_ = self.inputs[0].leaves
        if not isinstance(delta, Scan) or delta.version is not Version.DELTA:
            return
        homes = {leaf.alias: (each, leaf) for each in self.inputs[1:] for leaf in each.leaves if isinstance(leaf, Scan)}
        alone = [test.expr for each in self.inputs for test in each.tests if len(test.expr.tables) == 1]
        found = paths(delta, [leaf for _, leaf in homes.values()], self.hashed)
        for alias, path in ((alias, path) for alias, path in found.items() if len(path) > 1):
            if restriction.pays_off(path):
                each, _ = homes[alias]
                linked = [key for before, to in pairwise(path) for key in self._linking(before, to)]
                tests = [expr for expr in alone if any(expr.tables == {scan.alias} for scan in path[:-1])]
                test = restriction.condition(path, [f"({expr.sql})" for expr in (*tests, *(k.expr for k in linked))])
                each.tests.append(further_test(test, alias))
                each.looked_up = restriction.finds(path, columns_of(alias, linked))
                self.reached.append(alias)

    def _linking(self, one: Scan, other: Scan) -> list[Predicate]:
        return [key for key in self.hashed if key.expr.tables == {one.alias, other.alias}]

    def locate(self, reads: _Asked) -> tuple[Keys, Tests, Output]:
        """Ask the inputs for their keys and outputs; return where the term finds both."""
        pairs: list[list[tuple[str, int, str]]] = [[] for _ in self.inputs]
        for left, right, template in self.keys:
            earlier, later = sorted((left, right), key=lambda side: self._at(side[0]))
            one, other = (reads.column(*self._key(side, template)) for side in (earlier, later))
            pairs[self._at(later[0])].append((other, self._at(earlier[0]), one))
        tests: list[list[str]] = [[] for _ in self.inputs]
        for mixed in self.mixed:
            tests[self._last(mixed)].append(self._located(mixed, reads))
        output = tuple((name, self._located(mixed, reads)) for name, mixed in self.outputs)
        return tuple(map(tuple, pairs)), tuple(map(tuple, tests)), output

    def _last(self, mixed: Mixed) -> int:
        return max(self._at(alias) for part in mixed.parts for alias in part.tables)

    def _key(self, side: Column, template: str) -> tuple[Input, Expr]:
        alias, name = side
        sql = template.format(f"{quote(alias)}.{quote(name)}")
        return self.inputs[self._at(alias)], Expr(sql, frozenset({alias}), frozenset({side}))

    def _located(self, mixed: Mixed, reads: _Asked) -> str:
        homes = [self._home(part) for part in mixed.parts]
        return mixed.filled(
            [
                f"t{self.inputs.index(home)}.{reads.column(home, part)}"
                for home, part in zip(homes, mixed.parts, strict=True)
            ]
        )

    def term(self, reads: _Asked, keys: Keys, tests: Tests, output: Output) -> SparkTerm:
        """Write the reads of the inputs, once all terms have asked."""
        together = tuple(frozenset(leaf.alias for leaf in each.leaves) for each in self.inputs if len(each.leaves) > 1)
        found = tuple(map(reads.leaf, self.inputs))
        return SparkTerm(found, keys, tests, output, self.negated, frozenset(self.reached), together)


@dataclass(frozen=True, slots=True)
class _Split:
    """Decides which leaves of a block have to be together."""

    leaves: dict[str, Leaf]
    definition: Definition
    carriers: Carrying

    @property
    def translator(self) -> Translator:
        return Translator(self.leaves, self.definition)

    def together(self, block: Project) -> Iterator[frozenset[str]]:
        """List aliases of leaves that PostgreSQL has to join.

        A scalar subquery with several rows for one key is an error only where a row asks for that key, so all that
        decides which rows there are has to be joined before.
        """
        assert isinstance(block.input, Join)
        if any(map(_is_single, self.leaves.values())):
            yield frozenset(self.leaves)
        for leaf in self.leaves.values():
            if isinstance(leaf, Function):
                yield leaf.tables | {leaf.alias}
        for predicate in block.input.predicates:
            if len(predicate.expr.tables) > 1 and not self._is_possible(predicate):
                yield predicate.expr.tables
        for name, expr in block.columns:
            if len(expr.tables) > 1 and self.carriers.mixed(name, expr, self.translator) is None:
                yield expr.tables

    def _is_possible(self, predicate: Predicate) -> bool:
        return bool(self.carrier(predicate.equality) or self.translator.condition(predicate.expr))

    def carrier(self, equality: Equality | None) -> str | None:
        """Return the carrier of a key, if there is one."""
        if equality is None:
            return None
        left, right = (self._kind(column) for column in (equality.left, equality.right))
        return carrier(equality, left, right)

    def _kind(self, column: Column) -> Kind | None:
        return kind_of(self.leaves[column[0]], column[1], self.definition)


def _is_single(leaf: Leaf) -> bool:
    return isinstance(leaf, Derived) and isinstance(leaf.operation.construct, Single)
