"""GROUP BY, its aggregate calls, and the expressions above them, in which each key and each call is a column."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from sqlglot import exp

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.algebra.construct import ROW
from pytrickle.plan.algebra.query import Call
from pytrickle.plan.query.block import own_column
from pytrickle.plan.query.calls import bare_call, function_name, is_call, refuse_open_order
from pytrickle.plan.query.group_keys import GroupKeys
from pytrickle.plan.query.operation import Arguments, text
from pytrickle.plan.query.scope import Names, single_source
from pytrickle.plan.query.stored_order import as_written
from pytrickle.plan.sql.dialect import render


class Calls(Protocol):
    """Collects the calls of one grouped SELECT, each once."""

    def name(self, call: exp.Expr) -> str:
        """Take in a call with all that belongs to it, and name its column: c<i>."""


C = TypeVar("C", bound=Calls)


@dataclass(slots=True)
class Grouping(Generic[C]):
    """Collects the keys and calls of one grouped SELECT while its expressions are lifted above the groups.

    There every key, of whichever grouping set, stands as k<i> of the table of the keys, every call as c<i> and every
    GROUPING() as b<i>. Columns of other `names` belong to the query around it; without `names` there is none.
    """

    group_keys: GroupKeys
    calls: C
    aggregates: frozenset[str]
    names: Names | None = None
    grouping_calls: list[tuple[exp.Expr, ...]] = field(default_factory=list)

    @property
    def keys(self) -> list[exp.Expr]:
        """The keys of all grouping sets, then columns that depend on them."""
        return self.group_keys.listed

    def lift(self, node: exp.Expr) -> exp.Expr:
        """Rewrite an expression of the select list or of HAVING over keys and calls."""
        if isinstance(node, exp.Query):
            return self._around(node)
        if isinstance(node, exp.Window):
            return with_children(node, lambda child: self._windowed(child) if child is node.this else self.lift(child))
        if is_call(node, self.aggregates):
            return self._column(self.calls.name(node))
        return self._key(node) or self.group_keys.settled(node) or with_children(node, self.lift)

    def bits_of(self, present: frozenset[exp.Expr]) -> dict[str, exp.Expr]:
        """Return each GROUPING() for a set of keys: a bit per argument that it lacks, the last argument the lowest."""
        found: dict[str, exp.Expr] = {}
        for number, arguments in enumerate(self.grouping_calls):
            bits = (key not in present for key in reversed(arguments))
            found[f"b{number}"] = exp.Literal.number(sum(bit << place for place, bit in enumerate(bits)))
        return found

    def _around(self, query: exp.Query) -> exp.Expr:
        """Lift what a subquery reads of the groups around it: calls, and what depends on grouped primary keys."""
        lifted = query.copy().transform(self._own_call)
        for column in lifted.find_all(exp.Column):
            if self.names is not None and column.table in self.names:
                self.group_keys.take_in(column, single_source(self.names) == column.table)
        return lifted

    def _own_call(self, node: exp.Expr) -> exp.Expr:
        """An aggregate call in a subquery belongs to the query of whose columns alone its arguments are made."""
        asks = isinstance(node, exp.Anonymous) and function_name(node) == "grouping"
        if self.names is None or not (asks or is_call(node, self.aggregates)):
            return node
        tables = {column.table for column in node.find_all(exp.Column)}
        if not tables or not tables <= self.names.keys():
            return node
        if asks:
            return self._bits(tuple(map(self._as_listed, _unnested(node))))
        return self._column(self.calls.name(node))

    def _as_listed(self, argument: exp.Expr) -> exp.Expr:
        """Write an argument as the keys are: from 16 on, PostgreSQL prints those of one source without its alias."""
        alone = single_source(self.names or {})

        def bare(node: exp.Expr) -> exp.Expr:
            own = isinstance(node, exp.Column) and node.table == alone
            return exp.Column(this=node.this.copy()) if own else node

        return argument if argument in self.keys else argument.transform(bare)

    def _windowed(self, call: exp.Expr) -> exp.Expr:
        """Leave the function of a window in place; its arguments may be aggregates."""
        return with_children(call, self._windowed if isinstance(call, exp.Filter | exp.IgnoreNulls) else self.lift)

    def _key(self, node: exp.Expr) -> exp.Expr | None:
        if isinstance(node, exp.Anonymous) and function_name(node) == "grouping":
            return self._bits(_unnested(node))
        if (found := self.group_keys.key(node)) is not None:
            return found
        return self.group_keys.dependent(node) if isinstance(node, exp.Column) and self._is_local(node) else None

    def _bits(self, arguments: tuple[exp.Expr, ...]) -> exp.Expr:
        if arguments not in self.grouping_calls:
            self.grouping_calls.append(arguments)
        return self._column(f"b{self.grouping_calls.index(arguments)}")

    def _is_local(self, column: exp.Column) -> bool:
        return self.names is None or not column.table or column.table in self.names

    def _column(self, name: str) -> exp.Expr:
        return own_column(self.group_keys.table, name)


def _unnested(call: exp.Expr) -> tuple[exp.Expr, ...]:
    return tuple(argument.unnest() for argument in call.expressions)


@dataclass(slots=True)
class WrittenCalls:
    """Calls of groups that are computed anew: each is kept as it is written, over its arguments a<i>."""

    arguments: Arguments = field(default_factory=Arguments)
    by_text: dict[str, exp.Expr] = field(default_factory=dict)

    @property
    def nodes(self) -> tuple[exp.Expr, ...]:
        """The distinct calls."""
        return tuple(self.by_text.values())

    def name(self, call: exp.Expr) -> str:
        """Take in a call and name its column."""
        refuse_open_order(call)
        if any(isinstance(inner, exp.Query) for inner in call.walk()):
            raise NotDifferentiable("a subquery inside an aggregate")
        written = text(self.arguments.take(call))
        self.by_text.setdefault(written, call)
        return f"c{list(self.by_text).index(written)}"


@dataclass(slots=True)
class IncrementalCalls:
    """Calls at the top of a query, which increments maintain: of a function over one argument a<i>, FILTER folded in.

    With `recomputed` those that do not add up are kept as they are written.
    """

    recomputed: bool = False
    argument_texts: dict[str, exp.Expr] = field(default_factory=dict)
    by_key: dict[tuple[str, str | None], Call] = field(default_factory=dict)

    @property
    def arguments(self) -> tuple[exp.Expr, ...]:
        """The distinct arguments of all calls."""
        return tuple(self.argument_texts.values())

    @property
    def listed(self) -> tuple[Call, ...]:
        """The distinct calls."""
        return tuple(self.by_key.values())

    def name(self, call: exp.Expr) -> str:
        """Take in a call and name its column."""
        bare = bare_call(call)
        plain = isinstance(bare, exp.AggFunc) and not isinstance(bare.this, exp.Distinct | exp.Order)
        if self.recomputed and not plain:
            written, placed = map(render, as_written(call, lambda column: own_column(ROW, self._argument(column))))
            return self._named((written, None), written, placed, call.find(exp.Order) is not None)
        function = function_name(bare)
        if isinstance(bare.this, exp.Distinct | exp.Order) or bare.args.get("expressions"):
            raise NotDifferentiable(f"{function}(DISTINCT ...) or an ordered aggregate")
        value = added(function, bare.this, call.expression.this if isinstance(call, exp.Filter) else None)
        return self._named((function, None if value is None else self._argument(value)))

    def _named(
        self, key: tuple[str, str | None], written: str | None = None, placed: str | None = None, ordered: bool = False
    ) -> str:
        call = Call(f"c{len(self.by_key)}", *key, written, placed, ordered=ordered)
        return self.by_key.setdefault(key, call).name

    def _argument(self, expression: exp.Expr) -> str:
        written = render(expression)
        self.argument_texts.setdefault(written, expression.copy())
        return f"a{list(self.argument_texts).index(written)}"


def added(function: str, value: exp.Expr, condition: exp.Expr | None) -> exp.Expr | None:
    """Return what a call adds up for a row, NULL where it passes the row over; nothing for count(*).

    A row that has some NULLs is counted, though of it neither IS NULL nor IS NOT NULL is true.
    """
    counted = function == "count"
    if counted and isinstance(value, exp.Star) and condition is None:
        return None
    present = None
    if counted and not isinstance(value, exp.Star):
        present = exp.EQ(this=exp.Anonymous(this="num_nonnulls", expressions=[value.copy()]), expression=_one())
    tests = [exp.Paren(this=test.copy()) for test in (present, condition) if test is not None]
    result = _one() if counted else value.copy()
    return exp.Case(ifs=[exp.If(this=exp.and_(*tests), true=result)]) if tests else result


def with_children(node: exp.Expr, change: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """Copy a node, changing what is directly below it."""
    result = node.copy()
    for old, new in zip(list(node.iter_expressions()), list(result.iter_expressions()), strict=True):
        new.replace(change(old))
    return result


def _one() -> exp.Expr:
    return exp.Literal.number(1)
