"""FROM and WHERE of a query as a sum of products: every block joins plain scans; unions are multiplied out."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from sqlglot import exp

from pytrickle.catalog.definition import Definition, Source
from pytrickle.errors import NotDifferentiable
from pytrickle.plan.algebra import Equality, Expr, Join, Predicate, Project, Relation, Scan, UnionAll, Version
from pytrickle.plan.compile import compile_rows
from pytrickle.plan.delta import at
from pytrickle.plan.dialect import parse_query, render
from pytrickle.plan.probe import Probe

Names = Mapping[str, Mapping[str, exp.Expr]]
MAX_BLOCKS = 64


@dataclass(frozen=True, slots=True)
class Block:
    """Scans and conjuncts, with the expression that every visible name stands for: alias -> column -> expression."""

    scans: tuple[Scan, ...]
    predicates: tuple[exp.Expr, ...]
    names: Names

    def times(self, other: "Block") -> "Block":
        """Cross join two blocks."""
        if self.names.keys() & other.names.keys():
            raise NotDifferentiable("the same alias is used twice in one FROM clause")
        return Block(self.scans + other.scans, self.predicates + other.predicates, {**self.names, **other.names})

    def where(self, condition: exp.Expr | None) -> "Block":
        """Add the conjuncts of a condition written over the visible names."""
        if condition is None:
            return self
        resolved = resolve(condition, self.names)
        return replace(self, predicates=self.predicates + tuple(_conjuncts(resolved)))


@dataclass(slots=True)
class Reader:
    """Reads FROM clauses; hands out scan aliases that are unique within one defining query."""

    definition: Definition
    probe: Probe
    aliases: Iterator[int] = field(default_factory=lambda: count(1))

    def blocks(self, select: exp.Select, ctes: Mapping[str, exp.Expr]) -> tuple[Block, ...]:
        """Return the blocks of a SELECT's FROM and WHERE."""
        source = select.args.get("from_")
        result = self._item(source.this, ctes) if source else (Block((), (), {}),)
        for join in select.args.get("joins") or ():
            result = self._join(result, join, ctes)
        where = select.args.get("where")
        return tuple(block.where(where.this if where else None) for block in result)

    def derived(self, query: exp.Expr, ctes: Mapping[str, exp.Expr]) -> tuple[Block, ...]:
        """Return the blocks of a subquery without grouping; their names are {'': output column -> expression}."""
        query, ctes = unwrap(query, ctes)
        refuse_clauses(query)
        if isinstance(query, exp.SetOperation):
            return self.union(query, ctes, None)
        if not isinstance(query, exp.Select):
            raise NotDifferentiable(f"{query.key.upper()} in FROM")
        if is_aggregate(query) or query.args.get("distinct"):
            raise NotDifferentiable("an aggregate or DISTINCT below the top of the query")
        items = [(item.alias_or_name, item.unalias()) for item in query.selects]
        return tuple(
            replace(block, names={"": {name: resolve(item, block.names) for name, item in items}})
            for block in self.blocks(query, ctes)
        )

    def union(self, query: exp.Expr, ctes: Mapping[str, exp.Expr], types: tuple[str, ...] | None) -> tuple[Block, ...]:
        """Return the blocks of a UNION ALL, each column cast to the union's type, so that an arm may stand alone."""
        arms = [self.derived(arm, ctes) for arm in union_arms(query, all_only=types is None)]
        names = tuple(arms[0][0].names[""])
        if types is None:
            rows = UnionAll(tuple(project(block, tuple(block.names[""].values())) for arm in arms for block in arm))
            types = self.probe.column_types(compile_rows(at(rows, Version.CURRENT), self.definition))[: len(names)]
        return tuple(
            replace(block, names={"": dict(zip(names, _cast(block.names[""].values(), types), strict=True))})
            for arm in arms
            for block in arm
        )

    def _join(self, left: tuple[Block, ...], join: exp.Join, ctes: Mapping[str, exp.Expr]) -> tuple[Block, ...]:
        if join.side or (join.kind or "INNER").upper() not in {"INNER", "CROSS"} or join.args.get("method"):
            raise NotDifferentiable(f"{join.side or join.method or join.kind} JOIN")
        right = self._item(join.this, ctes)
        if len(left) * len(right) > MAX_BLOCKS:
            raise NotDifferentiable(f"joins of unions that multiply out to over {MAX_BLOCKS} blocks")
        return tuple(
            one.times(other).where(_using(join, one.names, other.names) or join.args.get("on"))
            for one in left
            for other in right
        )

    def _item(self, item: exp.Expr, ctes: Mapping[str, exp.Expr]) -> tuple[Block, ...]:
        if item.args.get("sample") or item.args.get("pivots") or item.args.get("laterals"):
            raise NotDifferentiable("TABLESAMPLE or LATERAL in FROM")
        if isinstance(item, exp.Subquery) and isinstance(item.this, exp.Table | exp.Subquery) and not item.alias:
            result = self._item(item.this, ctes)
        elif isinstance(item, exp.Subquery):
            result = self._named(self.derived(item.this, ctes), item)
        elif isinstance(item, exp.Table) and isinstance(item.this, exp.Identifier):
            result = self._table(item, ctes)
        else:
            raise NotDifferentiable(f"{item.key.upper()} in FROM")
        for join in item.args.get("joins") or ():
            result = self._join(result, join, ctes)
        return result

    def _table(self, table: exp.Table, ctes: Mapping[str, exp.Expr]) -> tuple[Block, ...]:
        if table.args.get("only"):
            raise NotDifferentiable("FROM ONLY")
        if not table.db and table.name in ctes:
            outer = {name: query for name, query in ctes.items() if name != table.name}
            return self._named(self.derived(ctes[table.name], outer), table)
        for view in self.definition.views:
            if (view.schema, view.name) == (table.db, table.name):
                return self._named(self.derived(parse_query(view.text), {}), table)
        for source in self.definition.sources:
            if (source.schema, source.name) == (table.db, table.name):
                return (self._scan(table, source),)
        raise NotDifferentiable(f"{table.sql()} in FROM is not a table")

    def _scan(self, table: exp.Table, source: Source) -> Block:
        if table.alias_column_names:
            raise NotDifferentiable("column aliases on a table")
        alias = f"t{next(self.aliases)}"
        columns = {name: exp.column(name, table=alias, quoted=True) for name in source.used}
        return Block((Scan(alias, source.relid, source.used),), (), {table.alias_or_name: columns})

    @staticmethod
    def _named(blocks: tuple[Block, ...], item: exp.Expr) -> tuple[Block, ...]:
        aliases = item.alias_column_names
        return tuple(replace(block, names={item.alias_or_name: _renamed(block.names[""], aliases)}) for block in blocks)


