"""Which columns can be told equal outside of PostgreSQL: their types, followed below operations, and their carriers."""

from dataclasses import dataclass

from pytrickle.catalog.definition import Definition
from pytrickle.plan.algebra.delta import blocks_of
from pytrickle.plan.algebra.relation import Derived, Equality, Expr, Function, Leaf, Operation, Project, Scan, leaves
from pytrickle.plan.postgres.aggregate import INTEGERS
from pytrickle.plan.postgres.equated import TEXTUAL
from pytrickle.plan.sql.types import base_of

INTEGER = frozenset({"int2", "int4", "int8"})
INFINITE = {"infinity": 2147483647, "-infinity": -2147483648}
DAYS = (
    "CASE WHEN isfinite({0}) THEN {0} - DATE 'J0' "
    + "".join(f"WHEN {{0}} = '{name}' THEN {number} " for name, number in INFINITE.items())
    + "END"
)
# Values of one of these types are equal where these are: Spark compares numbers and bytes faster than texts. What a
# type sends in binary form costs the server less than its text does, and has infinities and years BC.
NATIVE = {
    "bool": "{}",
    "bytea": "{}",
    "date": DAYS,
    "timestamp": "timestamp_send({})",
    "timestamptz": "timestamptz_send({})",
    "uuid": "uuid_send({})",
}
CANONICAL = frozenset(NATIVE)
SIGN = "coalesce(CAST('=' AS text)"
INTEGRAL, TEXT, UNSCALED = "CAST({} AS bigint)", "CAST({} AS text)", "CAST(trim_scale({}) AS text)"
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
    "coalesce(CAST('=' AS text) || CAST(CAST({} AS bigint) AS text), '')"
    """
    found = None if left is None or right is None else _template(equality, left, right)
    return null_safe(found) if found and equality.null_safe else found


def null_safe(template: str) -> str:
    """Write values as texts that begin with a sign, which leave the empty text to NULL."""
    return f"{SIGN} || CAST({template} AS text), '')"


def is_null_safe(template: str) -> bool:
    """Whether a template writes NULL as the empty text."""
    return template.startswith(SIGN)


def _template(equality: Equality, left: Kind, right: Kind) -> str | None:
    types = {left.base_type, right.base_type}
    if types <= TEXTUAL and left.bytewise and right.bytewise:
        return TEXT
    if equality.as_text:
        return None
    if types <= INTEGER:
        return INTEGRAL
    if types == {"numeric"}:
        return UNSCALED
    return NATIVE.get(left.base_type) if len(types) == 1 else None


# All that a column is carried by; none of them can fail.
RENDERINGS = tuple(
    form
    for each in (INTEGRAL, TEXT, UNSCALED, "CAST({} AS boolean)", *NATIVE.values())
    for form in (each, null_safe(each))
)


def carried_key(sql: str, type_name: str) -> str:
    """Write what Spark groups by for a key, which `shown_key` makes a text of again.

    Integers, like truth values, have one text each.
    """
    if type_name in INTEGERS:
        return f"CAST({sql} AS bigint)"
    if type_name == "date":
        return DAYS.format(f"({sql})")
    return f"CAST({sql} AS {'boolean' if type_name == 'boolean' else 'text'})"


def shown_key(column: str, type_name: str) -> str:
    """Write in Spark's SQL the text of a key that PostgreSQL reads: a date is the number of its day.

    >>> shown_key("k", "bigint")
    'CAST(k AS STRING)'
    """
    if type_name != "date":
        return f"CAST({column} AS STRING)"
    infinite = " ".join(f"WHEN {number} THEN '{name}'" for name, number in INFINITE.items())
    return f"CASE {column} {infinite} ELSE 'J' || CAST({column} AS STRING) END"


def kind_of(leaf: Leaf, column: str, definition: Definition) -> Kind | None:
    """Return the kind of a leaf's column; None where a collation may decide and the column does not say which."""
    match leaf:
        case Scan(relid=relid):
            found = definition.source(relid).column(column)
            return Kind(found.base_type, found.deterministic) if found else None
        case Derived(operation=operation):
            return _without_collation(operation, column) or _argument_kind(operation, column, definition)
        case Function():
            return None


def _without_collation(operation: Operation, column: str) -> Kind | None:
    types = dict(zip(operation.columns, operation.types, strict=False))
    base_type = BASE_TYPES.get(base_of(types.get(column, "")))
    return Kind(base_type, True) if base_type else None


def _argument_kind(operation: Operation, column: str, definition: Definition) -> Kind | None:
    """Return the kind of the source column that an operation's argument shows, wherever its rows come from."""
    if column not in operation.arguments:
        return None
    kinds = {_kind_in(block, column, definition) for block in blocks_of(operation.input)}
    return kinds.pop() if len(kinds) == 1 else None


def row_kind(derived: Derived, column: str, definition: Definition) -> Kind | None:
    """Return the kind of what the rows of an operation hold, whether it shows that or not."""
    if column in derived.operation.columns:
        return kind_of(derived, column, definition)
    return _argument_kind(derived.operation, column, definition)


def _kind_in(block: Project, column: str, definition: Definition) -> Kind | None:
    expr = dict(block.columns)[column]
    for leaf in leaves(block):
        if expr.tables == {leaf.alias}:
            return shown_kind(expr, leaf, definition)
    return None


def shown_kind(expr: Expr, leaf: Leaf, definition: Definition) -> Kind | None:
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
