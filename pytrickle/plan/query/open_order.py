"""Which columns of a query may show the same elements in another order: to be compared, not to be computed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from pytrickle.catalog.definition import Definition
from pytrickle.errors import NotDifferentiable
from pytrickle.plan.query.select_clauses import own_nodes
from pytrickle.plan.query.stored_order import calls_in, is_open
from pytrickle.plan.query.subquery_nodes import is_array
from pytrickle.plan.sql.dialect import parse_query

# Names, each with whether the order of its elements is left open.
Columns = list[tuple[str, bool]]


def open_columns(definition: Definition) -> frozenset[int]:
    """Find by position the columns of a defining query whose aggregates leave the order of their rows open.

    They are followed through subqueries in FROM, WITH, views and set operations.
    """
    try:
        found = _Open(definition, {}).names(parse_query(definition.text, definition.aggregates))
    except NotDifferentiable:
        return frozenset()
    return frozenset(position for position, (_, is_left_open) in enumerate(found) if is_left_open)


@dataclass(frozen=True, slots=True)
class _Open:
    """Follows columns through queries; `ctes` are those of WITH, as (column, whether its order is open)."""

    definition: Definition
    ctes: Mapping[str, Columns]

    def names(self, query: exp.Expr) -> Columns:
        """List the columns of a query, each with whether it is open."""
        inside = self
        for entry in query.args["with_"].expressions if query.args.get("with_") else ():
            shown = _renamed(inside.names(entry.this), entry.alias_column_names)
            inside = replace(inside, ctes={**inside.ctes, entry.alias: shown})
        match query:
            case exp.Subquery():
                return inside.names(query.this)
            case exp.SetOperation():
                arms = (inside.names(query.this), inside.names(query.expression))
                return [(name, one or other) for (name, one), (_, other) in zip(*arms, strict=False)]
            case exp.Select():
                return inside._selected(query)
            case _:
                return []

    def _selected(self, select: exp.Select) -> Columns:
        sources = list(self._sources(select))
        known = {(alias, name) for alias, columns in sources for name, is_left_open in columns if is_left_open}
        known |= {("", name) for _, name in known}
        aggregates = self.definition.aggregates
        return [
            (
                item.alias_or_name,
                any(map(is_open, calls_in(item, aggregates)))
                or any(map(_lists_in_any_order, own_nodes(item)))
                or any((column.table, column.name) in known for column in item.find_all(exp.Column)),
            )
            for item in select.selects
        ]

    def _sources(self, select: exp.Select) -> Iterator[tuple[str, Columns]]:
        clause = select.args.get("from_")
        items = [*([clause.this] if clause else []), *(join.this for join in select.args.get("joins") or ())]
        for item in items:
            inner = item.this if isinstance(item, exp.Lateral) else item
            yield item.alias_or_name, _renamed(self._source(inner), item.alias_column_names)

    def _source(self, item: exp.Expr) -> Columns:
        if isinstance(item, exp.Subquery):
            return self.names(item.this)
        if not isinstance(item, exp.Table):
            return []
        if not item.db and item.name in self.ctes:
            return self.ctes[item.name]
        for view in self.definition.views:
            if (view.schema, view.name) == (item.db, item.name):
                return replace(self, ctes={}).names(parse_query(view.text, self.definition.aggregates))
        return []


def _lists_in_any_order(node: exp.Expr) -> bool:
    """Whether a node is ARRAY(subquery) without ORDER BY."""
    return is_array(node) and not node.expressions[0].args.get("order")


def _renamed(columns: Columns, aliases: list[str]) -> Columns:
    return [
        (aliases[position] if position < len(aliases) else name, is_left_open)
        for position, (name, is_left_open) in enumerate(columns)
    ]
