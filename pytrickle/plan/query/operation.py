"""Operations built from blocks: DISTINCT, grouping, windows and set operations as PostgreSQL text around their rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import compress

from sqlglot import exp

from pytrickle.plan.algebra.relation import Derived, Join, Operation, Project
from pytrickle.plan.query.block import Block, own_column, project, sum_of, to_expr
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.query.kept import differing, kept_columns, moved_columns
from pytrickle.plan.query.mixed_equality import refuse_unfit_keys
from pytrickle.plan.query.scope import Names, column_name, resolve

Rows = tuple[tuple[Block, tuple[exp.Expr, ...]], ...]
Hidden = frozenset[tuple[str, str]]
ROW = "d"


@dataclass(frozen=True, slots=True)
class Form:
    """How an operation is written: `head` and `tail` around its rows, and the columns that come out.

    `chosen` columns show one of several equal values; conditions on the arguments `moved` reach below the operation.
    For the other fields see Operation.
    """

    name: str
    head: str
    tail: str
    columns: tuple[str, ...]
    ordered: bool = False
    ordering: tuple[str, ...] = ()
    entries: tuple[str, ...] = ()
    tied: bool = False
    linear: bool = False
    netted: bool = False
    chosen: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()


@dataclass(slots=True)
class Arguments:
    """The visible columns that an operation reads, each once, as a<i>."""

    columns: dict[tuple[str, str], exp.Column] = field(default_factory=dict)

    def take(self, expression: exp.Expr) -> exp.Expr:
        """Rewrite an expression over visible columns as one over the operation's rows."""

        def step(node: exp.Expr) -> exp.Expr:
            return own_column(ROW, self.name(node)) if isinstance(node, exp.Column) else node

        return expression.copy().transform(step)

    def name(self, column: exp.Column) -> str:
        """Return the argument that stands for a visible column."""
        key = (column.table, column_name(column))
        self.columns.setdefault(key, column.copy())
        return f"a{list(self.columns).index(key)}"

    @property
    def names(self) -> tuple[str, ...]:
        """The arguments."""
        return tuple(f"a{i}" for i in range(len(self.columns)))

    def resolved(self, names: Names, outer: Names) -> tuple[exp.Expr, ...]:
        """Return what the arguments stand for in a block."""
        return tuple(resolve(column, names, outer) for column in self.columns.values())


def derive_unguarded(
    facts: Facts, rows: Rows, arguments: tuple[str, ...], keys: tuple[str, ...], form: Form
) -> Derived:
    """Build an operation over blocks, each projected to the same arguments, under a fresh alias.

    For expressions that may fail see `derive`.
    """
    projects = tuple(_renamed(project(block, columns), arguments) for block, columns in rows)
    relation = sum_of(projects)
    exact = facts.is_exact(relation)
    input_types = dict(zip(arguments, facts.types_of(relation), strict=True))
    refuse_unfit_keys(facts, (input_types[key] for key in keys))
    operation = Operation(
        form.name,
        relation,
        arguments,
        keys,
        form.head,
        form.tail,
        form.columns,
        exact,
        form.ordered or not (exact or form.name == "exists" or form.linear),
        form.ordering,
        nullable=not _never_null(facts, rows, arguments, keys),
        entries=form.entries or tuple(key for key in keys if key in form.columns),
        tied=form.tied,
        linear=form.linear,
        netted=form.netted,
    )
    settled, types = facts.is_exact(operation), facts.types_of(operation)
    kept, moved = _hiding(facts, rows, operation, form)
    return Derived(facts.alias(), replace(operation, settled=settled, types=types, kept=kept, moved=moved))


def _hiding(facts: Facts, rows: Rows, operation: Operation, form: Form) -> tuple[Hidden, Hidden]:
    """Find the columns that hold one of several equal values, and those on which conditions reach below."""
    kept = frozenset(compress(operation.arguments, kept_columns(rows))) | frozenset(form.chosen)
    moved = frozenset(form.moved)
    if form.linear:
        moved |= frozenset(compress(operation.arguments, moved_columns(rows)))
    if not (kept | moved) & frozenset(operation.columns):
        return frozenset(), frozenset()
    sorts = [each for each in zip(operation.columns, differing(facts, operation), strict=True) if each[1]]
    return frozenset(each for each in sorts if each[0] in kept), frozenset(each for each in sorts if each[0] in moved)


def columns_of(leaf: Derived) -> dict[str, exp.Expr]:
    """Return the columns of a derived leaf by name."""
    return {name: own_column(leaf.alias, name) for name in leaf.operation.columns}


def _renamed(block: Project, names: tuple[str, ...]) -> Project:
    assert isinstance(block.input, Join)
    return Project(block.input, tuple((name, expr) for name, (_, expr) in zip(names, block.columns, strict=True)))


def _never_null(facts: Facts, rows: Rows, arguments: tuple[str, ...], keys: tuple[str, ...]) -> bool:
    positions = [arguments.index(key) for key in keys]
    return all(facts.never_null(columns[i], block) for block, columns in rows for i in positions)


def text(expression: exp.Expr) -> str:
    """Write a resolved expression."""
    return to_expr(expression).sql
