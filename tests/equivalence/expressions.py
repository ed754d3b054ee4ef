"""Random expressions: values of a type, and predicates, which may be unknown."""

from tests.equivalence.values import BOOL, TEXT, Type
from tests.equivalence.writer import Item, Scope, Writer, alike

_TEMPLATES = {
    "int": ("{0} + 1", "abs({0})", "- {0}", "{0} % 3", "({0} - 1) * 2 - {0}"),
    "numeric": ("{0} + {1}", "- {0}", "abs({0})", "round({0}, 1)", "{0} - (1 - {0})"),
    "text": ("{0} || 'x'", "upper({0})", "left({0}, 1)", "replace({0}, 'a', 'b')", "length({0})"),
    "date": ("{0} + 1",),
    "time": ("{0} + interval '1 day'", "date_trunc('day', {0})"),
    "bool": ("NOT {0}", "{0} AND {1}", "{0} IS NULL"),
    "ints": ("{0} || 1", "array_remove({0}, 1)", "({0})[1:1]"),
}


def value(writer: Writer, scope: Scope, type_: Type, depth: int = 2) -> str:
    """Write an expression of a type: equal where what it reads is equal."""
    rng = writer.rng
    columns = [column.name for column in scope if column.type == type_]
    if writer.grammar.values and writer.chance(0.12):
        extra = rng.choice(writer.grammar.values)(writer, scope, type_)
        if extra:
            return extra
    if not columns or depth == 0:
        return rng.choice(columns) if columns and writer.chance(0.9) else writer.literal(type_)
    inner = value(writer, scope, type_, depth - 1)
    shapes = [
        lambda: inner,
        lambda: f"coalesce({inner}, {writer.literal(type_)})",
        lambda: _case(writer, scope, type_, inner, depth - 1),
        lambda: f"NULLIF({inner}, {writer.literal(type_)})",
        *(lambda t=template: _cast(writer, t, inner, type_) for template in _TEMPLATES.get(type_.family, ())),
    ]
    return rng.choice(shapes)()


def _case(writer: Writer, scope: Scope, type_: Type, inner: str, depth: int) -> str:
    test, other = condition(writer, scope, depth), value(writer, scope, type_, depth)
    return f"CASE WHEN {test} THEN {inner} ELSE {other} END"


def _cast(writer: Writer, template: str, inner: str, type_: Type) -> str:
    return f"CAST({template.format(inner, writer.literal(type_))} AS {type_.name})"


def output(writer: Writer, scope: Scope) -> Item:
    """Write an output column."""
    if writer.grammar.conditions and writer.chance(0.08):
        return f"({condition(writer, scope)})", BOOL
    found = writer.rng.choice(scope)
    return (value(writer, scope, found.type) if writer.chance(0.4) else found.name), found.type


def outputs(writer: Writer, scope: Scope, most: int = 4) -> list[Item]:
    """Write some output columns."""
    return [output(writer, scope) for _ in range(writer.rng.randint(1, most))]


def condition(writer: Writer, scope: Scope, depth: int = 1) -> str:
    """Write a predicate, which may be unknown."""
    test = _test(writer, scope)
    if depth and writer.chance(0.4):
        joiner = writer.rng.choice((" AND ", " OR ", " AND NOT "))
        return f"({test}{joiner}({condition(writer, scope, depth - 1)}))"
    return test


def _test(writer: Writer, scope: Scope) -> str:
    if writer.grammar.conditions and writer.chance(0.3):
        extra = writer.rng.choice(writer.grammar.conditions)(writer, scope)
        if extra:
            return extra
    column = writer.rng.choice(scope)
    other = writer.rng.choice([each for each in scope if alike(each.type, column.type)])
    literal = writer.literal
    tests = [
        f"{column.name} = {literal(column.type)}",
        f"{column.name} <> {other.name}",
        f"{column.name} IS NOT NULL",
        f"{column.name} IS NULL",
        f"{column.name} IS NOT DISTINCT FROM {other.name}",
        f"{column.name} IN ({literal(column.type)}, {literal(column.type)}, NULL)",
        f"{column.name} NOT IN ({literal(column.type)}, {literal(column.type)})",
    ]
    if column.type.ordered:
        tests += [f"{column.name} <= {other.name}", f"{column.name} > {literal(column.type)}"]
    if column.type is TEXT:
        tests += [f"{column.name} LIKE 'a%'", f"{column.name} ~ '^[a-z]'"]
    if column.type is BOOL:
        tests += [column.name, f"NOT {column.name}", f"{column.name} IS NOT TRUE"]
    return writer.rng.choice(tests)
