"""Subqueries separated from the rows around them: by equalities, or by their domain, the values that they need.

See Neumann and Kemper, Unnesting Arbitrary Queries (2015).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.algebra.constructs.domain import Domain
from pytrickle.plan.algebra.constructs.exists import Exists
from pytrickle.plan.algebra.relation import Derived, Function
from pytrickle.plan.query.block import Block, own_column, to_expr
from pytrickle.plan.query.derive import distinct, exists
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.query.guard import any_fails
from pytrickle.plan.query.operation import Rows
from pytrickle.plan.query.scope import Names, replacing, standing_for, tables_of
from pytrickle.plan.query.subquery_domain import domain_columns, domain_rows, null_safe_columns, tables_of_all
from pytrickle.plan.sql.three_valued import is_quantified


@dataclass(frozen=True, slots=True)
class Decorrelated:
    """A block without references to the rows around it, and what tied it to them.

    `pairs` are (outer, inner) expressions that must be equal, NULL included where the outer is `null_safe`; `guards`
    are conditions on the outer row alone. With `by_domain` the inner ones are columns of a domain, which hold the very
    values of the outer ones.
    """

    block: Block
    pairs: tuple[tuple[exp.Expr, exp.Expr], ...]
    guards: tuple[exp.Expr, ...]
    null_safe: frozenset[exp.Expr] = frozenset()
    by_domain: bool = False

    @property
    def shown(self) -> tuple[exp.Expr, ...]:
        """What the block shows, without what tied it to the rows around."""
        return tuple(self.block.names[""].values())

    @property
    def inner(self) -> tuple[exp.Expr, ...]:
        """The inner expressions, which become keys."""
        return tuple(inner for _, inner in self.pairs)

    def inside(self, outer: Names) -> Names:
        """Have names of the rows around stand for the columns of the domain, where there is one."""
        return standing_for(outer, dict(self.pairs)) if self.by_domain else outer

    def ties(self, alias: str, first: int = 0) -> tuple[exp.Expr, ...]:
        """Equate the outer expressions with the keys k<first> and following of a leaf."""
        outer = tuple(each for each, _ in self.pairs)
        return (*self.guards, *_equated(outer, alias, first, self.null_safe))


@dataclass(frozen=True, slots=True)
class Match:
    """A leaf to join, and the conditions under which a row of it belongs to a row of the query around it."""

    leaf: Derived
    conditions: tuple[exp.Expr, ...]

    @property
    def excluding(self) -> Match:
        """The same for partners that rows must not have."""
        return replace(self, leaf=replace(self.leaf, excludes=True))

    def within(self, block: Block) -> Block | None:
        """Join a block; None if no row can match."""
        return replace(block, leaves=(*block.leaves, self.leaf)).where(*self.conditions)

    def outside(self, block: Block) -> tuple[Block, ...]:
        """L ▷ R = L - L ⋈ distinct(keys of R): keep the rows of a block that have no match."""
        matched = self.excluding.within(block)
        return (block,) if matched is None else (block, matched.minus())


def decorrelate(block: Block) -> Decorrelated | None:
    """Separate a block from the rows around it, if equalities alone tie it to them."""
    own = block.aliases
    if any(isinstance(leaf, Function) and not leaf.tables <= own for leaf in block.leaves):
        return None
    local, pairs, guards = [], [], []
    for predicate in block.predicates:
        tables = tables_of(predicate)
        pair = _pair(predicate, own)
        if tables <= own:
            local.append(predicate)
        elif not tables & own:
            guards.append(predicate)
        elif pair is not None:
            pairs.append(pair)
        else:
            return None
    return Decorrelated(replace(block, predicates=tuple(local)), tuple(pairs), tuple(guards))


def decorrelate_all(facts: Facts, blocks: tuple[Block, ...]) -> tuple[Decorrelated, ...] | None:
    """Separate blocks that are tied to the rows around them in the same way."""
    found = [decorrelate(block) for block in blocks]
    decorrelated = tuple(each for each in found if each is not None)
    ties = {
        (tuple(to_expr(o).sql for o, _ in each.pairs), tuple(to_expr(g).sql for g in each.guards))
        for each in decorrelated
    }
    if len(decorrelated) < len(blocks) or len(ties) > 1:
        return None
    alike = all(facts.compares_as_it_groups(inner, each.block) for each in decorrelated for _, inner in each.pairs)
    return decorrelated if alike else None


def decorrelate_by_domain(
    facts: Facts,
    outer: Block | None,
    inner: tuple[Block, ...],
    what: str,
    only_domain: bool = False,
    computed: tuple[exp.Expr, ...] = (),
) -> tuple[Decorrelated, ...]:
    """L ⋈ Q(L) = L ⋈ (D ⋈ Q(D)), where D are the distinct values of the columns of L that Q reads, its domain.

    Where equalities alone tie Q to L, no domain is needed: the inner sides of these are the keys.
    With `only_domain` they are joined in any case where they can be, so that nothing is computed for other values; and
    where Q computes something of columns of L, of which `computed` are those that its conditions need not have.
    """
    decorrelated = decorrelate_all(facts, inner)
    free = tuple(dict.fromkeys((*free_columns(inner), *computed)))
    has_domain = outer is not None and bool(free) and tables_of_all(free) <= outer.aliases
    if decorrelated is not None and not ((only_domain or computed) and has_domain):
        return decorrelated
    if any(isinstance(leaf, Function) and not leaf.tables <= each.aliases for each in inner for leaf in each.leaves):
        raise NotDifferentiable(f"{what} over a function of the rows around it")
    if outer is None or not tables_of_all(free) <= outer.aliases:
        raise NotDifferentiable(f"{what} tied to the rows around it by more than equalities")
    null_safe = null_safe_columns(facts, outer, inner, free)
    columns = domain_columns(facts, outer, free, by_text=bool(computed) and null_safe.issuperset(free))
    domain = distinct(facts, ((domain_rows(outer, free), columns),), Domain())
    keys = {column: own_column(domain.alias, f"k{i}") for i, column in enumerate(columns)}
    joined = (_joined(block, domain, keys) for block in inner)
    return tuple(Decorrelated(block, tuple(keys.items()), (), null_safe, by_domain=True) for block in joined)


def _joined(block: Block, domain: Derived, keys: Mapping[exp.Expr, exp.Expr]) -> Block:
    """Join a block with a domain, and have it read the keys of that instead of the rows around."""
    step = replacing(keys)
    predicates = tuple(predicate.transform(step) for predicate in block.predicates)
    return replace(block.mapped(lambda e: e.transform(step)), leaves=(domain, *block.leaves), predicates=predicates)


def separate(facts: Facts, outer: Block | None, rows: Rows, what: str, fails: bool = False) -> tuple[Decorrelated, ...]:
    """Separate rows that an operation takes from those around them, if they refer to any; they show their columns.

    What the operation computes of them may fail, too.
    """
    blocks = tuple(
        block.named({"": {str(place): column for place, column in enumerate(columns)}}) for block, columns in rows
    )
    computed = columns_around(rows)
    if computed or free_columns(blocks):
        return decorrelate_by_domain(facts, outer, blocks, what, fails or any_fails(facts, rows), computed)
    return tuple(Decorrelated(block, (), ()) for block in blocks)


def indicator(facts: Facts, outer: Block, inner: tuple[Block, ...]) -> Match:
    """L ⋉ R = L ⋈ distinct(keys of R): tell whether inner blocks have a row for a row of the outer block.

    Where more than equalities tie them, the inner blocks are joined with the outer rows that ask.
    """
    decorrelated = decorrelate_all(facts, inner)
    if decorrelated is not None:
        return _by_keys(facts, decorrelated)
    free = free_columns(inner)
    if not tables_of_all(free) <= outer.aliases:
        raise NotDifferentiable("a subquery tied by more than equalities to rows around it, some two levels up")
    domain = domain_rows(outer, free)
    paired = tuple(domain.joined(block) for block in inner)
    null_safe = null_safe_columns(facts, outer, inner, free)
    columns = domain_columns(facts, outer, free)
    leaf = distinct(facts, tuple((block, columns) for block in paired), Exists())
    return Match(leaf, _equated(columns, leaf.alias, 0, null_safe))


def columns_around(rows: Rows) -> tuple[exp.Expr, ...]:
    """List the columns of the rows around that expressions over blocks refer to."""
    found = (
        column.copy()
        for block, expressions in rows
        for expression in expressions
        for column in expression.find_all(exp.Column)
        if column.table not in block.aliases
    )
    return tuple(dict.fromkeys(found))


def free_columns(blocks: tuple[Block, ...]) -> tuple[exp.Expr, ...]:
    """List the columns of the rows around that blocks refer to."""
    found: dict[exp.Expr, None] = {}
    for block in blocks:
        reads = {each for leaf in block.leaves if isinstance(leaf, Function) for each in leaf.reads}
        columns = [own_column(*each) for each in sorted(reads)]
        columns += [column.copy() for predicate in block.predicates for column in predicate.find_all(exp.Column)]
        found |= dict.fromkeys(column for column in columns if column.table not in block.aliases)
    return tuple(found)


def _equated(
    outer: tuple[exp.Expr, ...], alias: str, first: int, null_safe: frozenset[exp.Expr]
) -> tuple[exp.Expr, ...]:
    """Equate expressions with the keys k<first> and following of a leaf, which hold their values.

    Plain equality can use an index, and hashes; NULL included it does neither.
    """
    kinds = (exp.NullSafeEQ if each in null_safe else exp.EQ for each in outer)
    keys = (own_column(alias, f"k{first + i}") for i in range(len(outer)))
    return tuple(kind(this=each.copy(), expression=key) for kind, each, key in zip(kinds, outer, keys, strict=True))


def _by_keys(facts: Facts, decorrelated: tuple[Decorrelated, ...]) -> Match:
    pairs, guards = decorrelated[0].pairs, decorrelated[0].guards
    if not pairs:
        return Match(exists(facts, tuple(each.block for each in decorrelated)), guards)
    leaf = distinct(facts, tuple((each.block, tuple(key for _, key in each.pairs)) for each in decorrelated), Exists())
    return Match(leaf, decorrelated[0].ties(leaf.alias))


def _pair(predicate: exp.Expr, own: frozenset[str]) -> tuple[exp.Expr, exp.Expr] | None:
    if not isinstance(predicate, exp.EQ) or predicate.find(exp.Collate) or is_quantified(predicate.expression.unnest()):
        return None
    sides = (predicate.this, predicate.expression)
    for outer, inner in (sides, sides[::-1]):
        if tables_of(inner) and tables_of(inner) <= own and tables_of(outer) and not tables_of(outer) & own:
            return outer, inner
    return None
