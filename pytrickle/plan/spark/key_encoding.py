"""Which columns can be told equal outside of PostgreSQL: their types, followed below operations, and their carriers."""

from dataclasses import dataclass

from pytrickle.catalog.definition import Definition
from pytrickle.plan.algebra.delta import blocks_of
from pytrickle.plan.algebra.relation import Derived, Equality, Expr, Function, Leaf, Operation, Project, Scan, leaves
from pytrickle.plan.missing_index import TEXTUAL
from pytrickle.plan.sql.types import base_of

INTEGER = frozenset({"int2", "int4", "int8"})
CANONICAL = frozenset({"uuid", "date", "timestamp", "timestamptz", "bool", "bytea"})
BASE_TYPES = {
    "smallint": "int2",
    "integer": "int4",
    "bigint": "int8",
    "numeric": "numeric",
    "boolean": "bool",
    "bytea": "bytea",
    "date": "date",
    "timestamp with time zone": "timestamptz",
    "timestamp without time zone": "timestamp",
    "uuid": "uuid",
}


@dataclass(frozen=True, slots=True)
class Kind:
    """A column's base type, and whether equality is bytewise where a collation decides it."""

    base_type: str
    bytewise: bool


def carrier(equality: Equality, left: Kind | None, right: Kind | None) -> str | None:
    """Return a template, if any, that maps both sides to one value exactly where PostgreSQL finds them equal.

    >>> integer = Kind("int4", True)
    >>> carrier(Equality(("l", "k"), ("r", "k"), null_safe=True), integer, integer)
    "coalesce(CAST('=' AS text) || CAST({} AS bigint), '')"
    """
    found = None if left is None or right is None else _template(equality, left, right)
    # As texts that begin with a sign, values leave the empty text to NULL.
    return f"coalesce(CAST('=' AS text) || {found}, '')" if found and equality.null_safe else found


def _template(equality: Equality, left: Kind, right: Kind) -> str | None:
    types = {left.base_type, right.base_type}
    if types <= TEXTUAL and left.bytewise and right.bytewise:
        return "CAST({} AS text)"
    if equality.as_text:
        return None
    if types <= INTEGER:
        return "CAST({} AS bigint)"
    if types == {"numeric"}:
        return "CAST(trim_scale({}) AS text)"
    return "CAST({} AS text)" if len(types) == 1 and types <= CANONICAL else None


def kind_of(leaf: Leaf, column: str, definition: Definition) -> Kind | None:
    """Return the kind of a leaf's column; None where a collation may decide and the column does not say which."""
    match leaf:
        case Scan(relid=relid):
            found = definition.source(relid).column(column)
            return Kind(found.base_type, found.deterministic) if found else None
        case Derived(operation=operation):
            return _without_collation(operation, column) or _kind_shown(operation, column, definition)
        case Function():
            return None


def _without_collation(operation: Operation, column: str) -> Kind | None:
    types = dict(zip(operation.columns, operation.types, strict=False))
    base_type = BASE_TYPES.get(base_of(types.get(column, "")))
    return Kind(base_type, True) if base_type else None


def _kind_shown(operation: Operation, column: str, definition: Definition) -> Kind | None:
    """Return the kind of the source column that an operation's column shows, wherever its rows come from."""
    if column not in operation.arguments:
        return None
    kinds = {_kind_in(block, column, definition) for block in blocks_of(operation.input)}
    return kinds.pop() if len(kinds) == 1 else None


def _kind_in(block: Project, column: str, definition: Definition) -> Kind | None:
    expr = dict(block.columns)[column]
    for leaf in leaves(block):
        if expr.tables == {leaf.alias}:
            return _shown(expr, leaf, definition)
    return None


def _shown(expr: Expr, leaf: Leaf, definition: Definition) -> Kind | None:
    """Return the kind of an expression that is one of the leaf's columns, as it is or as text."""
    if expr.shown is None or expr.shown.column[0] != leaf.alias or expr.shown.column[1] not in _columns(leaf):
        return None
    kind = kind_of(leaf, expr.shown.column[1], definition)
    return _as_text(kind) if expr.shown.as_text else kind


def _columns(leaf: Leaf) -> tuple[str, ...]:
    match leaf:
        case Derived(operation=operation):
            return operation.columns
        case Scan(columns=columns) | Function(columns=columns):
            return columns


def _as_text(kind: Kind | None) -> Kind | None:
    """The text of a collated value keeps its collation; that of others has the default one, which is bytewise."""
    if kind is None:
        return None
    if kind.base_type in TEXTUAL:
        return Kind("text", kind.bytewise)
    return Kind("text", True) if kind.base_type in BASE_TYPES.values() else None
