"""Arguments of sums that are more than a column: PostgreSQL evaluates them over the rows of one source."""

from dataclasses import replace

from sqlglot import exp

from pytrickle.catalog.definition import Definition
from pytrickle.plan.algebra.construct import ROW
from pytrickle.plan.algebra.constructs.group import Group
from pytrickle.plan.algebra.delta import blocks_of
from pytrickle.plan.algebra.relation import Derived, Expr, Project, leaves
from pytrickle.plan.query.block import to_expr
from pytrickle.plan.query.scope import tables_of
from pytrickle.plan.spark.mixed import Translator, parsed
from pytrickle.plan.spark.numbers import Untranslatable
from pytrickle.plan.sql.fallible import may_fail

FUNCTIONS = {"sum", "avg"}


def with_computed_arguments(derived: Derived, definition: Definition) -> Derived:
    """Give each sum or average of an expression a column of the input for it; what is not possible stays as it is.

    The input is one block, for in a union an expression has the type that all arms agree on.
    """
    operation = derived.operation
    construct, blocks = operation.construct, blocks_of(operation.input)
    if not isinstance(construct, Group) or len(blocks) != 1:
        return derived
    (block,), calls, further = blocks, list(construct.calls), []
    for i, call in enumerate(construct.calls):
        if (found := _argument(call, block, definition)) is not None:
            function, expr = found
            further.append((f"e{i}", expr))
            calls[i] = f"{function}({ROW}.e{i})"
    if not further:
        return derived
    names = tuple(name for name, _ in further)
    return replace(
        derived,
        operation=replace(
            operation,
            construct=replace(construct, calls=tuple(calls)),
            input=replace(block, columns=(*block.columns, *further)),
            arguments=(*operation.arguments, *names),
        ),
    )


def _argument(call: str, block: Project, definition: Definition) -> tuple[str, Expr] | None:
    """Return the function of a call and its argument over the leaves; None for a column, and for what may fail."""
    try:
        node = parsed(Expr(call, frozenset()))
        if node.key not in FUNCTIONS or isinstance(node.this, exp.Column | exp.Distinct | exp.Order):
            return None
        shown = {name: parsed(expr) for name, expr in block.columns}
    except Untranslatable:
        return None
    found = node.this.copy().transform(
        lambda each: exp.Paren(this=shown[each.name].copy()) if _is_of_row(each) and each.name in shown else each
    )
    types = Translator({leaf.alias: leaf for leaf in leaves(block)}, definition).type_of
    if len(tables_of(found)) != 1 or found.find(exp.Select) or may_fail(found, types):
        return None
    return node.key, to_expr(found)


def _is_of_row(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column) and node.table == ROW
