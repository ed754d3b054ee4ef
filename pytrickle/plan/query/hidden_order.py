"""ORDER BY ... LIMIT at the top by what a query does not show: the body below has that in columns of its own."""

from dataclasses import replace

from sqlglot import exp

from pytrickle.catalog.definition import Definition
from pytrickle.plan.algebra.query import HiddenColumn
from pytrickle.plan.query.block import aliased
from pytrickle.plan.query.first_rows import CLAUSES, over_columns
from pytrickle.plan.query.probe import Probe
from pytrickle.plan.sql.dialect import render

NAME = "pgt_order_{}"
# PostgreSQL sorts by rows, but has no columns of them. A type of the user's, which is printed with its schema, may be
# the row of a source, which could not be altered any more; as the whole row of a table it is several columns here. An
# enumeration is neither: its order is that of its own, whatever is added to it.
ROWS = ("record", "record[]")

Hidden = tuple[HiddenColumn, ...]


def with_hidden(query: exp.Expr, definition: Definition, probe: Probe) -> tuple[exp.Expr, Hidden]:
    """Have a SELECT with LIMIT show what it sorts by, too, behind its own columns.

    PostgreSQL does just that. Under DISTINCT and in set operations it sorts by nothing that is not shown.
    """
    items = _not_shown(query, definition)
    if not items or any(name.startswith(NAME.format("")) for name, _ in definition.columns):
        return query, ()
    names = [NAME.format(i) for i in range(len(items))]
    result = query.copy()
    result.set("expressions", [*result.expressions, *map(aliased, items, names)])
    text, shown = render(result), len(definition.columns)
    types = probe.column_types(text)[shown:]
    if len(types) > len(items) or any(type_name in ROWS for type_name in types):
        return query, ()
    if not all(probe.is_enumeration(type_name) for type_name in types if "." in type_name):
        return query, ()
    return result, tuple(map(HiddenColumn, names, types, probe.collations(text)[shown:]))


def _not_shown(query: exp.Expr, definition: Definition) -> list[exp.Expr]:
    """List what a SELECT with LIMIT sorts by, as far as that cannot be said over the columns that it shows."""
    if not isinstance(query, exp.Select) or query.args.get("distinct"):
        return []
    if not any(query.args.get(clause) for clause in CLAUSES):
        return []
    order, columns = query.args.get("order"), tuple(name for name, _ in definition.columns)
    items = order.expressions if order else ()
    return [item.this for item in items if over_columns(item, query, columns, definition.aggregates) is None]


def body_of(definition: Definition, hidden: Hidden) -> Definition:
    """Describe the rows below the LIMIT: with the hidden columns behind those that are shown."""
    return replace(definition, columns=(*definition.columns, *((each.name, each.type_name) for each in hidden)))
