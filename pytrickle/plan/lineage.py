"""Where the columns of a stream table come from, and which columns decide about its rows, as the algebra says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from pytrickle.plan.algebra.constructs.group import Group
from pytrickle.plan.algebra.constructs.window import Window
from pytrickle.plan.algebra.query import Aggregate, Query
from pytrickle.plan.algebra.relation import (
    Column,
    Derived,
    Function,
    Join,
    Operation,
    Project,
    Relation,
    Scan,
    UnionAll,
    leaves,
)


class Way(StrEnum):
    """How a column of a source reaches a column of the result, or decides about rows; later ones win over earlier."""

    IDENTITY = "identity"
    TRANSFORMATION = "transformation"
    AGGREGATION = "aggregation"
    JOIN = "join"
    GROUP_BY = "group_by"
    FILTER = "filter"
    SORT = "sort"
    WINDOW = "window"

    @property
    def direct(self) -> bool:
        """Whether values are taken over, and not only decided about."""
        return self in (Way.IDENTITY, Way.TRANSFORMATION, Way.AGGREGATION)

    def after(self, first: Way) -> Way:
        """Return the way of a value that went one way and then this one."""
        if not (self.direct and first.direct):
            return first if self.direct else self
        return max(self, first, key=list(Way).index)


Source = tuple[int, str]
Ways = frozenset[tuple[Source, Way]]


@dataclass(frozen=True, slots=True)
class Lineage:
    """The sources, as (relid, column), of each column of the result; those in `rows` decide about all of its rows."""

    columns: Mapping[str, Ways]
    rows: Ways = field(default_factory=frozenset)


def lineage(query: Query, names: Iterable[str]) -> Lineage:
    """Trace the columns of a query, which has these names, to its sources."""
    hidden = {each.name for each in query.top.hidden} if query.top else set()
    found = _of_aggregate(query.aggregate) if query.aggregate else _of_rows(query, names)
    sorted_by = _union(found.columns[name] for name in hidden)
    shown = {name: ways for name, ways in found.columns.items() if name not in hidden}
    return Lineage(shown, found.rows | _by(Way.SORT, sorted_by))


def _of_rows(query: Query, names: Iterable[str]) -> Lineage:
    columns = {name: _column(query.rows, row) for name, row in zip(names, query.row_columns, strict=True)}
    ordering = query.top.ordering if query.top else ()
    sorted_by = {part.name for item in ordering for part in _columns(_parsed(item))}
    shown = dict(zip(columns, query.row_columns, strict=True))
    found = [_column(query.rows, shown.get(name, name)) for name in sorted_by]
    return Lineage(columns, _rows(query.rows) | _by(Way.SORT, _union(found)))


def _of_aggregate(aggregate: Aggregate) -> Lineage:
    calls = {call.name: call for call in aggregate.calls}

    def resolve(name: str) -> Ways:
        if name in aggregate.keys:
            return _column(aggregate.input, name)
        call = calls[name]
        if call.written is not None:
            used = {part.name for part in _columns(_parsed(call.written))}
        else:
            used = {call.argument} if call.argument else set()
        return _by(Way.AGGREGATION, _union(_column(aggregate.input, each) for each in used))

    columns = {name: _resolved(_parsed(text), lambda part: resolve(part.name)) for name, text in aggregate.output}
    keys = _by(Way.GROUP_BY, _union(_column(aggregate.input, key) for key in aggregate.keys))
    having = _columns(_parsed(aggregate.having)) if aggregate.having else ()
    return Lineage(columns, _rows(aggregate.input) | keys | _by(Way.FILTER, _union(resolve(h.name) for h in having)))


@cache
def _column(node: Relation, name: str) -> Ways:
    """Trace a column of a relation."""
    match node:
        case Project(input=below, columns=columns):
            expression = dict(columns).get(name)
            if expression is None:
                return frozenset()
            parts = {part: _below(below, part) for part in expression.columns}
            way = Way.IDENTITY if _shows_one(expression.sql) else Way.TRANSFORMATION
            return _by(way, _union(parts.values()))
        case UnionAll(inputs=inputs):
            return _union(_column(below, name) for below in inputs)
        case Scan(relid=relid):
            return frozenset({((relid, name), Way.IDENTITY)})
        case Derived(operation=operation):
            return _result(operation, name)
        case _:
            return frozenset()


def _below(node: Relation, column: Column) -> Ways:
    """Trace a column of one of the leaves that are joined."""
    alias, name = column
    for leaf in leaves(node):
        if leaf.alias == alias:
            if isinstance(leaf, Function):
                return _by(Way.TRANSFORMATION, _union(_below(node, read) for read in leaf.reads))
            return _column(leaf, name)
    return frozenset()


def _result(operation: Operation, name: str) -> Ways:
    """Trace a column of an operation: it shows one of its arguments, or computes something of them."""
    if name in operation.arguments:
        return _column(operation.input, name)
    way = Way.AGGREGATION if isinstance(operation.construct, Group) else Way.TRANSFORMATION
    for item in _items(operation):
        if item.alias_or_name == name:
            return _resolved(item.unalias(), lambda part: _column(operation.input, part.name), way)
    return _by(Way.TRANSFORMATION, _union(_column(operation.input, each) for each in operation.arguments))


def _items(operation: Operation) -> list[exp.Expr]:
    """Return the select list of an operation's text, or nothing where it is no plain one."""
    try:
        parsed = parse_one(operation.construct.over("(SELECT 1)", operation.arguments, operation.keys), read="postgres")
    except (SqlglotError, TypeError):
        return []
    return list(parsed.selects) if isinstance(parsed, exp.Select) else []


