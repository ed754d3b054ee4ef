"""Random aggregate calls."""

from dataclasses import replace

from tests.equivalence.expressions import condition, value
from tests.equivalence.schemas import Column
from tests.equivalence.values import BIGINT, BOOL, FLOAT, INT, INTS, JSONB, NUMERIC, TEXT, Type
from tests.equivalence.writer import Item, Scope, Writer

_PLAIN = ("count", "count", "sum", "sum", "avg", "min", "max")


def call(writer: Writer, scope: Scope) -> Item:
    """Write an aggregate call, perhaps filtered, perhaps within an expression."""
    text, result = _bare(writer, scope)
    if writer.chance(0.25):
        text += f" FILTER (WHERE {condition(writer, scope)})"
    wrap = writer.rng.random()
    if wrap < 0.12 and result.family in {"int", "numeric"}:
        changed = replace(NUMERIC, blurred=result.blurred)
        return f"(coalesce({text}, 0) * 2 + 1)", changed
    if wrap < 0.2:
        return f"CASE WHEN count(*) > 1 THEN {text} END", result
    return text, result


def _bare(writer: Writer, scope: Scope) -> Item:
    if writer.grammar.calls and writer.chance(0.4):
        extra = writer.rng.choice(writer.grammar.calls)(writer, scope)
        if extra:
            return extra
    return extremum(writer, scope)


def extremum(writer: Writer, scope: Scope) -> Item:
    """Write a call of count, sum, avg, min or max."""
    function = writer.rng.choice(_PLAIN)
    usable = [column for column in scope if _fits(function, column.type)]
    if (function == "count" and writer.chance(0.5)) or not usable:
        return "count(*)", BIGINT
    argument, type_ = _argument(writer, scope, usable)
    if function == "count":
        return f"count({argument})", BIGINT
    if function in {"min", "max"}:
        return f"{function}({argument})", type_.chosen()
    return f"{function}({argument})", total(type_)


def total(type_: Type) -> Type:
    """The type of a sum: a number has the scale of what it adds, an interval may keep the text of an equal one."""
    return replace(NUMERIC, blurred=type_.blurred) if type_.family in {"int", "numeric"} else type_.chosen()


def _argument(writer: Writer, scope: Scope, usable: list[Column]) -> Item:
    column = writer.rng.choice(usable)
    return (value(writer, scope, column.type) if writer.chance(0.4) else column.name), column.type


def _fits(function: str, type_: Type) -> bool:
    if function == "sum":
        return type_.summed
    if function == "avg":
        return type_.summed and not type_.blurred
    return type_.ordered if function in {"min", "max"} else True


def _drawn(writer: Writer, scope: Scope, families: set[str]) -> Item | None:
    usable = [column for column in scope if column.type.family in families and not column.type.blurred]
    return _argument(writer, scope, usable) if usable else None


def of_distinct(writer: Writer, scope: Scope) -> Item | None:
    """Write an aggregate over distinct values; which of equal values is counted must not matter."""
    argument, type_ = _argument(writer, scope, list(scope))
    if type_.family == "int" and writer.chance(0.5):
        return f"{writer.rng.choice(('sum', 'avg'))}(DISTINCT {argument})", NUMERIC
    return f"count(DISTINCT {argument})", BIGINT


def of_truth(writer: Writer, scope: Scope) -> Item | None:
    """Write bool_and, bool_or or every."""
    return f"{writer.rng.choice(('bool_and', 'bool_or', 'every'))}({condition(writer, scope)})", BOOL


def of_spread(writer: Writer, scope: Scope) -> Item | None:
    """Write a variance or a standard deviation, of exact numbers."""
    found = _drawn(writer, scope, {"int", "numeric"})
    functions = ("stddev", "stddev_pop", "variance", "var_pop", "var_samp", "stddev_samp")
    return (f"{writer.rng.choice(functions)}({found[0]})", NUMERIC) if found else None


def of_bits(writer: Writer, scope: Scope) -> Item | None:
    """Write bit_and, bit_or or bit_xor."""
    found = _drawn(writer, scope, {"int"})
    functions = ("bit_and", "bit_or", "bit_xor")
    return (f"{writer.rng.choice(functions)}({found[0]})", found[1]) if found else None


def of_texts(writer: Writer, scope: Scope) -> Item | None:
    """Write string_agg in an order that decides between all texts that differ."""
    found = _drawn(writer, scope, {"text"})
    if found is None:
        return None
    text, order = found[0], writer.ordered(found[0])
    if writer.chance(0.3):
        return f"string_agg(DISTINCT {text}, ','{writer.rng.choice(('', f' ORDER BY {text}'))})", TEXT
    first = writer.rng.choice(scope).name
    return f"string_agg({text}, ',' ORDER BY {writer.ordered(first)}, {order})", TEXT


def of_rows(writer: Writer, scope: Scope) -> Item | None:
    """Write array_agg or jsonb_agg in an order that decides between all values that differ."""
    found = _drawn(writer, scope, {"int"})
    if found is None:
        return None
    listed = f"{found[0]} ORDER BY {writer.total_order(scope)}, {found[0]}"
    if writer.chance(0.3):
        listed = f"DISTINCT {found[0]}"
    if found[1].name == INT.name:
        return f"array_agg({listed})", INTS
    return f"jsonb_agg({listed})", JSONB


def of_order(writer: Writer, scope: Scope) -> Item | None:
    """Write an ordered-set aggregate."""
    argument, type_ = _argument(writer, scope, list(scope))
    if type_.family == "int" and writer.chance(0.4):
        return f"percentile_cont(0.5) WITHIN GROUP (ORDER BY {argument})", FLOAT
    function = writer.rng.choice(("mode()", "percentile_disc(0.25)", "percentile_disc(1)"))
    return f"{function} WITHIN GROUP (ORDER BY {argument})", type_.chosen()
