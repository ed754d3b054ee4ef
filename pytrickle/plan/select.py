"""One SELECT below or at the top of a query: FROM and WHERE, groups, windows, output columns and DISTINCT, in turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.aggregation import group, window
from pytrickle.plan.block import Block, project, sum_of
from pytrickle.plan.grouping_sets import grouping_sets
from pytrickle.plan.lift import GroupLift, WindowLift, is_call
from pytrickle.plan.nulls import nulls_of
from pytrickle.plan.operation import columns_of, distinct
from pytrickle.plan.rowwise import calls_set, unrolled
from pytrickle.plan.scope import SETS, resolve
from pytrickle.plan.selection import distinct_on
from pytrickle.plan.sublinks import Context, expanded, filtered, hoisted, taken

if TYPE_CHECKING:
    from pytrickle.plan.reader import Reader

Blocks = tuple[Block, ...]
Items = list[tuple[str, exp.Expr]]


@dataclass(frozen=True, slots=True)
class Selection:
    """Reads one SELECT step by step; items are (output column, expression over the names of the step before)."""

    reader: Reader
    select: exp.Select
    context: Context

    def blocks(self) -> Blocks:
        """Return the SELECT's blocks; their names are {'': output column -> expression}."""
        blocks = self.reader.blocks(self.select, self.context)
        select, found = self._without_inner_subqueries()
        blocks = hoisted(self.reader, blocks, found, self.context)
        select, blocks = Selection(self.reader, select, self.context)._without_set_keys(blocks)
        return Selection(self.reader, select, self.context)._over(blocks)

    def _without_set_keys(self, blocks: Blocks) -> tuple[exp.Select, Blocks]:
        """Compute what GROUP BY unrolls before the grouping, as names of SETS."""
        clause = self.select.args.get("group")
        found = [key for keys in grouping_sets(self.select) if clause for key in keys if calls_set(self.reader, key)]
        if not found:
            return self.select, blocks
        shown = [node for item in self.select.selects for node in item.walk() if node in found]
        if len(set(shown)) < len(shown):
            # Where its argument holds a subquery, PostgreSQL unrolls each of them by itself.
            raise NotDifferentiable("a set-returning function of GROUP BY that is shown twice")
        unique = list(dict.fromkeys(found))
        select = self.select.copy()
        for node in [*select.selects, *(each for each in map(select.args.get, ("group", "having")) if each)]:
            node.replace(node.copy().transform(lambda each: _set_column(each, unique)))
        result: list[Block] = []
        for block in blocks:
            columns = [resolve(key, block.names, self.context.outer) for key in unique]
            block, columns = unrolled(self.reader, block, columns)
            result.append(block.named({**block.names, SETS: {f"s{i}": each for i, each in enumerate(columns)}}))
        return select, tuple(result)

    def _over(self, blocks: Blocks) -> Blocks:
        items = [(item.alias_or_name, item.unalias()) for item in self.select.selects]
        if len({name for name, _ in items}) != len(items):
            items = [(f"{name}\x00{i}", item) for i, (name, item) in enumerate(items)]
        if is_grouped(self.reader, self.select):
            return tuple(done for keys in grouping_sets(self.select) for done in self._grouped(blocks, items, keys))
        return self._finished(blocks, items)

    def _without_inner_subqueries(self) -> tuple[exp.Select, list[exp.Expr]]:
        """Take out the subqueries that must be computed before groups, windows or DISTINCT ON."""
        found: list[exp.Expr] = []
        select = self.select.copy()
        grouped = is_grouped(self.reader, select)
        clauses = [select.args.get(clause) for clause in ("group", "having", "distinct", "order")]
        for node in [*select.selects, *(clause for clause in clauses if clause is not None)]:
            if grouped and not isinstance(node, exp.Group):
                node.replace(self._calls_taken(node, found))
            elif grouped or has_windows(select) or is_distinct_on(select):
                node.replace(taken(node, found))
        return select, found

    def _calls_taken(self, node: exp.Expr, found: list[exp.Expr]) -> exp.Expr:
        def step(each: exp.Expr) -> exp.Expr:
            if isinstance(each, exp.Query):
                return each.copy()
            return taken(each, found) if is_call(each, self.reader.definition.aggregates) else each

        return node.copy().transform(step)

    def _grouped(self, blocks: Blocks, items: Items, keys: tuple[exp.Expr, ...]) -> Blocks:
        others = [key for each in grouping_sets(self.select) for key in each if key not in keys]
        absent = dict(zip(others, self._nulls(blocks, others), strict=True))
        simple = self.select.args.get("group") is not None and not absent and bool(keys)
        lift = GroupLift(list(keys), blocks[0].names, self.reader.definition.aggregates, simple, absent)
        lifted = [(name, lift.lift(item)) for name, item in items]
        having = self.select.args.get("having")
        condition = lift.lift(having.this) if having else None
        block, loose = group(self.reader, lift, blocks, self.context.outer, self.context.asking)
        if not keys and loose.pairs:
            raise NotDifferentiable("an aggregate without GROUP BY that is tied to the rows around it")
        kept = filtered(self.reader, block, condition, self.context)
        return self._finished(kept or (block.without_rows(),), lifted)

    def _nulls(self, blocks: Blocks, keys: list[exp.Expr]) -> tuple[exp.Expr, ...]:
        rows = [project(b, tuple(resolve(key, b.names, self.context.outer) for key in keys)) for b in blocks]
        return nulls_of(self.reader, sum_of(tuple(rows))) if keys else ()

    def _finished(self, blocks: Blocks, items: Items) -> Blocks:
        """Compute windows, output columns and DISTINCT over blocks."""
        if any(isinstance(node, exp.Window) for _, item in items for node in own_nodes(item)):
            blocks, items = self._windowed(blocks, items)
        clause = self.select.args.get("distinct")
        if is_distinct_on(self.select):
            if any(calls_set(self.reader, item) for _, item in items):
                raise NotDifferentiable("DISTINCT ON over a set-returning function in the select list")
            return (distinct_on(self.reader, blocks, items, self.select, self.context.outer),)
        names = [name for name, _ in items]
        rows = tuple(
            (unrolled_case, tuple(columns))
            for block in blocks
            for case, values in expanded(self.reader, block, [item for _, item in items], self.context)
            for unrolled_case, columns in [unrolled(self.reader, case, values)]
        )
        if clause is None:
            return tuple(block.named({"": dict(zip(names, columns, strict=True))}) for block, columns in rows)
        leaf = distinct(self.reader, rows)
        return (Block((leaf,), (), {"": dict(zip(names, columns_of(leaf).values(), strict=True))}),)

    def _windowed(self, blocks: Blocks, items: Items) -> tuple[Blocks, Items]:
        named = {each.name: each for each in self.select.args.get("windows") or ()}
        lift = WindowLift(named)
        found: list[exp.Expr] = []
        items = [(name, taken(item, found)) for name, item in items]
        blocks = hoisted(self.reader, blocks, found, self.context)
        lifted = [(name, lift.lift(item)) for name, item in items]
        return (window(self.reader, lift, blocks, self.context.outer),), lifted


