"""GROUP BY, its aggregate calls, and the expressions above them."""

from dataclasses import dataclass, field

from sqlglot import exp

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.algebra.construct import ROW
from pytrickle.plan.algebra.query import Call
from pytrickle.plan.query.above_grouping import is_call
from pytrickle.plan.query.block import own_column
from pytrickle.plan.query.group_keys import GroupKeys
from pytrickle.plan.query.stored_order import as_written
from pytrickle.plan.sql.dialect import render

GROUP = "g"


@dataclass(slots=True)
class Grouping:
    """Keys, arguments and calls of one grouped SELECT, collected while its output is lifted above the grouping.

    In a lifted expression every key stands as g."k<i>" and every call as g."c<i>". Calls of aggregates in `recomputed`
    are kept as they are written.
    """

    group_keys: GroupKeys
    argument_texts: dict[str, exp.Expr] = field(default_factory=dict)
    call_names: dict[tuple[str, str | None], Call] = field(default_factory=dict)
    recomputed: frozenset[str] = frozenset()

    @classmethod
    def of(cls, select: exp.Select) -> "Grouping":
        """Start from a SELECT's GROUP BY clause."""
        group = select.args.get("group")
        if group is None:
            return cls(GroupKeys(GROUP, [], open=False))
        if any(isinstance(key, exp.GroupingSets | exp.Rollup | exp.Cube | exp.Tuple) for key in group.expressions):
            raise NotDifferentiable("GROUPING SETS, ROLLUP or CUBE")
        return cls(GroupKeys(GROUP, [key.unnest() for key in group.expressions], open=True))

    @property
    def keys(self) -> tuple[exp.Expr, ...]:
        """The group keys: those of GROUP BY, then columns that depend on them functionally."""
        return tuple(self.group_keys.listed)

    @property
    def arguments(self) -> tuple[exp.Expr, ...]:
        """The distinct arguments of all calls, FILTER folded in."""
        return tuple(self.argument_texts.values())

    @property
    def calls(self) -> tuple[Call, ...]:
        """The distinct calls."""
        return tuple(self.call_names.values())

    def lift(self, expression: exp.Expr) -> exp.Expr:
        """Rewrite an expression of the select list or of HAVING over keys and calls."""
        return expression.copy().transform(self._step)

    def _step(self, node: exp.Expr) -> exp.Expr:
        if self.recomputed and is_call(node, self.recomputed) and not _adds_up(node):
            return own_column(GROUP, self._written(node))
        if isinstance(node, exp.Filter | exp.AggFunc):
            return own_column(GROUP, self._call(node))
        if isinstance(node, exp.Query | exp.Exists | exp.Window):
            raise NotDifferentiable("a subquery or window function over an aggregate")
        if (found := self.group_keys.key(node)) is not None:
            return found
        return self.group_keys.dependent(node) if isinstance(node, exp.Column) else node

    def _call(self, node: exp.Expr) -> str:
        condition = node.expression.this if isinstance(node, exp.Filter) else None
        call = node.this if isinstance(node, exp.Filter) else node
        function = call.key.lower()
        value = call.this
        if isinstance(value, exp.Distinct | exp.Order) or call.args.get("expressions"):
            raise NotDifferentiable(f"{function}(DISTINCT ...) or an ordered aggregate")
        argument = self._argument(function, value, condition)
        return self._named((function, argument))

    def _written(self, node: exp.Expr) -> str:
        written, placed = map(render, as_written(node, self._argument_column))
        return self._named((written, None), written, placed)

    def _named(self, key: tuple[str, str | None], *texts: str) -> str:
        """Name a call, and keep it once."""
        return self.call_names.setdefault(key, Call(f"c{len(self.call_names)}", *key, *texts)).name

    def _argument_column(self, column: exp.Column) -> exp.Expr:
        text = render(column)
        self.argument_texts.setdefault(text, column.copy())
        return exp.column(f"a{list(self.argument_texts).index(text)}", table=ROW, quoted=True)

    def _argument(self, function: str, value: exp.Expr, condition: exp.Expr | None) -> str | None:
        counted = function == "count"
        if counted and isinstance(value, exp.Star) and condition is None:
            return None
        present = None
        if counted and not isinstance(value, exp.Star):
            present = exp.EQ(this=exp.Anonymous(this="num_nonnulls", expressions=[value.copy()]), expression=_one())
        tests = [exp.Paren(this=test.copy()) for test in (present, condition) if test is not None]
        result = _one() if counted else value.copy()
        if tests:
            result = exp.Case(ifs=[exp.If(this=exp.and_(*tests), true=result)])
        text = render(result)
        self.argument_texts.setdefault(text, result)
        return f"a{list(self.argument_texts).index(text)}"


def _adds_up(node: exp.Expr) -> bool:
    """Whether increments maintain a call."""
    call = node.this if isinstance(node, exp.Filter) else node
    return isinstance(call, exp.AggFunc) and not isinstance(call.this, exp.Distinct)


def is_key(lifted: exp.Expr) -> bool:
    """Whether a lifted expression is nothing but a key."""
    return isinstance(lifted, exp.Column) and lifted.table == GROUP and lifted.name.startswith("k")


def _one() -> exp.Expr:
    return exp.Literal.number(1)
