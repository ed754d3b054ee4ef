"""Queries read as sums of products: what stands in FROM, the joins between it, and the conditions on it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from sqlglot import exp

from pytrickle.catalog.definition import Source, View
from pytrickle.errors import NotDifferentiable
from pytrickle.plan.algebra.relation import Function, Scan
from pytrickle.plan.query import lateral as rowwise
from pytrickle.plan.query import outer_join as outer_joins
from pytrickle.plan.query.block import (
    Block,
    own_column,
    under_names,
)
from pytrickle.plan.query.context import Context, Cte, Ctes
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.query.fold import MAX_BLOCKS, fitting, folded
from pytrickle.plan.query.join_alias import is_joined, under_join_alias
from pytrickle.plan.query.on_subquery import by_side, without_values
from pytrickle.plan.query.recursion import Recursion
from pytrickle.plan.query.scalar_subquery import lateral_aggregate
from pytrickle.plan.query.scope import reads_around
from pytrickle.plan.query.sorted_input import order_as_input
from pytrickle.plan.query.subquery import filtered, hoist, take_out
from pytrickle.plan.query.values_rows import as_union
from pytrickle.plan.query.whole_row import under_alias, with_rows
from pytrickle.plan.query.written_join import WrittenJoin
from pytrickle.plan.sql.dialect import parse_query

Blocks = tuple[Block, ...]
# Writes the tables to the left of a join, if it comes to that.
Written = Callable[[], WrittenJoin | None]


@dataclass(frozen=True, slots=True)
class FromClause:
    """Reads FROM clauses; `known` are the blocks of named queries that are read once."""

    recursion: Recursion
    known: dict[object, Blocks]

    @property
    def facts(self) -> Facts:
        """What is known of the relations so far."""
        return self.recursion.facts

    def blocks(self, select: exp.Select, context: Context) -> Blocks:
        """Return the blocks of a SELECT's FROM and WHERE."""
        source = select.args.get("from_")
        result: Blocks = (Block((), (), {}),)
        if source:
            result = self._item(source.this, context)
            result = self._in_turn(source.this, result, list(_joins(select)), context)
        where = select.args.get("where")
        condition = where.this if where else None
        kept = tuple(kept for block in result for kept in filtered(self.recursion, block, condition, context))
        if len(kept) > MAX_BLOCKS and len(result) > 1:
            kept = tuple(
                one
                for whole in folded(self.facts, result)
                for one in filtered(self.recursion, whole, condition, context)
            )
        return fitting(self.facts, kept or (result[0].without_rows(),))

    def _in_turn(self, first: exp.Expr, left: Blocks, joins: list[exp.Join], context: Context) -> Blocks:
        """Join what stands in FROM one after the other; the `first` item, or what it begins with, was read."""
        for number, join in enumerate(joins):
            left = self._join(left, join, context, partial(self._written, first, joins[:number], context))
        return left

    def _written(self, first: exp.Expr, joins: list[exp.Join], context: Context) -> WrittenJoin | None:
        """Write the join of what an item begins with and others, if all of them are tables, or queries of tables."""
        result = self._written_item(first, context)
        for join in joins:
            further = list(_joins(join.this))
            right = self._written(join.this, further, context) if result else None
            result = result.joined(right, join) if result and right else None
        return result

    def _written_item(self, item: exp.Expr, context: Context) -> WrittenJoin | None:
        inner = item.this
        if isinstance(item, exp.Subquery) and not item.alias and isinstance(inner, exp.Table | exp.Subquery):
            return self._written(inner, list(_joins(inner)), context)
        if isinstance(item, exp.Table) and isinstance(inner, exp.Identifier) and not item.args.get("sample"):
            blocks = self._table(item, context.ctes)
            return WrittenJoin.of(blocks) or WrittenJoin.of_query(item, blocks, context.ctes, self.facts)
        if isinstance(item, exp.Subquery) and isinstance(inner, exp.Query) and not _reads_around(item, context):
            blocks = self._subquery(item, context)
            return WrittenJoin.of_query(item, blocks, context.ctes, self.facts)
        return None

    def _join(self, left: Blocks, join: exp.Join, context: Context, written: Written) -> Blocks:
        kind = (join.kind or "INNER").upper()
        if kind not in {"INNER", "CROSS", "OUTER"} or join.args.get("method"):
            raise NotDifferentiable(f"{join.method or kind} JOIN")
        result = self._joined(left, join, context)
        # Each outer join has three blocks for one: what matches, all of one side, and minus what matches.
        folds = len(result) > MAX_BLOCKS and len(left) > 1
        return fitting(
            self.facts, self._joined(folded(self.facts, left, written()), join, context) if folds else result
        )

    def _joined(self, left: Blocks, join: exp.Join, context: Context) -> Blocks:
        lateral = lateral_aggregate(self.recursion, left, join, context)
        if lateral is not None:
            return lateral
        lateral_item = _may_be_lateral(join.this) or _reads_around(join.this, context)
        if (join.side or "").upper() not in {"RIGHT", "FULL"} and lateral_item:
            # Each block has expressions of its own for the names that a lateral item refers to.
            return tuple(found for block in left for found in self._beside(block, join, context))
        right = self._item(join.this, Context(context.ctes, {}))
        return without_values(
            tuple(
                found
                for one, other, clause in by_side(self.recursion, left, right, join, context)
                for found in outer_joins.join(self.recursion, one, fitting(self.facts, other), clause, context)
            )
        )

    def _beside(self, block: Block, join: exp.Join, context: Context) -> Blocks:
        item, found = _without_subqueries(join.this)
        bare = join.copy()
        bare.set("this", item)
        return without_values(
            tuple(
                each
                for left in hoist(self.recursion, (block,), found, context)
                for right in [self._item(item, context.within(left))]
                for each in outer_joins.join(self.recursion, (left,), right, bare, context)
            )
        )

    def _item(self, item: exp.Expr, context: Context) -> Blocks:
        if item.args.get("sample") or item.args.get("pivots") or item.args.get("laterals"):
            raise NotDifferentiable("TABLESAMPLE in FROM")
        return self._in_turn(item, self._source(item, context), list(_joins(item)), context)

    def _source(self, item: exp.Expr, context: Context) -> Blocks:
        match item:
            case exp.Lateral(this=exp.Subquery() as query):
                alone = rowwise.lateral(self.facts, item, context.outer)
                return (
                    (alone,)
                    if alone
                    else under_alias(self.recursion.derived(query, context), item, self.facts.definition)
                )
            case exp.Values() if item.find(exp.Query):
                return under_alias(
                    self.recursion.derived(as_union(item), Context(context.ctes, {})), item, self.facts.definition
                )
            case exp.Values():
                return (rowwise.function(self.facts, item, context.outer),)
            case exp.Subquery():
                return self._subquery(item, context)
            case exp.Table(this=exp.Identifier()):
                return self._table(item, context.ctes)
            case exp.Table() | exp.Lateral():
                return self._function(item, context)
            case _:
                raise NotDifferentiable(f"{item.key.upper()} in FROM")

    def _function(self, item: exp.Expr, context: Context) -> Blocks:
        """Read a function, beside the values of its arguments' subqueries, if these read nothing around them."""
        bare, found = _without_subqueries(item)
        if any(reads_around(each, context.outer) for each in found):
            raise NotDifferentiable("a subquery in this place")
        result: list[Block] = []
        for values in hoist(self.recursion, (Block((), (), {}),), found, context):
            block = rowwise.function(self.facts, bare, {**context.outer, **values.names})
            result.append(values.joined(block).named(block.names))
        return tuple(result)

    def _subquery(self, item: exp.Subquery, context: Context) -> Blocks:
        """Read a query, or joins in parentheses, which may have an alias of their own."""
        inner, alone = item.this, Context(context.ctes, {})
        if isinstance(inner, exp.Table | exp.Subquery | exp.Lateral) and not item.alias:
            return self._item(inner, context)
        if is_joined(inner):
            return under_join_alias(self.facts.definition, self._item(inner, alone), item)
        # Without LATERAL it sees the rows around the SELECT, but not what stands beside it.
        seen = context if _reads_around(item, context) else alone
        return under_alias(self.recursion.derived(inner, seen), item, self.facts.definition)

    def _table(self, table: exp.Table, ctes: Ctes) -> Blocks:
        if not table.db and table.name in ctes:
            cte = ctes[table.name]
            if cte.around:
                shared = self.recursion.derived(cte.entry.this, replace(cte.around, ctes=cte.scope))
            else:
                shared = self._shared(cte, cte.entry.this, cte.scope)
            return under_alias(under_names(shared, cte.entry.alias_column_names), table, self.facts.definition)
        for view in self.facts.definition.views:
            if (view.schema, view.name) == (table.db, table.name):
                aggregates = self.facts.definition.aggregates
                query = order_as_input(parse_query(view.text, aggregates), aggregates)
                return under_alias(self._shared(view, query, {}), table, self.facts.definition, view)
        for source in self.facts.definition.sources:
            # ONLY says nothing here: of a table with children it is not captured, and the database refuses a delta.
            if (source.schema, source.name) == (table.db, table.name):
                return (self._scan(table, source),)
        raise NotDifferentiable(f"{table.sql()} in FROM is not a table")

    def _shared(self, owner: Cte | View, query: exp.Expr, ctes: Ctes) -> Blocks:
        """Read what has a name once: further references share its operations, under aliases of their own."""
        known = self.known.get(owner)
        if known is None:
            known = self.known[owner] = self.recursion.derived(query, Context(ctes, {}))
        if any(isinstance(leaf, Function) for block in known for leaf in block.leaves):
            return self.recursion.derived(query, Context(ctes, {}))
        return tuple(block.realiased({leaf.alias: self.facts.alias() for leaf in block.leaves}) for block in known)

    def _scan(self, table: exp.Table, source: Source) -> Block:
        alias, own = self.facts.alias(), [column.name for column in source.columns]
        aliases = dict(zip(own, table.alias_column_names, strict=False))
        columns: Mapping[str, exp.Expr] = {aliases.get(name, name): own_column(alias, name) for name in source.used}
        block = Block((Scan(alias, source.relid, source.used),), (), {table.alias_or_name: columns})
        return with_rows(block, table.alias_or_name, self.facts.definition, source)


