"""One SELECT below or at the top of a query: FROM and WHERE, groups, windows, output columns and DISTINCT, in turn."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp
from sqlglot.helper import ensure_list

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.algebra.constructs.distinct import Distinct
from pytrickle.plan.query.block import Block
from pytrickle.plan.query.context import Context
from pytrickle.plan.query.decorrelate import separate
from pytrickle.plan.query.derive import distinct
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.query.group_keys import GroupKeys
from pytrickle.plan.query.grouping import Grouping, WrittenCalls
from pytrickle.plan.query.grouping_sets import grouping_sets, is_simple
from pytrickle.plan.query.lateral import calls_set, unrolled
from pytrickle.plan.query.nested_grouping import group_table, grouped
from pytrickle.plan.query.operation import Rows, columns_of, refuse_correlation
from pytrickle.plan.query.recursion import Recursion
from pytrickle.plan.query.rows_of_groups import RowsOfGroups
from pytrickle.plan.query.scope import SETS, resolve
from pytrickle.plan.query.select_clauses import has_windows, is_distinct_on, is_grouped, own_nodes, unrolls, unseen_sets
from pytrickle.plan.query.set_operation import distinct_on
from pytrickle.plan.query.subquery import (
    expanded,
    filtered,
    hoist,
    refuse_calls_of_rows_around,
    take_out,
    take_out_of_calls,
)
from pytrickle.plan.query.windows import AboveWindows, window

Blocks = tuple[Block, ...]
Items = list[tuple[str, exp.Expr]]
# What only ORDER BY unrolls: it gives rows, but no output column.
UNSEEN = "\x00unseen"


@dataclass(frozen=True, slots=True)
class Selection:
    """Reads one SELECT step by step; items are (output column, expression over the names of the step before)."""

    recursion: Recursion
    select: exp.Select
    context: Context

    @property
    def facts(self) -> Facts:
        """What is known of the relations so far."""
        return self.recursion.facts

    def blocks(self) -> Blocks:
        """Return the SELECT's blocks; their names are {'': output column -> expression}."""
        blocks, aggregates = self.recursion.blocks(self.select, self.context), self.facts.definition.aggregates
        refuse_calls_of_rows_around(self.select, aggregates, blocks[0].names, self.context.outer)
        select, found = self._without_inner_subqueries()
        blocks = hoist(self.recursion, blocks, found, self.context)
        select, blocks = Selection(self.recursion, select, self.context)._without_set_keys(blocks)
        return Selection(self.recursion, select, self.context)._over(blocks)

    def _without_set_keys(self, blocks: Blocks) -> tuple[exp.Select, Blocks]:
        """Compute what GROUP BY unrolls before the grouping, as names of SETS."""
        clause = self.select.args.get("group")
        found = [
            key
            for keys in grouping_sets(self.select)
            if clause
            for key in keys
            if calls_set(key, self.facts.definition)
        ]
        if not found:
            return self.select, blocks
        shown = [node for item in self.select.selects for node in item.walk() if node in found]
        if len(set(shown)) < len(shown):
            # Where its argument holds a subquery, PostgreSQL unrolls each of them by itself.
            raise NotDifferentiable("a set-returning function of GROUP BY that is shown twice")
        unique = list(dict.fromkeys(found))
        select = self.select.copy()
        clauses = map(select.args.get, ("group", "having", "order", "distinct", "windows"))
        for node in [*select.selects, *(node for each in clauses if each for node in ensure_list(each))]:
            node.replace(node.copy().transform(lambda each: _set_column(each, unique)))
        result: list[Block] = []
        for block in blocks:
            columns = [resolve(key, block.names, self.context.outer) for key in unique]
            block, columns = unrolled(self.facts, block, columns)
            result.append(block.named({**block.names, SETS: {f"s{i}": each for i, each in enumerate(columns)}}))
        return select, tuple(result)

    def _over(self, blocks: Blocks) -> Blocks:
        items = [(item.alias_or_name, item.unalias()) for item in self.select.selects]
        if len({name for name, _ in items}) != len(items):
            items = [(f"{name}\x00{i}", item) for i, (name, item) in enumerate(items)]
        items += [(f"{UNSEEN}{i}", item) for i, item in enumerate(unseen_sets(self.select, self.facts.definition))]
        if is_grouped(self.select, self.facts.definition):
            return self._grouped(blocks, items)
        return self._finished(blocks, items)

    def _without_inner_subqueries(self) -> tuple[exp.Select, list[exp.Expr]]:
        """Take out the subqueries that must be computed before groups, windows or DISTINCT ON."""
        found: list[exp.Expr] = []
        select = self.select.copy()
        grouped = is_grouped(select, self.facts.definition)
        keys = [key.unnest() for each in grouping_sets(select) for key in each if key.find(exp.Query)]
        clauses = [select.args.get(clause) for clause in ("group", "having", "distinct", "order")]
        for node in [*select.selects, *(clause for clause in clauses if clause is not None)]:
            if grouped and not isinstance(node, exp.Group):
                node.replace(self._without_subqueries_below_groups(node, keys, found))
            elif grouped or has_windows(select) or is_distinct_on(select):
                node.replace(take_out(node, found))
        return select, found

    def _without_subqueries_below_groups(self, node: exp.Expr, keys: list[exp.Expr], found: list[exp.Expr]) -> exp.Expr:
        """Take out those of aggregate calls, and of keys, which are told by what then stands for them."""

        def step(each: exp.Expr) -> exp.Expr:
            if each.unnest() in keys:
                return take_out(each, found)
            return each.copy() if isinstance(each, exp.Query) else each

        return take_out_of_calls(node.copy().transform(step), found, self.facts.definition.aggregates)

    def _grouped(self, blocks: Blocks, items: Items) -> Blocks:
        """Group by each set; what stands above the groups is computed over those of all sets together."""
        sets = grouping_sets(self.select)
        keys = list(dict.fromkeys(key for each in sets for key in each))
        if len(sets) > 1 and not all(key.find(exp.Column) for key in keys):
            # In sets without it, PostgreSQL leaves the constant as it is in some places.
            raise NotDifferentiable("a constant among the keys of several grouping sets")
        refuse_merged_keys(self.select, keys)
        alike = len(set(map(frozenset, sets))) == 1
        rows = RowsOfGroups.of(self.facts, self.select, keys, blocks)
        group_keys = GroupKeys(group_table(self.context.outer), keys, alike and bool(keys), rows)
        lift = Grouping(group_keys, WrittenCalls(), self.facts.definition.aggregates, blocks[0].names)
        select = self.select.copy()
        for clause in ("distinct", "order", "windows"):
            parts = select.args.get(clause)
            select.set(clause, [lift.lift(each) for each in parts] if isinstance(parts, list) else lifted(lift, parts))
        items = [(name, lift.lift(item)) for name, item in items]
        having = self.select.args.get("having")
        condition = lifted(lift, having.this if having else None)
        groups = grouped(self.facts, lift, sets, blocks, self.context)
        found = tuple(kept for each in groups for kept in filtered(self.recursion, each, condition, self.context))
        return Selection(self.recursion, select, self.context)._finished(found or (groups[0].without_rows(),), items)

    def _finished(self, blocks: Blocks, items: Items) -> Blocks:
        """Compute windows, output columns and DISTINCT over blocks."""
        windows = [node for _, item in items for node in own_nodes(item) if isinstance(node, exp.Window)]
        if any(calls_set(each, self.facts.definition) for each in (*windows, *(self.select.args.get("windows") or ()))):
            raise NotDifferentiable("a window over a set-returning function")
        if windows:
            select, blocks, items = self._windowed(blocks, items)
            return Selection(self.recursion, select, self.context)._shown(blocks, items)
        return self._shown(blocks, items)

    def _shown(self, blocks: Blocks, items: Items) -> Blocks:
        """Compute output columns and DISTINCT."""
        clause = self.select.args.get("distinct")
        if is_distinct_on(self.select):
            if unrolls(self.select, self.facts.definition):
                raise NotDifferentiable("DISTINCT ON over a set-returning function in the select list")
            return (distinct_on(self.facts, blocks, items, self.select, self.context),)
        names = [name for name, _ in items]
        rows = tuple(
            (unrolled_case, tuple(columns))
            for block in blocks
            for case, values in expanded(self.recursion, block, [item for _, item in items], self.context)
            for unrolled_case, columns in [unrolled(self.facts, case, values)]
        )
        if clause is None:
            shown = sum(not name.startswith(UNSEEN) for name in names)
            return tuple(block.named({"": dict(zip(names[:shown], columns, strict=False))}) for block, columns in rows)
        return (self._distinct(names, rows),)

    def _distinct(self, names: list[str], rows: Rows) -> Block:
        """Keep the distinct rows of some columns; what ties them to the rows around becomes further keys."""
        found = separate(self.facts, self.context.block, rows, "DISTINCT")
        keyed = tuple((each.block, (*each.shown, *each.inner)) for each in found)
        refuse_correlation(keyed, "DISTINCT")
        leaf = distinct(self.facts, keyed, Distinct())
        shown = dict(zip(names, columns_of(leaf).values(), strict=False))
        return Block((leaf,), found[0].ties(leaf.alias, len(names)), {"": shown})

    def _windowed(self, blocks: Blocks, items: Items) -> tuple[exp.Select, Blocks, Items]:
        named = {each.name: each for each in self.select.args.get("windows") or ()}
        lift = AboveWindows(named)
        found: list[exp.Expr] = []
        items = [(name, take_out(item, found)) for name, item in items]
        blocks = hoist(self.recursion, blocks, found, self.context)
        above = [(name, lift.lift(item)) for name, item in items]
        select = self.select.copy()
        if is_distinct_on(select):
            for clause in ("distinct", "order"):
                select.set(clause, lifted(lift, select.args.get(clause)))
        return select, (window(self.facts, lift, blocks, self.context),), above


def lifted(lift: Grouping[WrittenCalls] | AboveWindows, node: exp.Expr | None) -> exp.Expr | None:
    """Lift an expression above a grouping or windows, if there is one."""
    return lift.lift(node) if node is not None else None


def refuse_merged_keys(select: exp.Select, keys: list[exp.Expr]) -> None:
    """A view's text does not say which of two equal output columns a key was written for; sets may tell them apart."""
    written = list(select.args["group"].walk()) if select.args.get("group") else []
    shown = [item.unalias().unnest() for item in select.selects]
    if not is_simple(select) and any(shown.count(key) > 1 and written.count(key) > 1 for key in keys):
        raise NotDifferentiable("several grouping sets by an expression that is shown twice")


def _set_column(node: exp.Expr, found: list[exp.Expr]) -> exp.Expr:
    bare = node.unnest()
    return exp.column(f"s{found.index(bare)}", table=SETS, quoted=True) if bare in found else node
