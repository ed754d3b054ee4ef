"""Queries read as sums of products: SELECTs, set operations and VALUES, with their WITH clauses and LIMITs."""

from dataclasses import dataclass, field, replace

from sqlglot import exp

from pytrickle.catalog.definition import Definition
from pytrickle.errors import NotDifferentiable
from pytrickle.plan.query.block import Block, cast_columns
from pytrickle.plan.query.context import Context, Cte
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.query.first_rows import CLAUSES
from pytrickle.plan.query.fold import fitting
from pytrickle.plan.query.from_clause import FromClause
from pytrickle.plan.query.lateral import function
from pytrickle.plan.query.limit import limited
from pytrickle.plan.query.null_padding import in_one_collation, union_of
from pytrickle.plan.query.scope import reads_around
from pytrickle.plan.query.select import Selection
from pytrickle.plan.query.select_clauses import is_grouped, unrolls
from pytrickle.plan.query.set_operation import set_operation
from pytrickle.plan.query.subquery import hoist, refuse_calls_of_rows_around, without_subqueries_of_calls
from pytrickle.plan.query.values_rows import as_union

Blocks = tuple[Block, ...]


@dataclass(slots=True)
class Queries:
    """Reads the queries within one defining query; what has a name there is read once."""

    facts: Facts
    known_blocks: dict[object, Blocks] = field(default_factory=dict)
    known_ctes: dict[object, Cte] = field(default_factory=dict)

    def blocks(self, select: exp.Select, context: Context) -> Blocks:
        """Return the blocks of a SELECT's FROM and WHERE."""
        return FromClause(self, self.known_blocks).blocks(select, context)

    def aggregated(self, select: exp.Select, context: Context) -> tuple[exp.Select, Blocks]:
        """Return a SELECT without the subqueries in calls of aggregates, and its blocks, which have their values."""
        aggregates, blocks = self.facts.definition.aggregates, self.blocks(select, context)
        refuse_calls_of_rows_around(select, aggregates, blocks[0].names, context.outer)
        bare, found = without_subqueries_of_calls(select, aggregates)
        return bare, hoist(self, blocks, found, context)

    def rows(self, query: exp.Expr, context: Context) -> Blocks:
        """Return blocks that have a row exactly where a subquery has one; their names do not matter."""
        query, context = self.unwrapped(query, context)
        limit, definition = query.args.get("limit"), self.facts.definition
        bound = limit.expression if limit else None
        # PostgreSQL rounds, so that 0.4 is none.
        trivial = limit is None or (isinstance(bound, exp.Literal) and bound.is_int and bound.name != "0")
        if isinstance(query, exp.Select) and trivial and not query.args.get("offset") and _is_plain(query, definition):
            return self.blocks(query, context)
        return self.derived(query, context)

    def derived(self, query: exp.Expr, context: Context) -> Blocks:
        """Return the blocks of a subquery; their names are {'': output column -> expression}."""
        query, context = self.unwrapped(query, context)
        if query.args.get("locks"):
            raise NotDifferentiable("FOR UPDATE")
        if any(query.args.get(clause) for clause in CLAUSES):
            return fitting(self.facts, limited(self, query, context))
        match query:
            case exp.Select():
                return fitting(self.facts, Selection(self, query, context).blocks())
            case exp.SetOperation():
                return self._set_operation(query, context)
            case exp.Values() if query.find(exp.Query):
                return self.derived(as_union(query), context)
            case exp.Values():
                block = function(self.facts, query, context.outer)
                return (block.named({"": next(iter(block.names.values()))}),)
            case _:
                raise NotDifferentiable(f"{query.key.upper()} in FROM")

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

    def _set_operation(self, query: exp.SetOperation, context: Context) -> Blocks:
        """Return the blocks of a set operation, each column cast to its type, so that an arm may stand alone."""
        arms = [self.derived(arm, context) for arm in (query.this, query.expression)]
        names = tuple(arms[0][0].names[""])
        if any(len(block.names[""]) != len(names) for arm in arms for block in arm):
            raise NotDifferentiable("a set operation whose arms name a column twice")
        arms = in_one_collation(self.facts, arms, context.around)
        types = self.facts.types_of(union_of(arms, context.around))
        rows = tuple(tuple((block, cast_columns(block, types)) for block in arm) for arm in arms)
        if isinstance(query, exp.Union) and not query.args.get("distinct"):
            return tuple(
                block.named({"": dict(zip(names, columns, strict=True))}) for arm in rows for block, columns in arm
            )
        return (set_operation(self.facts, query, (rows[0], rows[1]), names, context.block),)


def _is_plain(select: exp.Select, definition: Definition) -> bool:
    """Whether a SELECT has a row for each row of its FROM and WHERE."""
    return not is_grouped(select, definition) and not unrolls(select, definition)