def _joins(node: exp.Expr) -> Iterator[exp.Join]:
    """List the joins of a SELECT or of an item, those that a LATERAL item begins without their parentheses.

    PostgreSQL prints `a, f(a.x) g LEFT JOIN b ON g.y = b.y` as `a, (LATERAL f(a.x) g LEFT JOIN b ON g.y = b.y)`. What
    is joined says nothing of `a`, so each row of `a` may come in before it. But a name of USING may be in `a`, too.
    """
    for join in node.args.get("joins") or ():
        first, further = _in_line(join.this)
        from_right = any(each.side in {"RIGHT", "FULL"} for each in further)
        if from_right and isinstance(first, exp.Lateral) and not isinstance(first.this, exp.Subquery):
            raise NotDifferentiable("RIGHT or FULL JOIN of a function of the row around it")
        by_name = any(each.args.get("using") for each in further)
        if not isinstance(first, exp.Lateral) or not further or from_right or by_name or _is_tied(join):
            yield join
            continue
        alone = first.copy()
        alone.set("joins", None)
        yield exp.Join(this=alone, kind="CROSS")
        yield from further


def _without_subqueries(item: exp.Expr) -> tuple[exp.Expr, list[exp.Expr]]:
    """Take the subqueries out of the arguments of a function in FROM."""
    found: list[exp.Expr] = []
    if isinstance(item, exp.Subquery | exp.Values) or isinstance(item.this, exp.Identifier | exp.Subquery):
        return item, found
    bare = item.copy()
    bare.set("this", take_out(item.this, found))
    return bare, found


