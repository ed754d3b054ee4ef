"""Operations built from blocks, each over arguments of its own."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import compress

from sqlglot import exp

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.algebra.construct import ROW, Construct
from pytrickle.plan.algebra.relation import Derived, Join, Operation, Project
from pytrickle.plan.query.block import Block, own_column, project, sum_of, to_expr
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.query.mixed_equality import refuse_unfit_keys
from pytrickle.plan.query.representatives import differing, pushed_down_columns, representative_columns
from pytrickle.plan.query.scope import Names, column_name, resolve

Rows = tuple[tuple[Block, tuple[exp.Expr, ...]], ...]


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
    facts: Facts, rows: Rows, arguments: tuple[str, ...], keys: tuple[str, ...], construct: Construct
) -> Derived:
    """Build an operation over blocks, each projected to the same arguments, under a fresh alias.

    For expressions that may fail see `derive`.
    """
    projects = tuple(_renamed(project(block, columns), arguments) for block, columns in rows)
    relation = sum_of(projects)
    exact = facts.is_exact(relation)
    refuse_unfit_keys(facts, relation, arguments, keys)
    nullable = not _never_null(facts, rows, arguments, keys)
    operation = Operation(construct, relation, arguments, keys, exact, nullable)
    operation = replace(operation, columns_canonical=facts.is_exact(operation), types=facts.types_of(operation))
    return Derived(facts.alias(), _with_hidden(facts, rows, operation))


def _with_hidden(facts: Facts, rows: Rows, operation: Operation) -> Operation:
    """Tell an operation which columns hold one of several equal values, and on which conditions reach below."""
    construct, columns = operation.construct, frozenset(operation.columns)
    representatives = frozenset(compress(operation.arguments, representative_columns(rows)))
    representatives |= frozenset(construct.representatives(operation.keys))
    pushed_down = frozenset(construct.pushed_down)
    if construct.linear:
        pushed_down |= frozenset(compress(operation.arguments, pushed_down_columns(rows)))
    if not (representatives | pushed_down) & columns:
        return operation
    sorts = [each for each in zip(operation.columns, differing(facts, operation), strict=True) if each[1]]
    return replace(
        operation,
        representatives=frozenset(each for each in sorts if each[0] in representatives),
        pushed_down=frozenset(each for each in sorts if each[0] in pushed_down),
    )


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


def refuse_correlation(rows: Rows, what: str) -> None:
    """Refuse an operation whose rows refer to the rows around it."""
    for block, columns in rows:
        expressions = (*columns, *block.predicates)
        if any(column.table not in block.aliases for each in expressions for column in each.find_all(exp.Column)):
            raise NotDifferentiable(f"{what} in a correlated subquery")