def resolve(expression: exp.Expr, names: Names) -> exp.Expr:
    """Replace every visible name by the expression over scans that it stands for; refuse what needs more than a row."""

    def step(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Query | exp.Subquery | exp.Exists):
            raise NotDifferentiable("a subquery in an expression")
        if isinstance(node, exp.Window):
            raise NotDifferentiable("a window function")
        if not isinstance(node, exp.Column):
            return node
        return _lookup(node, names).copy()

    return expression.copy().transform(step)


def project(block: Block, columns: tuple[exp.Expr, ...], prefix: str = "r") -> Project:
    """Turn a block and output expressions into algebra; columns are named prefix + position."""
    join = Join(block.scans, tuple(_predicate(each) for each in block.predicates))
    return Project(join, tuple((f"{prefix}{i}", to_expr(column)) for i, column in enumerate(columns)))


def to_expr(expression: exp.Expr) -> Expr:
    """Freeze a resolved expression."""
    return Expr(render(expression), frozenset(column.table for column in expression.find_all(exp.Column)))


def sum_of(projects: tuple[Project, ...]) -> Relation:
    """Union blocks that have the same columns."""
    return projects[0] if len(projects) == 1 else UnionAll(projects)


def unwrap(query: exp.Expr, ctes: Mapping[str, exp.Expr]) -> tuple[exp.Expr, Mapping[str, exp.Expr]]:
    """Strip parentheses and take in the WITH clause; later names see earlier ones."""
    while isinstance(query, exp.Subquery) and not query.alias:
        query = query.this
    clause = query.args.get("with_")
    if clause is None:
        return query, ctes
    if clause.args.get("recursive"):
        raise NotDifferentiable("WITH RECURSIVE")
    if any(cte.alias_column_names for cte in clause.expressions):
        raise NotDifferentiable("column aliases on WITH")
    return query, {**ctes, **{cte.alias: cte.this for cte in clause.expressions}}


