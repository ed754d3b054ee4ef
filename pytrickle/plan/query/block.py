"""One product of a query's sum of products: leaves, conjuncts, and what every visible name stands for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.algebra.relation import (
    Comparison,
    Equality,
    Expr,
    Join,
    Leaf,
    Predicate,
    Project,
    Relation,
    Shown,
    UnionAll,
)
from pytrickle.plan.query.scope import MERGED, Names, renamed, tables_of
from pytrickle.plan.sql.dialect import render
from pytrickle.plan.sql.three_valued import conjuncts, decided

OWN = "pytrickle"
SYMBOLS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}


@dataclass(frozen=True, slots=True)
class Block:
    """Leaves and conjuncts over them; the rows of a `negated` one are taken away. `names` maps alias -> column."""

    leaves: tuple[Leaf, ...]
    predicates: tuple[exp.Expr, ...]
    names: Names
    negated: bool = False

    @property
    def aliases(self) -> frozenset[str]:
        """The aliases of the leaves."""
        return frozenset(leaf.alias for leaf in self.leaves)

    def times(self, other: "Block") -> "Block":
        """Cross join two blocks."""
        if (self.names.keys() & other.names.keys()) - {MERGED}:
            raise NotDifferentiable("the same alias is used twice in one FROM clause")
        merged = {**self.names.get(MERGED, {}), **other.names.get(MERGED, {})}
        names = {**self.names, **other.names, **({MERGED: merged} if merged else {})}
        return self.joined(other).named(names)

    def joined(self, other: "Block") -> "Block":
        """Cross join two blocks, of which only the names of the first stay visible."""
        return replace(
            self,
            leaves=self.leaves + other.leaves,
            predicates=self.predicates + other.predicates,
            negated=self.negated != other.negated,
        )

    def where(self, *conditions: exp.Expr) -> "Block | None":
        """Add resolved conditions; None when one of them is never true."""
        kept = []
        for condition in (each for whole in conditions for each in conjuncts(whole)):
            verdict = decided(condition)
            if verdict == "open":
                kept.append(condition)
            elif verdict is not True:
                return None
        return replace(self, predicates=self.predicates + tuple(kept))

    def named(self, names: Names) -> "Block":
        """Replace the visible names."""
        return replace(self, names=names)

    def mapped(self, change: Callable[[exp.Expr], exp.Expr]) -> "Block":
        """Change what every visible name stands for."""
        return self.named({a: {c: change(e) for c, e in columns.items()} for a, columns in self.names.items()})

    def realiased(self, aliases: Mapping[str, str]) -> "Block":
        """Give the leaves other aliases."""

        def step(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Column) and node.table in aliases:
                return own_column(aliases[node.table], node.name)
            return node

        leaves = tuple(replace(leaf, alias=aliases[leaf.alias]) for leaf in self.leaves)
        predicates = tuple(predicate.transform(step) for predicate in self.predicates)
        return replace(self.mapped(lambda e: e.transform(step)), leaves=leaves, predicates=predicates)

    def without_rows(self) -> "Block":
        """Keep the names, but no row."""
        return replace(self, predicates=(exp.false(),), negated=False)

    @property
    def is_empty(self) -> bool:
        """Whether a condition on the block is never true."""
        return exp.false() in self.predicates

    def minus(self) -> "Block":
        """Take these rows away instead."""
        return replace(self, negated=not self.negated)


def project(block: Block, columns: tuple[exp.Expr, ...], prefix: str = "r") -> Project:
    """Turn a block and output expressions into algebra; columns are named prefix + position."""
    join = Join(block.leaves, tuple(_predicate(each) for each in block.predicates), block.negated)
    return Project(join, tuple((f"{prefix}{i}", to_expr(column)) for i, column in enumerate(columns)))


def to_expr(expression: exp.Expr) -> Expr:
    """Freeze a resolved expression."""
    columns = frozenset((column.table, column.name) for column in expression.find_all(exp.Column))
    holds_query = expression.find(exp.Select) is not None
    return Expr(render(expression), tables_of(expression), columns, _shown(expression), holds_query)


def sum_of(projects: tuple[Project, ...]) -> Relation:
    """Union blocks that have the same columns."""
    return projects[0] if len(projects) == 1 else UnionAll(projects)


def type_of(name: str) -> exp.DataType:
    """Write a type as PostgreSQL prints it; its names are not all known to the parser."""
    return exp.DataType(this=exp.DataType.Type.USERDEFINED, kind=name)


def cast_to(column: exp.Expr, type_name: str) -> exp.Expr:
    """Cast an expression to a type given as PostgreSQL prints it."""
    return exp.Cast(this=exp.Paren(this=column.copy()), to=type_of(type_name))


def null_of(type_name: str, collation: str | None = None) -> exp.Expr:
    """Write NULL of a type, and of a collation."""
    return collated(exp.Cast(this=exp.Null(), to=type_of(type_name)), collation)


def null_of_domain(name: str) -> exp.Expr:
    """Write NULL of a domain as an outer join shows it, unchecked: what is no element of an array.

    >>> print(render(null_of_domain("public.price")))
    (CAST('{}' AS public.price[]))[1]
    """
    none = exp.Cast(this=exp.Literal.string("{}"), to=type_of(f"{name}[]"))
    return exp.Bracket(this=exp.Paren(this=none), expressions=[exp.Literal.number(1)])


def collated(expression: exp.Expr, collation: str | None) -> exp.Expr:
    """Give an expression a collation, written as PostgreSQL prints it, if there is one to give."""
    return exp.Collate(this=expression, expression=exp.Var(this=collation)) if collation else expression


def row_text_of(columns: tuple[exp.Expr, ...]) -> exp.Expr:
    """Write the text of columns as one row, which differs where any value differs, and is never NULL.

    It comes from the output functions of their types; the text of a row has no collation of theirs.
    """
    row = exp.Anonymous(this="ROW", expressions=[column.copy() for column in columns])
    return marked(exp.Cast(this=row, to=type_of("text")), "row text")


def marked(expression: exp.Expr, what: str) -> exp.Expr:
    """Tell an expression that the planner has made from one that a user wrote alike."""
    expression.meta[OWN] = what
    return expression


def is_marked(node: exp.Expr, what: str) -> bool:
    """Whether the planner has made an expression, alone or as a subquery of one column."""
    bare = node.unnest()
    inner = bare.selects[0] if isinstance(bare, exp.Select) and bare.selects else bare
    return what in {each.meta.get(OWN) for each in (node, bare, inner)}


def is_row_text(node: exp.Expr) -> bool:
    """Whether an expression is the text of a row."""
    cast = node.selects[0] if isinstance(node, exp.Select) else node
    if not isinstance(cast, exp.Cast) or cast.to.sql(dialect="postgres").lower() != "text":
        return False
    row = cast.this.unnest()
    return isinstance(row, exp.Anonymous) and row.name.upper() == "ROW"


def aliased(expression: exp.Expr, name: str) -> exp.Alias:
    """Name an expression of a select list; a subquery, too, is named as a whole."""
    return exp.Alias(this=expression.copy(), alias=exp.to_identifier(name, quoted=True))


def own_column(alias: str, name: str) -> exp.Column:
    """Refer to a column of a leaf."""
    return exp.column(name, table=alias, quoted=True)


def under_names(blocks: tuple[Block, ...], aliases: list[str]) -> tuple[Block, ...]:
    """Give the first columns of a subquery other names."""
    return tuple(block.named({"": renamed(block.names[""], aliases)}) for block in blocks)


def cast_columns(block: Block, types: tuple[str, ...]) -> tuple[exp.Expr, ...]:
    """Cast the columns of a subquery."""
    columns = block.names[""].values()
    return tuple(cast_to(column, name) for column, name in zip(columns, types, strict=True))


def _shown(expression: exp.Expr) -> Shown | None:
    """Tell the column that an expression shows, in at most one pair of parentheses."""
    as_text = _is_text_cast(expression)
    inside = expression.this if as_text else expression
    column = inside.this if isinstance(inside, exp.Paren) else inside
    if not isinstance(column, exp.Column):
        return None
    return Shown((column.table, column.name), column is inside, as_text)


def _predicate(condition: exp.Expr) -> Predicate:
    return Predicate(to_expr(condition), _equality(condition), _fixed(condition), _comparison(condition))


def _comparison(condition: exp.Expr) -> Comparison | None:
    operator = SYMBOLS.get(type(condition))
    if operator is None or not (_is_value(condition.this) and _is_value(condition.expression)):
        return None
    return Comparison(to_expr(condition.this), operator, to_expr(condition.expression))


def _is_value(side: exp.Expr) -> bool:
    """Whether a side of a comparison is one value, which a subquery may return: no row, and no ANY or ALL."""
    bare = side.unnest()
    if isinstance(bare, exp.Anonymous):
        return str(bare.this).upper() not in {"ROW", "ALL"}
    return not isinstance(bare, exp.Any | exp.All | exp.Tuple)


def _fixed(condition: exp.Expr) -> tuple[str, str] | None:
    if not (isinstance(condition, exp.EQ) and isinstance(condition.this, exp.Paren)):
        return None
    column = condition.this.this
    return (column.table, column.name) if isinstance(column, exp.Column) else None


def _equality(condition: exp.Expr) -> Equality | None:
    null_safe = isinstance(condition, exp.NullSafeEQ)
    if isinstance(condition, exp.Not) and isinstance(condition.this.unnest(), exp.NullSafeNEQ):
        # This is how PostgreSQL prints IS NOT DISTINCT FROM.
        condition, null_safe = condition.this.unnest(), True
    if not (null_safe or isinstance(condition, exp.EQ)):
        return None
    sides = condition.this.unnest(), condition.expression.unnest()
    left, right = (side.this.unnest() if _is_text_cast(side) else side for side in sides)
    if isinstance(left, exp.Column) and isinstance(right, exp.Column) and left.table != right.table:
        as_text = any(_is_text_cast(side) for side in sides)
        return Equality((left.table, left.name), (right.table, right.name), as_text, null_safe)
    return None


def _is_text_cast(node: exp.Expr) -> bool:
    return isinstance(node, exp.Cast) and node.to.sql(dialect="postgres") == "TEXT"