def _reads_around(item: exp.Expr, context: Context) -> bool:
    """Whether a named subquery in FROM refers to the rows around it."""
    return isinstance(item, exp.Subquery) and bool(item.alias) and reads_around(item.this, context.outer)


def _is_tied(join: exp.Join) -> bool:
    """Whether it is more than a product."""
    return bool(join.side or join.args.get("on") or join.args.get("using"))


def _in_line(item: exp.Expr) -> tuple[exp.Expr, list[exp.Join]]:
    """Return what joins in parentheses begin with, and these joins, from the innermost parentheses on."""
    inner = item.this if isinstance(item, exp.Subquery) and not item.alias else None
    first, joins = _in_line(inner) if isinstance(inner, exp.Lateral | exp.Subquery) else (item, [])
    return first, [*joins, *(item.args.get("joins") or ())]


def _may_be_lateral(item: exp.Expr) -> bool:
    """Whether a FROM item may refer to what stands to its left: all but tables, named subqueries, joins of these."""
    if any(_may_be_lateral(join.this) for join in item.args.get("joins") or ()):
        return True
    if isinstance(item, exp.Subquery):
        return not item.alias and (isinstance(item.this, exp.Query) or _may_be_lateral(item.this))
    return not (isinstance(item, exp.Table) and isinstance(item.this, exp.Identifier))
