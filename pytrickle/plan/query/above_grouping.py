"""Expressions lifted above a grouping: each key and call becomes a column."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from sqlglot import exp

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.query.block import own_column
from pytrickle.plan.query.group_keys import GroupKeys
from pytrickle.plan.query.operation import Arguments, text
from pytrickle.plan.query.scope import Names
from pytrickle.plan.sql.aggregates import ordered, unordered
from pytrickle.plan.sql.rounding import refuse_rounding

GROUP = "\x00group"
WRAPPERS = exp.Filter | exp.WithinGroup


@dataclass(slots=True)
class AboveGrouping:
    """Collects the keys, calls and arguments of one grouped SELECT while its expressions are lifted.

    Above the grouping every key, of whichever grouping set, stands as k<i> of the scope GROUP, every call as c<i> and
    every GROUPING() as b<i>.
    """

    group_keys: GroupKeys
    names: Names
    aggregates: frozenset[str]
    arguments: Arguments = field(default_factory=Arguments)
    calls: dict[str, exp.Expr] = field(default_factory=dict)
    asked: list[tuple[exp.Expr, ...]] = field(default_factory=list)

    @property
    def keys(self) -> list[exp.Expr]:
        """The keys of all grouping sets."""
        return self.group_keys.listed

    def lift(self, node: exp.Expr) -> exp.Expr:
        """Rewrite an expression of the select list or of HAVING over keys and calls."""
        if isinstance(node, exp.Query):
            return node.copy().transform(self._own_call)
        if isinstance(node, exp.Window):
            return with_children(node, lambda child: self._windowed(child) if child is node.this else self.lift(child))
        if is_call(node, self.aggregates):
            return own_column(GROUP, self._call(node))
        return self._key(node) or with_children(node, self.lift)

    def _own_call(self, node: exp.Expr) -> exp.Expr:
        """What a subquery calls over groups belongs to the query of whose columns alone its arguments are made."""
        asks = isinstance(node, exp.Anonymous) and function_name(node) == "grouping"
        if not asks and not is_call(node, self.aggregates):
            return node
        tables = {column.table for column in node.find_all(exp.Column)}
        if not tables or not tables <= self.names.keys():
            return node
        return (
            self._grouping(tuple(key.unnest() for key in node.expressions))
            if asks
            else own_column(GROUP, self._call(node))
        )

    def _key(self, node: exp.Expr) -> exp.Expr | None:
        if isinstance(node, exp.Anonymous) and function_name(node) == "grouping":
            return self._grouping(tuple(key.unnest() for key in node.expressions))
        if (found := self.group_keys.key(node)) is not None:
            return found
        return self.group_keys.dependent(node) if isinstance(node, exp.Column) and self._is_local(node) else None

    def _windowed(self, call: exp.Expr) -> exp.Expr:
        """Leave the function of a window in place; its arguments may be aggregates."""
        return with_children(call, self._windowed if isinstance(call, exp.Filter | exp.IgnoreNulls) else self.lift)

    def bits_of(self, present: frozenset[exp.Expr]) -> dict[str, exp.Expr]:
        """Return each GROUPING() for a set of keys: a bit per argument that it lacks, the last argument the lowest."""
        found: dict[str, exp.Expr] = {}
        for number, asked in enumerate(self.asked):
            bits = (key not in present for key in reversed(asked))
            found[f"b{number}"] = exp.Literal.number(sum(bit << place for place, bit in enumerate(bits)))
        return found

    def _grouping(self, asked: tuple[exp.Expr, ...]) -> exp.Expr:
        if asked not in self.asked:
            self.asked.append(asked)
        return own_column(GROUP, f"b{self.asked.index(asked)}")

    def _is_local(self, column: exp.Column) -> bool:
        return column.table in self.names if column.table else True

    def _call(self, node: exp.Expr) -> str:
        _refuse_order(node)
        if any(isinstance(inner, exp.Query) for inner in node.walk()):
            raise NotDifferentiable("a subquery inside an aggregate")
        taken = self.arguments.take(node)
        written = text(taken)
        self.calls.setdefault(written, node)
        return f"c{list(self.calls).index(written)}"


UNORDERED, ORDERED = unordered(), ordered()


def is_call(node: exp.Expr, aggregates: frozenset[str]) -> bool:
    """Whether a node is an aggregate call with all that belongs to it."""
    if isinstance(node, WRAPPERS):
        return is_call(node.this, aggregates)
    if isinstance(node, exp.AggFunc):
        return True
    # With a schema it is no function of PostgreSQL's own, whatever its name.
    return isinstance(node, exp.Anonymous) and function_name(node) in aggregates and not _has_schema(node)


def _has_schema(node: exp.Expr) -> bool:
    return isinstance(node.parent, exp.Dot) and node.parent.expression is node


def function_name(node: exp.Expr) -> str:
    """Return the name of a called function, in small letters unless it is quoted."""
    if not isinstance(node, exp.Anonymous):
        return node.key.lower()
    name = str(node.this)
    return name if '"' in name else name.lower()


def is_own(name: str) -> bool:
    """Whether an aggregate is a user's own: its name has a schema, and what it depends on is not known."""
    return "." in name


def _refuse_order(node: exp.Expr) -> None:
    call = node
    while isinstance(call, WRAPPERS):
        call = call.this
    name = function_name(call)
    settled = any(isinstance(inner, exp.Order | exp.Distinct) for inner in call.walk())
    if is_own(name):
        settled |= call is not node and isinstance(node.this if isinstance(node, exp.Filter) else node, exp.WithinGroup)
    if (name in ORDERED or is_own(name)) and not settled:
        raise NotDifferentiable(f"{name}() without ORDER BY, whose result depends on the order of rows")
    if name not in UNORDERED | ORDERED and not is_own(name):
        raise NotDifferentiable(f"the aggregate {name}()")


def with_children(node: exp.Expr, change: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """Copy a node, changing what is directly below it."""
    result = node.copy()
    for old, new in zip(list(node.iter_expressions()), list(result.iter_expressions()), strict=True):
        new.replace(change(old))
    return result


def refuse_rounding_calls(calls: Iterable[exp.Expr], types: tuple[str, ...]) -> None:
    """Refuse calls with results of some types that depend on the order in which rows are added up."""
    for call, type_name in zip(calls, types, strict=True):
        while isinstance(call, exp.Filter | exp.WithinGroup):
            call = call.this
        refuse_rounding(function_name(call), type_name)
