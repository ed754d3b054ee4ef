"""Expressions that may raise an error for some values: a division, a cast of text, most functions.

What is listed here never fails, but for integers that overflow, and numerics that no float has room for: these are left
to a refresh of the whole table.
"""

import re
from collections.abc import Callable, Iterable

from sqlglot import exp

from pytrickle.plan.sql.three_valued import COMPARISONS, decided, is_null
from pytrickle.plan.sql.types import base_of

Types = Callable[[exp.Column], str | None]

HARMLESS = (
    *COMPARISONS, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Is, exp.Between, exp.Like, exp.ILike, exp.Escape,
    exp.And, exp.Or, exp.Not, exp.Paren, exp.Tuple, exp.Array, exp.In, exp.Any, exp.All, exp.Collate, exp.Interval,
    exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.DPipe, exp.Extract, exp.JSONExtract, exp.JSONExtractScalar,
    exp.Column, exp.Literal, exp.Null, exp.Boolean, exp.Identifier, exp.Var, exp.Star, exp.DataType, exp.DataTypeParam,
)  # fmt: skip
FUNCTIONS = frozenset((
    "coalesce", "nullif", "greatest", "least", "row", "concat", "concat_ws", "lower", "upper", "initcap", "reverse",
    "length", "char_length", "octet_length", "btrim", "ltrim", "rtrim", "replace", "strpos", "starts_with", "md5",
    "abs", "sign", "ceil", "ceiling", "floor", "isfinite", "num_nulls", "num_nonnulls", "array_length", "cardinality",
    "to_jsonb", "to_json", "row_to_json",
))  # fmt: skip
# These fail for some of their further arguments only.
SETTLED_BY_CONSTANTS = frozenset((
    "substring", "substr", "left", "right", "split_part", "lpad", "rpad", "date_trunc", "date_part", "date_bin",
    "round", "trunc", "to_char", "timezone", "regexp_replace",
))  # fmt: skip
WIDENING = ("smallint", "int", "integer", "bigint", "decimal", "numeric", "real", "double precision", "float")
# How many digits before and behind the point a float has room for.
FLOATS = {"real": 37, "double precision": 307, "float": 307}
SIZED = re.compile(r"numeric\((\d+)(?:,(-?\d+))?\)")
MOMENTS = ("date", "timestamp")
# As PostgreSQL prints what the parser knows by other names.
PRINTED_NAME = re.compile(r"[^(\[]+")
PRINTED = {"int": "integer", "decimal": "numeric"}
TEXTUAL = frozenset({"text", "varchar", "character varying", "bpchar", "char", "character"})


def no_types(_: exp.Column) -> str | None:
    """Know the type of no column."""
    return None


def may_fail(expression: exp.Expr, types: Types = no_types) -> bool:
    """Whether evaluating an expression may raise an error for some row.

    >>> from sqlglot import parse_one
    >>> [may_fail(parse_one(text)) for text in ("a + 1", "a / 2", "a / b", "CASE WHEN TRUE THEN 0 ELSE 1 / a END")]
    [False, False, True, False]
    """
    node = expression.unnest()
    match node:
        case exp.Div() | exp.Mod() | exp.IntDiv():
            return _divides(node, types)
        case exp.Cast():
            return may_fail(node.this, types) or _loses(node, types)
        case exp.Case():
            return _any(_reached(node), types)
        case exp.Anonymous():
            return _calls(node, types)
        case _:
            return not isinstance(node, HARMLESS) or _any(node.iter_expressions(), types)


def _any(nodes: Iterable[exp.Expr], types: Types) -> bool:
    return any(may_fail(node, types) for node in nodes)


def _divides(node: exp.Expr, types: Types) -> bool:
    if is_null(node.this) or is_null(node.expression):
        return False
    return _is_zero_or_open(node.expression) or may_fail(node.this, types)


def _is_zero_or_open(node: exp.Expr) -> bool:
    bare = node.unnest()
    while isinstance(bare, exp.Cast):
        bare = bare.this.unnest()
    return not (isinstance(bare, exp.Literal) and any(digit in "123456789" for digit in bare.name))


def _reached(case: exp.Case) -> list[exp.Expr]:
    """List what a CASE may evaluate; conditions that are constants decide at once."""
    found = [case.this] if case.this is not None else []
    for branch in case.args["ifs"]:
        verdict = "open" if case.this is not None else decided(branch.this)
        if verdict is True:
            return [*found, branch.args["true"]]
        if verdict == "open":
            found += [branch.this, branch.args["true"]]
    default = case.args.get("default")
    return found if default is None else [*found, default]


def _calls(call: exp.Anonymous, types: Types) -> bool:
    name = str(call.this).lower().strip('"')
    if name in SETTLED_BY_CONSTANTS:
        loose = [each for each in call.expressions if not _is_constant(each)]
        return len(loose) > 1 or _any(loose, types)
    return name not in FUNCTIONS or _any(call.expressions, types)


def _is_constant(node: exp.Expr) -> bool:
    bare = node.unnest()
    return isinstance(bare, exp.Literal | exp.Null | exp.Interval) or (
        isinstance(bare, exp.Cast) and _is_constant(bare.this)
    )


def _loses(cast: exp.Cast, types: Types) -> bool:
    """Whether a cast may find a value that the other type does not have."""
    wanted = written_type(cast.to)
    if base_of(wanted) in TEXTUAL or wanted == "record" or _is_constant(cast.this):
        return False
    own = _type_of(cast.this, types)
    if own is None:
        return True
    if wanted in {own, base_of(own)} or (own.startswith(MOMENTS) and wanted.startswith(MOMENTS)):
        return False
    if wanted in FLOATS and (sized := SIZED.fullmatch(own)):
        return not _fits_float(int(sized[1]), int(sized[2] or 0), FLOATS[wanted])
    return not (own in WIDENING and wanted in WIDENING and WIDENING.index(own) <= WIDENING.index(wanted))


def _fits_float(precision: int, scale: int, room: int) -> bool:
    """Whether a float has room for all numbers of so many digits, however many of these it loses.

    >>> [_fits_float(*digits, FLOATS["real"]) for digits in ((9, 2), (50, 2), (9, 40))]
    [True, False, False]
    """
    return precision - scale <= room and scale <= room


def _type_of(node: exp.Expr, types: Types) -> str | None:
    bare = node.unnest()
    match bare:
        case exp.Column():
            return types(bare)
        case exp.Cast():
            return written_type(bare.to)
        case exp.Literal() if not bare.is_string:
            return "integer" if bare.is_int else "numeric"
        case exp.Add() | exp.Sub() | exp.Mul():
            sides = {_type_of(bare.this, types), _type_of(bare.expression, types)}
            known = [name for name in WIDENING if name in sides]
            return known[-1] if len(known) == len(sides) else None
        case _:
            return None


def written_type(kind: exp.Expr) -> str:
    """Write the type of a cast as PostgreSQL prints it.

    >>> from sqlglot import parse_one
    >>> [written_type(parse_one(f"CAST(x AS {name})").to) for name in ("decimal(9, 2)", "int", "text")]
    ['numeric(9,2)', 'integer', 'text']
    """
    name = kind.sql(dialect="postgres").lower().replace(", ", ",")
    return PRINTED_NAME.sub(lambda found: PRINTED.get(found[0], found[0]), name, count=1)
