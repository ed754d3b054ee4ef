"""Columns that hold one of several equal values, such as 1 of 1 and 1.00: no expression may tell which one was kept.

Which one PostgreSQL keeps depends on its plan. And it moves a condition on what groups, DISTINCT, set operations or the
partitions of a window have in common below them, where the rows need not all look like the one that was kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlglot import exp

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.algebra.relation import Derived, Function, Operation, Relation
from pytrickle.plan.query.block import Block, is_marked
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.sql.dialect import render
from pytrickle.plan.sql.types import base_of, has_one_text

Representatives = Mapping[tuple[str, str], str]
Rows = Iterable[tuple[Block, tuple[exp.Expr, ...]]]
NUMBERS = frozenset({"numeric", "real", "double precision"})
AMBIGUOUS = NUMBERS | {"interval", "jsonb", "bpchar"}
NUMERIC_TARGETS = NUMBERS | {"decimal", "float", "bigint", "integer", "int", "smallint"}
TEXTS = frozenset({"text", "varchar", "character varying", "character", "bpchar"})
ORDERING = (exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between)
COMPARING = (*ORDERING, exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Is, exp.In)
# Equal values in, equal values out.
SHAPES = (exp.Order, exp.Ordered, exp.Where, exp.Alias)
PASSING = (*SHAPES, exp.Paren, exp.Tuple, exp.Case, exp.If, exp.Any, exp.Array)
ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Mod)
PASSING_CALLS = frozenset({"coalesce", "nullif", "greatest", "least", "row"})
COUNTING_CALLS = frozenset({"num_nulls", "num_nonnulls"})
NUMERIC_CALLS = frozenset({"abs", "round", "ceil", "ceiling", "floor", "trunc", "sign", "mod"})


def is_representative(node: exp.Expr, representatives: Representatives) -> bool:
    """Whether an expression may itself be one of several equal values, as the columns `representatives` are.

    Raise NotDifferentiable where it may tell equal values apart.
    """
    read = frozenset(representatives[each] for each in _columns(node) if each in representatives)
    if not read or is_marked(node, "row text"):
        return False
    if isinstance(node, exp.Column) or is_marked(node, "row"):
        return True
    # Each is asked, for each may raise.
    shown = [is_representative(child, representatives) for child in node.iter_expressions()]
    if not any(shown):
        return False
    types, collations = (frozenset(each.partition(" COLLATE ")[part] for each in read) for part in (0, 2))
    if not (_preserves(node, types) and _named_collations(node) <= collations):
        what = f"one of several equal values of type {min(read)}"
        raise NotDifferentiable(f"an expression over {what}, which may look different")
    counts = isinstance(node, exp.Anonymous) and str(node.this).lower() in COUNTING_CALLS
    return not (counts or isinstance(node, (*COMPARING, exp.Operator)))


def _named_collations(node: exp.Expr) -> frozenset[str]:
    return frozenset(render(each.expression).replace('"', "") for each in node.find_all(exp.Collate))


def _preserves(node: exp.Expr, types: frozenset[str]) -> bool:
    """Whether equal operands of some types give equal results."""
    numbers = {base_of(name) for name in types} <= NUMBERS
    match node:
        case exp.Cast():
            return _cast_preserves(node, types)
        case exp.Operator():
            return _is_comparison_of(str(node.args.get("operator")), types)
        case exp.Anonymous():
            name = str(node.this).lower()
            return name in PASSING_CALLS | COUNTING_CALLS or (numbers and name in NUMERIC_CALLS)
        case exp.Dot(this=exp.Identifier() as schema, expression=exp.Anonymous() as call):
            return (schema.name, call.name) == ("pgtrickle_private", "only_one")
        case exp.Div():
            # The scale of a quotient of numerics depends on theirs.
            return numbers and "numeric" not in {base_of(name) for name in types}
    return isinstance(node, COMPARING + PASSING) or (numbers and isinstance(node, ARITHMETIC))


def _cast_preserves(node: exp.Cast, types: frozenset[str]) -> bool:
    """Whether a cast of equal values gives equal values: between numbers, between texts of any length, or to itself.

    A row is cast to `record`, which it is.
    """
    sources, target = {base_of(name) for name in types}, node.to.sql(dialect="postgres").lower()
    if target == "record":
        return True
    if sources <= NUMBERS | {"jsonb"} and base_of(target) in NUMERIC_TARGETS:
        return True
    return (sources <= TEXTS and target in TEXTS) or types == {target}


def _is_comparison_of(operator: str, types: frozenset[str]) -> bool:
    """Whether an operator with a schema is a comparison that comes with the types it compares."""
    schema, _, name = operator.rpartition(".")
    return name in {"=", "<>", "<", "<=", ">", ">="} and {each.rpartition(".")[0] for each in types} == {schema}


def representatives_in(block: Block, pushed_down: bool = False) -> dict[tuple[str, str], str]:
    """Return the columns of a block's leaves that hold one of several equal values, with their types.

    With `pushed_down`, also those on which PostgreSQL moves conditions below an operation that keeps all of its rows.
    """
    found: dict[tuple[str, str], str] = {}
    for leaf in block.leaves:
        if isinstance(leaf, Derived):
            columns = leaf.operation.representatives | (leaf.operation.pushed_down if pushed_down else frozenset())
            found |= {(leaf.alias, name): sort for name, sort in columns}
    return found


def refuse_telling_apart(block: Block) -> None:
    """Refuse a block whose conditions or functions may tell apart equal values of which one was kept below."""
    representatives = representatives_in(block, pushed_down=True)
    for predicate in block.predicates if representatives else ():
        is_representative(predicate, representatives)
    for leaf in block.leaves if representatives else ():
        for read in leaf.reads if isinstance(leaf, Function) else ():
            if read in representatives:
                raise NotDifferentiable(f"a function of one of several equal values of type {representatives[read]}")


def representative_columns(rows: Rows) -> tuple[bool, ...]:
    """Tell for each column of some rows whether it may hold one of several equal values, in whichever block."""
    found = []
    for block, columns in rows:
        refuse_telling_apart(block)
        representatives = representatives_in(block)
        found.append([is_representative(column, representatives) for column in columns])
    return tuple(any(flags) for flags in zip(*found, strict=True))


def pushed_down_columns(rows: Rows) -> tuple[bool, ...]:
    """Tell for each column of some rows whether PostgreSQL may move a condition on it below an operation."""
    found = []
    for block, columns in rows:
        representatives = representatives_in(block, pushed_down=True)
        found.append([any(each in representatives for each in _columns(column)) for column in columns])
    return tuple(any(flags) for flags in zip(*found, strict=True))


def differing(facts: Facts, node: Relation | Operation) -> tuple[str, ...]:
    """Return for each column of a relation or of an operation its type, and its collation if it has one of its own.

    It is empty for a column whose equal values are the same text.
    """
    types = facts.types_of(node)
    # A text without a collation of its own has the default one, which compares bytes.
    collations = (None,) * len(types) if facts.definition.bytewise else facts.collations_of(node)
    return tuple(_sort(facts, *each) for each in zip(types, collations, strict=True))


def _sort(facts: Facts, type_name: str, collation: str | None) -> str:
    if not _may_differ(facts, type_name, collation):
        return ""
    return f"{type_name} COLLATE {collation}".replace('"', "") if collation else type_name


def _may_differ(facts: Facts, type_name: str, collation: str | None) -> bool:
    element = type_name.rstrip("[]")
    if has_one_text(element):
        return collation is not None
    if not facts.definition.bytewise or base_of(element) in AMBIGUOUS:
        return True
    return not facts.has_one_text(element)


def _columns(node: exp.Expr) -> frozenset[tuple[str, str]]:
    return frozenset((column.table, column.name) for column in node.find_all(exp.Column))