def union_arms(query: exp.Expr, all_only: bool) -> tuple[exp.Expr, ...]:
    """Flatten a tree of UNION ALL (and of UNION, unless `all_only`) from left to right."""
    while isinstance(query, exp.Subquery) and not query.alias:
        query = query.this
    if not isinstance(query, exp.SetOperation):
        return (query,)
    if not isinstance(query, exp.Union):
        raise NotDifferentiable(query.key.upper())
    if query.args.get("distinct") and all_only:
        raise NotDifferentiable("UNION without ALL below the top of the query")
    refuse_clauses(query)
    return union_arms(query.this, all_only) + union_arms(query.expression, all_only)


def is_aggregate(select: exp.Select) -> bool:
    """Whether a SELECT groups: GROUP BY, HAVING or an aggregate call in its own list."""
    if select.args.get("group") or select.args.get("having"):
        return True
    nodes = (node for item in select.selects for node in item.walk(prune=lambda node: isinstance(node, exp.Query)))
    return any(isinstance(node, exp.AggFunc) for node in nodes)


def refuse_clauses(query: exp.Expr) -> None:
    """Refuse LIMIT and the like; ORDER BY alone does not change a bag."""
    for clause in ("limit", "offset", "fetch", "windows", "qualify", "locks"):
        if query.args.get(clause):
            raise NotDifferentiable(clause.upper())


def _lookup(column: exp.Column, names: Names) -> exp.Expr:
    if isinstance(column.this, exp.Star) or column.args.get("db"):
        raise NotDifferentiable("a whole-row reference")
    # PostgreSQL 16 and later print the columns of a single source without its alias.
    table = column.table or (next(iter(names)) if len(names) == 1 else "")
    scope = names.get(table, {})
    if column.name not in scope:
        raise NotDifferentiable(f"the reference {column.sql()}")
    found = scope[column.name]
    return found if isinstance(found, exp.Column) else exp.Paren(this=found.copy())


def _using(join: exp.Join, left: Names, right: Names) -> exp.Expr | None:
    pairs = [
        exp.EQ(this=_first(left, name.name), expression=_first(right, name.name))
        for name in join.args.get("using") or ()
    ]
    return exp.and_(*pairs) if pairs else None


def _first(names: Names, column: str) -> exp.Expr:
    for alias, columns in names.items():
        if column in columns:
            return exp.column(column, table=alias, quoted=True)
    raise NotDifferentiable(f"USING ({column})")


def _renamed(columns: Mapping[str, exp.Expr], aliases: list[str]) -> dict[str, exp.Expr]:
    return dict(zip([*aliases, *list(columns)[len(aliases) :]], columns.values(), strict=True))


def _cast(columns: Iterable[exp.Expr], types: tuple[str, ...]) -> list[exp.Expr]:
    return [cast_to(column, name) for column, name in zip(columns, types, strict=True)]


def cast_to(column: exp.Expr, type_name: str) -> exp.Expr:
    """Cast an expression to a type given as PostgreSQL prints it."""
    # A Var is written as it is: PostgreSQL's type names are not all known to the parser.
    return exp.Cast(this=exp.Paren(this=column.copy()), to=exp.Var(this=type_name))


def _conjuncts(condition: exp.Expr) -> list[exp.Expr]:
    condition = condition.unnest()
    if isinstance(condition, exp.And):
        return [*_conjuncts(condition.this), *_conjuncts(condition.expression)]
    return [condition]


def _predicate(condition: exp.Expr) -> Predicate:
    return Predicate(to_expr(condition), _equality(condition))


def _equality(condition: exp.Expr) -> Equality | None:
    if not isinstance(condition, exp.EQ):
        return None
    sides = condition.this.unnest(), condition.expression.unnest()
    left, right = (side.this.unnest() if _is_text_cast(side) else side for side in sides)
    if isinstance(left, exp.Column) and isinstance(right, exp.Column) and left.table != right.table:
        as_text = any(_is_text_cast(side) for side in sides)
        return Equality((left.table, left.name), (right.table, right.name), as_text)
    return None


def _is_text_cast(node: exp.Expr) -> bool:
    return isinstance(node, exp.Cast) and node.to.sql(dialect="postgres") == "TEXT"