def _rows(node: Relation) -> Ways:
    """Return what decides which rows there are, at any depth."""
    match node:
        case Project(input=below):
            return _rows(below)
        case UnionAll(inputs=inputs):
            return _union(map(_rows, inputs))
        case Join(inputs=inputs, predicates=predicates):
            decided = (
                _by(Way.JOIN if each.equality else Way.FILTER, _union(_below(node, c) for c in each.expr.columns))
                for each in predicates
            )
            return _union([*decided, *map(_rows, inputs)])
        case Derived(operation=operation):
            keys = operation.keys if isinstance(operation.construct, Group) else ()
            ordering = () if isinstance(operation.construct, Window) else operation.construct.ordering
            order = {part.name for item in ordering for part in _columns(_parsed(item))}
            return _union(
                [
                    _rows(operation.input),
                    _by(Way.GROUP_BY, _union(_column(operation.input, key) for key in keys)),
                    _by(Way.SORT, _union(_column(operation.input, each) for each in order)),
                ]
            )
        case _:
            return frozenset()


def _resolved(expression: exp.Expr, resolve: Callable[[exp.Column], Ways], way: Way = Way.TRANSFORMATION) -> Ways:
    """Trace what an expression is made of: unchanged where it shows one column, else by a way."""
    shown = _uncast(expression)
    if isinstance(shown, exp.Column):
        return resolve(shown)
    return _union(_by(Way.WINDOW if _orders(part) else way, resolve(part)) for part in _columns(shown))


def _orders(column: exp.Column) -> bool:
    """Whether a column only says how a window is partitioned or sorted."""
    window = column.find_ancestor(exp.Window)
    return window is not None and column not in _columns(window.this)


def _columns(expression: exp.Expr) -> list[exp.Column]:
    return list(expression.find_all(exp.Column))


def _shows_one(text: str) -> bool:
    return isinstance(_uncast(_parsed(text)), exp.Column)


def _uncast(expression: exp.Expr) -> exp.Expr:
    """Take away the cast to the type of the result, which the planner puts around each column."""
    inner = expression.this if isinstance(expression, exp.Cast) else expression
    return inner.unnest()


def _parsed(text: str) -> exp.Expr:
    return parse_one(text, read="postgres")


def _by(way: Way, ways: Ways) -> Ways:
    return frozenset((source, way.after(first)) for source, first in ways)


def _union(found: Iterable[Ways]) -> Ways:
    return frozenset[tuple[Source, Way]]().union(*found)
