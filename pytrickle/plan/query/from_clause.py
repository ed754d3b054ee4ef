"""Queries read as sums of products: what stands in FROM, the joins between it, and the conditions on it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from sqlglot import exp

from pytrickle.catalog.definition import Definition, Source, SourceColumn, View
from pytrickle.errors import NotDifferentiable
from pytrickle.plan.algebra.delta import at
from pytrickle.plan.algebra.relation import Function, Operation, Relation, Scan, Version
from pytrickle.plan.postgres.compile import compile_rows, compile_state
from pytrickle.plan.query import lateral as rowwise
from pytrickle.plan.query import outer_join as outer_joins
from pytrickle.plan.query.block import (
    Block,
    cast_columns,
    is_image,
    own_column,
    project,
    under_names,
)
from pytrickle.plan.query.first_rows import CLAUSES
from pytrickle.plan.query.fold import MAX_BLOCKS, fitting, folded
from pytrickle.plan.query.guard import guarded
from pytrickle.plan.query.join_alias import is_joined, under_join_alias
from pytrickle.plan.query.limit import limited
from pytrickle.plan.query.null_padding import in_one_collation, union_of
from pytrickle.plan.query.operation import Rows
from pytrickle.plan.query.probe import Probe
from pytrickle.plan.query.scalar_subquery import lateral_aggregate
from pytrickle.plan.query.scope import Cte, Ctes, reads_around
from pytrickle.plan.query.select import Selection, is_grouped, is_plain_aggregate, unrolls
from pytrickle.plan.query.set_operation import set_operation
from pytrickle.plan.query.subquery import Context, filtered
from pytrickle.plan.query.values_rows import as_union
from pytrickle.plan.query.whole_row import under_alias, with_rows
from pytrickle.plan.sql.dialect import parse_query
from pytrickle.plan.sql.three_valued import is_null
from pytrickle.plan.sql.types import all_exact, is_collatable, is_moment, mixes_time_zones

Blocks = tuple[Block, ...]


@dataclass(slots=True)
class Reader:
    """Reads queries; hands out aliases of leaves that are unique within one defining query."""

    definition: Definition
    probe: Probe
    aliases: Iterator[int] = field(default_factory=lambda: count(1))
    known_types: dict[str, tuple[str, ...]] = field(default_factory=dict)
    known_collations: dict[str, tuple[str | None, ...]] = field(default_factory=dict)
    known_key_types: dict[tuple[str, str], tuple[str, str] | None] = field(default_factory=dict)
    known_texts: dict[str, bool] = field(default_factory=dict)
    known_blocks: dict[object, Blocks] = field(default_factory=dict)
    known_ctes: dict[object, Cte] = field(default_factory=dict)

    def alias(self) -> str:
        """Return a fresh alias."""
        return f"t{next(self.aliases)}"

    def blocks(self, select: exp.Select, context: Context) -> Blocks:
        """Return the blocks of a SELECT's FROM and WHERE."""
        source = select.args.get("from_")
        result: Blocks = (Block((), (), {}),)
        if source:
            result = self._item(source.this, context)
        for join in select.args.get("joins") or ():
            result = self._join(result, join, context)
        where = select.args.get("where")
        condition = where.this if where else None
        kept = tuple(kept for block in result for kept in filtered(self, block, condition, context))
        if len(kept) > MAX_BLOCKS and len(result) > 1:
            kept = tuple(one for whole in folded(self, result) for one in filtered(self, whole, condition, context))
        return fitting(self, kept or (result[0].without_rows(),))

    def rows(self, query: exp.Expr, context: Context) -> Blocks:
        """Return blocks that have a row exactly where a subquery has one; their names do not matter."""
        query, context = self.unwrapped(query, context)
        limit = query.args.get("limit")
        trivial = limit is None or (isinstance(limit.expression, exp.Literal) and limit.expression.name != "0")
        plain = isinstance(query, exp.Select) and not is_grouped(self, query) and not unrolls(self, query)
        if isinstance(query, exp.Select) and plain and trivial and not query.args.get("offset"):
            return self.blocks(query, context)
        return self.derived(query, context)

    def derived(self, query: exp.Expr, context: Context) -> Blocks:
        """Return the blocks of a subquery; their names are {'': output column -> expression}."""
        query, context = self.unwrapped(query, context)
        if query.args.get("locks"):
            raise NotDifferentiable("FOR UPDATE")
        if any(query.args.get(clause) for clause in CLAUSES):
            return fitting(self, limited(self, query, context))
        if isinstance(query, exp.Select):
            return fitting(self, Selection(self, query, context).blocks())
        if isinstance(query, exp.SetOperation):
            return self.union(query, context)
        if isinstance(query, exp.Values):
            if query.find(exp.Query):
                return self.derived(as_union(query), context)
            block = rowwise.function(self, query, context.outer)
            return (block.named({"": next(iter(block.names.values()))}),)
        raise NotDifferentiable(f"{query.key.upper()} in FROM")

    def union(self, query: exp.SetOperation, context: Context) -> Blocks:
        """Return the blocks of a set operation, each column cast to its type, so that an arm may stand alone."""
        arms = [self.derived(arm, context) for arm in (query.this, query.expression)]
        names = tuple(arms[0][0].names[""])
        if any(len(block.names[""]) != len(names) for arm in arms for block in arm):
            raise NotDifferentiable("a set operation whose arms name a column twice")
        arms = in_one_collation(self, arms)
        types = self.types_of(union_of(arms))
        rows = tuple(tuple((block, cast_columns(block, types)) for block in arm) for arm in arms)
        if isinstance(query, exp.Union) and not query.args.get("distinct"):
            return tuple(
                block.named({"": dict(zip(names, columns, strict=True))}) for arm in rows for block, columns in arm
            )
        return (set_operation(self, query, (rows[0], rows[1]), names),)

    def unwrapped(self, query: exp.Expr, context: Context) -> tuple[exp.Expr, Context]:
        """Strip parentheses and take in the WITH clause; later names see earlier ones."""
        while isinstance(query, exp.Subquery) and not query.alias:
            query = query.this
        clause = query.args.get("with_")
        if clause is None:
            return query, context
        if clause.args.get("recursive"):
            raise NotDifferentiable("WITH RECURSIVE")
        ctes = context.ctes
        for entry in clause.expressions:
            key = (entry, tuple((name, id(cte)) for name, cte in ctes.items()))
            found = Cte(entry, ctes, context if reads_around(entry, context.outer) else None)
            ctes = {**ctes, entry.alias: found if found.around else self.known_ctes.setdefault(key, found)}
        return query, replace(context, ctes=ctes)

    def guarded(self, rows: Rows) -> Rows:
        """Net the rows below expressions that may fail."""
        return guarded(self, rows)

    def is_plain_aggregate(self, query: exp.Select) -> bool:
        """Whether a SELECT has aggregates but neither GROUP BY nor HAVING, so that it always has one row."""
        return is_plain_aggregate(self, query)

    def is_grouped(self, query: exp.Select) -> bool:
        """Whether a SELECT groups: GROUP BY, HAVING or an aggregate call in its own list."""
        return is_grouped(self, query)

    def types_of(self, node: Relation | Operation) -> tuple[str, ...]:
        """Ask for the types of a relation's columns, or of an operation's."""
        text = self._text(node)
        if text not in self.known_types:
            self.known_types[text] = self.probe.column_types(text)
        found = self.known_types[text]
        return found[: len(node.columns)] if isinstance(node, Operation) else found[:-1]

    def collations_of(self, node: Relation | Operation) -> tuple[str | None, ...]:
        """Ask for the collations of a relation's columns, or of an operation's; None for none and for the default."""
        types = self.types_of(node)
        if not any(map(is_collatable, types)):
            return (None,) * len(types)
        text = self._text(node)
        if text not in self.known_collations:
            self.known_collations[text] = self.probe.collations(text)
        return self.known_collations[text][: len(types)]

    def is_exact(self, node: Relation | Operation) -> bool:
        """Whether equal values of every column of a relation or of an operation are the same text."""
        return all_exact(self.types_of(node), self.definition)

    def compares_as_it_groups(self, expression: exp.Expr, block: Block) -> bool:
        """Whether values that equal the same value of another expression are in one group.

        They are not where a collation of the other side holds different texts for equal, nor where two moments without
        a time zone are the same moment with one, as happens when clocks are put forward.
        """
        bytewise = self.definition.bytewise
        column = self._source_column(expression, block)
        zones = mixes_time_zones(self.definition)
        if (bytewise and not zones) or (not bytewise and column is not None and not column.deterministic):
            return True
        rows = project(replace(block, predicates=(), negated=False), (expression,))
        (type_name,) = self.types_of(rows)
        return not (not bytewise and is_collatable(type_name)) and not (zones and is_moment(type_name))

    def never_null(self, expression: exp.Expr, block: Block) -> bool:
        """Whether an expression cannot be NULL: a literal, or a column declared NOT NULL of a scan in the block."""
        node = expression.unnest()
        if isinstance(node, exp.Literal | exp.Boolean) or is_image(node):
            return True
        if isinstance(node, exp.Cast):
            return not is_null(node) and self.never_null(node.this, block)
        found = self._source_column(node, block)
        return found is not None and not found.nullable

    def _source_column(self, expression: exp.Expr, block: Block) -> SourceColumn | None:
        node = expression.unnest()
        scan = next((leaf for leaf in block.leaves if isinstance(node, exp.Column) and leaf.alias == node.table), None)
        return self.definition.source(scan.relid).column(node.name) if isinstance(scan, Scan) else None

    def _text(self, node: Relation | Operation) -> str:
        if isinstance(node, Operation):
            return compile_state(node, self.definition)
        return compile_rows(at(node, Version.CURRENT), self.definition)

    def _join(self, left: Blocks, join: exp.Join, context: Context) -> Blocks:
        kind = (join.kind or "INNER").upper()
        if kind not in {"INNER", "CROSS", "OUTER"} or join.args.get("method"):
            raise NotDifferentiable(f"{join.method or kind} JOIN")
        result = self._joined(left, join, context)
        # Each outer join has three blocks for one: what matches, all of one side, and minus what matches.
        folds = len(result) > MAX_BLOCKS and len(left) > 1
        return fitting(self, self._joined(folded(self, left), join, context) if folds else result)

    def _joined(self, left: Blocks, join: exp.Join, context: Context) -> Blocks:
        lateral = lateral_aggregate(self, left, join, context)
        if lateral is not None:
            return lateral
        if (join.side or "").upper() not in {"RIGHT", "FULL"} and _may_be_lateral(join.this):
            # Each block has expressions of its own for the names that a lateral item refers to.
            return tuple(found for block in left for found in self._beside(block, join, context))
        right = self._item(join.this, Context(context.ctes, {}))
        return outer_joins.join(self, left, fitting(self, right), join, context)

    def _beside(self, block: Block, join: exp.Join, context: Context) -> Blocks:
        right = self._item(join.this, context.within(block))
        return outer_joins.join(self, (block,), right, join, context)

    def _item(self, item: exp.Expr, context: Context) -> Blocks:
        if item.args.get("sample") or item.args.get("pivots") or item.args.get("laterals"):
            raise NotDifferentiable("TABLESAMPLE in FROM")
        result = self._source(item, context)
        for join in item.args.get("joins") or ():
            result = self._join(result, join, context)
        return result

    def _source(self, item: exp.Expr, context: Context) -> Blocks:
        match item:
            case exp.Lateral(this=exp.Subquery() as query):
                alone = rowwise.lateral(self, item, context.outer)
                return (alone,) if alone else under_alias(self.derived(query, context), item, self.definition)
            case exp.Values() if item.find(exp.Query):
                return under_alias(self.derived(as_union(item), Context(context.ctes, {})), item, self.definition)
            case exp.Lateral() | exp.Values():
                return (rowwise.function(self, item, context.outer),)
            case exp.Subquery():
                return self._subquery(item, context)
            case exp.Table(this=exp.Identifier()):
                return self._table(item, context.ctes)
            case exp.Table():
                return (rowwise.function(self, item, context.outer),)
            case _:
                raise NotDifferentiable(f"{item.key.upper()} in FROM")

    def _subquery(self, item: exp.Subquery, context: Context) -> Blocks:
        """Read a query, or joins in parentheses, which may have an alias of their own."""
        inner, alone = item.this, Context(context.ctes, {})
        if isinstance(inner, exp.Table | exp.Subquery) and not item.alias:
            return self._item(inner, context)
        if is_joined(inner):
            return under_join_alias(self, self._item(inner, alone), item)
        return under_alias(self.derived(inner, alone), item, self.definition)

    def _table(self, table: exp.Table, ctes: Ctes) -> Blocks:
        if not table.db and table.name in ctes:
            cte = ctes[table.name]
            if cte.around:
                shared = self.derived(cte.entry.this, replace(cte.around, ctes=cte.scope))
            else:
                shared = self._shared(cte, cte.entry.this, cte.scope)
            return under_alias(under_names(shared, cte.entry.alias_column_names), table, self.definition)
        for view in self.definition.views:
            if (view.schema, view.name) == (table.db, table.name):
                query = parse_query(view.text, self.definition.aggregates)
                return under_alias(self._shared(view, query, {}), table, self.definition, view)
        for source in self.definition.sources:
            # ONLY says nothing here: of a table with children it is not captured, and the database refuses a delta.
            if (source.schema, source.name) == (table.db, table.name):
                return (self._scan(table, source),)
        raise NotDifferentiable(f"{table.sql()} in FROM is not a table")

    def _shared(self, owner: Cte | View, query: exp.Expr, ctes: Ctes) -> Blocks:
        """Read what has a name once: further references share its operations, under aliases of their own."""
        known = self.known_blocks.get(owner)
        if known is None:
            known = self.known_blocks[owner] = self.derived(query, Context(ctes, {}))
        if any(isinstance(leaf, Function) for block in known for leaf in block.leaves):
            return self.derived(query, Context(ctes, {}))
        return tuple(block.realiased({leaf.alias: self.alias() for leaf in block.leaves}) for block in known)

    def _scan(self, table: exp.Table, source: Source) -> Block:
        alias, own = self.alias(), [column.name for column in source.columns]
        aliases = dict(zip(own, table.alias_column_names, strict=False))
        columns: Mapping[str, exp.Expr] = {aliases.get(name, name): own_column(alias, name) for name in source.used}
        block = Block((Scan(alias, source.relid, source.used),), (), {table.alias_or_name: columns})
        return with_rows(block, table.alias_or_name, self.definition, source)


def _may_be_lateral(item: exp.Expr) -> bool:
    """Whether a FROM item may refer to what stands to its left: all but tables and named subqueries."""
    if isinstance(item, exp.Subquery):
        return not item.alias
    return bool(item.args.get("joins")) or not (isinstance(item, exp.Table) and isinstance(item.this, exp.Identifier))
