"""Window functions below other parts of a query, and the expressions above them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.algebra.construct import ROW
from pytrickle.plan.algebra.constructs.window import COPY, Window
from pytrickle.plan.query.block import Block, own_column
from pytrickle.plan.query.calls import refuse_rounding_calls
from pytrickle.plan.query.context import Context
from pytrickle.plan.query.decorrelate import separate
from pytrickle.plan.query.derive import derive
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.query.grouping import with_children
from pytrickle.plan.query.guard import any_fails
from pytrickle.plan.query.inner_order import refuse_sorted_input, takes_rows_as_they_come
from pytrickle.plan.query.operation import Arguments, Rows, columns_of, refuse_correlation, text
from pytrickle.plan.query.representative_calls import mark_representatives
from pytrickle.plan.query.scope import Names, resolve
from pytrickle.plan.query.tie_breaking import settle_window, sort_of, tells_peers_apart

WINDOW = "\x00window"
Blocks = tuple[Block, ...]


@dataclass(slots=True)
class AboveWindows:
    """Collects the window functions of one SELECT; above them they stand as w<i>, visible columns as a<i>."""

    named: dict[str, exp.Expr]
    arguments: Arguments = field(default_factory=Arguments)
    windows: dict[str, exp.Window] = field(default_factory=dict)

    def lift(self, node: exp.Expr) -> exp.Expr:
        """Rewrite an expression over arguments and windows."""
        if isinstance(node, exp.Query):
            raise NotDifferentiable("a subquery beside a window function")
        if isinstance(node, exp.Window):
            written = text(self.arguments.take(self._spelled_out(node)))
            self.windows.setdefault(written, self._spelled_out(node))
            return own_column(WINDOW, f"w{list(self.windows).index(written)}")
        if isinstance(node, exp.Column):
            return own_column(WINDOW, self.arguments.name(node))
        return with_children(node, self.lift)

    def common_keys(self) -> tuple[exp.Expr, ...]:
        """Return the expressions by which all windows are partitioned."""
        lists = [window.args.get("partition_by") or [] for window in self.windows.values()]
        return tuple(key for key in lists[0] if all(key in others for others in lists[1:]))

    def may_fail(self, facts: Facts, blocks: Blocks, outer: Names) -> bool:
        """Whether something in the windows may fail over rows of some blocks."""
        parts = [part for window in self.windows.values() for part in window.iter_expressions()]
        return any_fails(facts, tuple((b, tuple(resolve(part, b.names, outer) for part in parts)) for b in blocks))

    def _spelled_out(self, window: exp.Window) -> exp.Window:
        if any(isinstance(inner, exp.Query) for inner in window.walk()):
            raise NotDifferentiable("a subquery inside a window function")
        result = exp.Window(this=window.this.copy(), over="OVER")
        parts = self._parts(window)
        if "spec" in parts and parts["spec"].find(exp.Column):
            raise NotDifferentiable("a window frame that a subquery bounds")
        for part, value in parts.items():
            result.set(part, [each.copy() for each in value] if isinstance(value, list) else value.copy())
        return result

    def _parts(self, window: exp.Expr) -> dict[str, Any]:
        """Return what a window says itself and, for the rest, what the named window says that it builds on."""
        own = {part: value for part in ("partition_by", "order", "spec") if (value := window.args.get(part))}
        return {**self._parts(self.named[window.alias]), **own} if window.alias else own


def window(facts: Facts, lift: AboveWindows, blocks: Blocks, context: Context) -> Block:
    """Add window functions to the rows of blocks; names are WINDOW's a<i> and w<i>.

    What ties the rows to those around them partitions them too.
    """
    parts, outer = lift.common_keys(), context.outer
    ordering = tuple(text(each) for each in _orders(lift))
    read: Rows = tuple(
        (block, (*(resolve(key, block.names, outer) for key in parts), *lift.arguments.resolved(block.names, outer)))
        for block in blocks
    )
    found = separate(facts, context.block, read, "a window function", lift.may_fail(facts, blocks, outer))
    first = len(parts)
    keys = tuple(f"k{i}" for i in range(first + len(found[0].pairs)))
    ties, arguments = keys[first:], (*keys, *lift.arguments.names)
    rows: Rows = tuple((each.block, (*each.shown[:first], *each.inner, *each.shown[first:])) for each in found)
    refuse_correlation(rows, "a window function")
    if any(map(takes_rows_as_they_come, lift.windows.values())):
        refuse_sorted_input(facts.definition, "a window without ORDER BY")
    sorted_once = len(set(map(sort_of, lift.windows.values()))) == 1
    # Which of several equal rows is the first must be the same in all windows.
    numbers_copies = len({sort_of(each) for each in lift.windows.values() if tells_peers_apart(each)}) > 1
    copy = COPY if numbers_copies else None
    taken = [_partitioned(lift.arguments.take(each), ties) for each in lift.windows.values()]
    settled = [settle_window(each, arguments, sorted_once, copy) for each in taken]
    entries = tuple(key.name for key in map(lift.arguments.take, parts) if isinstance(key, exp.Column))
    pushed_down = tuple(column.name for part in map(lift.arguments.take, parts) for column in part.find_all(exp.Column))
    construct = Window(tuple(map(text, settled)), ordering, entries, pushed_down, numbers_copies, ties)
    leaf = derive(facts, rows, arguments, keys, construct)
    leaf = mark_representatives(facts, leaf, rows, {f"w{i}": each for i, each in enumerate(taken)})
    functions_alone = [each.this for each in lift.windows.values()]
    types = facts.types_of(leaf.operation)[len(lift.arguments.names) :]
    refuse_rounding_calls(functions_alone, types[: len(functions_alone)])
    shown = {name: column for name, column in columns_of(leaf).items() if name not in ties}
    return Block((leaf,), found[0].ties(leaf.alias, first), {WINDOW: shown})


def _partitioned(window: exp.Expr, ties: tuple[str, ...]) -> exp.Expr:
    for tie in ties:
        window.append("partition_by", own_column(ROW, tie))
    return window


def _orders(lift: AboveWindows) -> list[exp.Expr]:
    """List what the first window orders by, over the operation's rows."""
    first = next(iter(lift.windows.values()))
    order = first.args.get("order")
    return [lift.arguments.take(each) for each in order.expressions] if order else []
