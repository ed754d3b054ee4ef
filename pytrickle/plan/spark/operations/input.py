"""What the input of an operation carries: keys that are equal where PostgreSQL's are, and all that is asked of it.

PostgreSQL evaluates what is asked of a key on each row of the input, where it might never have evaluated it on the
result. So only casts and the like are taken, which cannot fail.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pytrickle.catalog.definition import Definition
from pytrickle.plan.algebra.relation import Derived, Equality, Expr
from pytrickle.plan.spark.key_encoding import INTEGRAL, NATIVE, RENDERINGS, carrier, null_safe, row_kind
from pytrickle.plan.spark.mixed import Mixed, Translator, as_it_is
from pytrickle.plan.spark.numeric_text import DECIMAL, is_decimal
from pytrickle.plan.sql.dialect import quote

AS_TEXT, AS_BIGINT = "CAST({0} AS text)", "CAST({0} AS bigint)"
# Of a row of NULLs IS NULL is true as well, but it is counted.
IS_SET = "CAST(CASE WHEN {0} IS NOT DISTINCT FROM NULL THEN NULL ELSE 1 END AS bigint)"
# An expression with one of these is not searched for columns.
UNSEARCHED = ("{", "}", "\\", "$")
SIDE = "pgt_side"
OF_RESULT = "is read by an expression"
# What outer joins show in place of a partner.
NULL = re.compile(r"(?:CAST\(|\()+NULL(?:\)| AS [\w ,()]+\))+", re.IGNORECASE)

COUNTED_NULL = re.compile(IS_SET.replace("(", r"\(").replace(")", r"\)").format(NULL.pattern), re.IGNORECASE)
DECIMAL_NULL = re.compile(DECIMAL.format(NULL.pattern), re.IGNORECASE)
NULLS = (NULL, COUNTED_NULL, DECIMAL_NULL)


def plain(template: str) -> str:
    """Write a template without parentheses around its column.

    >>> plain("CAST(({}) AS text)") == plain("CAST({0} AS text)")
    True
    """
    return template.replace("{}", "{0}").replace("({0})", "{0}")


class LeftToPostgres(Exception):
    """Spark cannot compute an operation exactly, or should not; it says of what that comes."""


SAFE = frozenset(map(plain, RENDERINGS))
# Equal values of what is carried so are the same text.
OF_ONE_TEXT = frozenset(map(plain, (INTEGRAL, *NATIVE.values())))


def is_safe(template: str) -> bool:
    """Whether PostgreSQL can write every value of a column by a template: it never fails."""
    return template in SAFE or is_decimal(template)


@dataclass(slots=True)
class InputCarriers:
    """Collects the templates that each argument of an operation is carried by; the first of a key is its identity."""

    carried: dict[str, list[str]] = field(default_factory=dict)

    def column(self, argument: str, template: str) -> str:
        """Have an argument carried by a template; return the column of the input that holds it."""
        templates = self.carried.setdefault(argument, [])
        if template not in templates:
            templates.append(template)
        return f"{argument}_{templates.index(template)}"

    def of(self, name: str, expr: Expr) -> tuple[tuple[str, Mixed], ...]:
        """List the columns that a block of the input carries for an argument."""
        templates = self.carried.get(name, [])
        return tuple((f"{name}_{i}", as_it_is(expr, each.format(f"({expr.sql})"))) for i, each in enumerate(templates))

    def mixed(self, name: str, expr: Expr, translator: Translator) -> None:
        """Leave an argument over several leaves to PostgreSQL."""

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns, in the order in which operations name their arguments."""
        return tuple(f"{name}_{i}" for name, templates in self.carried.items() for i in range(len(templates)))


def take_keys(derived: Derived, definition: Definition, rows: InputCarriers) -> None:
    """Have the keys carried by values that are equal where PostgreSQL finds the keys equal.

    Raise LeftToPostgres where there are no keys, or that cannot be.
    """
    operation = derived.operation
    if not operation.keys:
        raise LeftToPostgres("has no keys")
    for key in operation.keys:
        kind = row_kind(derived, key, definition)
        found = carrier(Equality(("", key), ("", key)), kind, kind) if kind else None
        template = plain(found) if found else AS_TEXT if operation.exact else None
        if template is None:
            raise LeftToPostgres("has keys that only PostgreSQL can compare")
        rows.column(key, template)


def searched(derived: Derived, asked: Mapping[str, str]) -> Iterator[tuple[str, str, str | None]]:
    """List what is asked of an operation: the name, the template, and the column, None where it is not of one alone."""
    for expression, name in asked.items():
        template, column = templated(derived, expression)
        yield name, template, column


def templated(derived: Derived, expression: str) -> tuple[str, str | None]:
    """Put {0} in place of the one column that an expression reads; return None beside it where it reads others."""
    types = dict(zip(derived.operation.columns, derived.operation.types, strict=False))
    found = {column for column in derived.operation.columns if _quoted(derived, column) in expression}
    if len(found) != 1 or any(sign in expression for sign in UNSEARCHED):
        return expression, None
    (column,) = found
    # What stands in a string is no column.
    texts = re.split(r"('(?:[^']|'')*')", expression)
    parts = [each if i % 2 else each.replace(_quoted(derived, column), "{0}") for i, each in enumerate(texts)]
    return _uncast(plain("".join(parts)), types.get(column, "")), column


def row_items(derived: Derived, asked: Mapping[str, str], rows: InputCarriers) -> dict[str, str]:
    """Have what is asked of the rows themselves carried, which an operation shows as they are; return it by name.

    Raise LeftToPostgres for what might fail on a row that the operation does not show.
    """
    arguments, items = derived.operation.arguments, dict[str, str]()
    for name, template, column in searched(derived, asked):
        if any(null.fullmatch(template) for null in NULLS):
            items[name] = rows.column(arguments[0], template)
        elif column in arguments and column is not None:
            if not is_safe(template):
                raise LeftToPostgres(OF_RESULT)
            items[name] = rows.column(column, template)
    return items


def key_items(derived: Derived, asked: Mapping[str, str], rows: InputCarriers) -> dict[str, str]:
    """Have what is asked of keys carried; return the columns by name.

    A key whose equal values have several texts can only be asked for what is the same for all of them; else raise
    LeftToPostgres.
    """
    items: dict[str, str] = {}
    for name, template, column in searched(derived, asked):
        if any(null.fullmatch(template) for null in NULLS):
            items[name] = rows.column(derived.operation.keys[0], template)
        if column not in derived.operation.keys or column is None:
            continue
        identity = rows.carried[column][0]
        same_for_equals = derived.operation.exact or template in {identity, plain(null_safe(identity))}
        same_for_equals |= identity in OF_ONE_TEXT or is_decimal(template)
        if not is_safe(template) or not same_for_equals:
            raise LeftToPostgres(OF_RESULT)
        items[name] = rows.column(column, template)
    return items


def _uncast(template: str, type_name: str) -> str:
    """Leave out a cast of a column to its own type."""
    own = f"CAST({{0}} AS {type_name})"
    return template if template == own else plain(template.replace(own, "{0}"))


def _quoted(derived: Derived, column: str) -> str:
    return f"{quote(derived.alias)}.{quote(column)}"