def own_nodes(item: exp.Expr) -> list[exp.Expr]:
    """List the nodes of an expression without those of its subqueries."""
    return list(item.walk(prune=lambda node: isinstance(node, exp.Query)))


def has_calls(reader: Reader, select: exp.Select) -> bool:
    """Whether the select list calls an aggregate that is no window function."""
    aggregates = reader.definition.aggregates
    return any(
        is_call(node, aggregates) and not isinstance(node.parent, exp.Window)
        and not (isinstance(node.parent, exp.Filter) and isinstance(node.parent.parent, exp.Window))
        for item in select.selects
        for node in own_nodes(item)
    )  # fmt: skip


def is_grouped(reader: Reader, select: exp.Select) -> bool:
    """Whether a SELECT groups: GROUP BY, HAVING or an aggregate call in its own list."""
    return bool(select.args.get("group") or select.args.get("having")) or has_calls(reader, select)


def has_windows(select: exp.Select) -> bool:
    """Whether the select list has window functions."""
    return any(isinstance(node, exp.Window) for item in select.selects for node in own_nodes(item))


def is_distinct_on(select: exp.Select) -> bool:
    """Whether a SELECT is DISTINCT ON something."""
    clause = select.args.get("distinct")
    return clause is not None and bool(clause.args.get("on"))


def unrolls(reader: Reader, select: exp.Select) -> bool:
    """Whether the select list calls set-returning functions, so that a row may become several or none."""
    return any(calls_set(reader, item) for item in select.selects)


def refuse_limited_sets(reader: Reader, query: exp.Expr) -> None:
    """PostgreSQL leaves open which rows of a function LIMIT keeps, unless ORDER BY says so, but keeps the first."""
    if isinstance(query, exp.Select) and unrolls(reader, query):
        raise NotDifferentiable("LIMIT over a set-returning function in the select list")


def _set_column(node: exp.Expr, found: list[exp.Expr]) -> exp.Expr:
    bare = node.unnest()
    return exp.column(f"s{found.index(bare)}", table=SETS, quoted=True) if bare in found else node


def is_plain_aggregate(reader: Reader, select: exp.Select) -> bool:
    """Whether a SELECT has aggregates and nothing else above FROM and WHERE, so that it always has one row."""
    clauses = ("group", "having", "distinct", "limit", "offset", "windows")
    sublinks = any(isinstance(node, exp.Query) for item in select.selects for node in item.walk())
    return (
        not any(select.args.get(c) for c in clauses)
        and has_calls(reader, select)
        and not has_windows(select)
        and not unrolls(reader, select)
        and not sublinks
    )
