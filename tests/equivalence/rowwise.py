"""Random expressions and rows computed from one row alone: set-returning calls, and subqueries without tables."""

from tests.equivalence.expressions import outputs
from tests.equivalence.joins import source
from tests.equivalence.subqueries import rows_of
from tests.equivalence.values import BIGINT, INT, TEXT, Type
from tests.equivalence.writer import Item, Query, Scope, Writer


def unrolled(writer: Writer) -> Query:
    """Call one or two set-returning functions in the select list, perhaps distinct, grouped or over groups."""
    found = source(writer)
    calls = [_call(writer, found.scope) for _ in range(writer.rng.randint(1, 2))]
    shape = writer.rng.choice(("rows", "rows", "rows", "distinct", "grouped", "over groups"))
    if shape == "grouped":
        keys = ", ".join(text for text, _ in calls)
        return writer.select("SELECT", [*calls, ("count(*)", BIGINT)], f"{found.sql()} GROUP BY {keys}")
    if shape == "over groups":
        key = writer.rng.choice(found.scope)
        series = ("generate_series(1, CAST(least(count(*), 3) AS integer))", INT)
        return writer.select("SELECT", [(key.name, key.type.chosen()), series], f"{found.sql()} GROUP BY {key.name}")
    own = outputs(writer, found.scope, 2)
    if shape == "distinct":
        own = [(text, each.chosen()) for text, each in own]
    return writer.select("SELECT DISTINCT" if shape == "distinct" else "SELECT", [*own, *calls], found.sql())


def _call(writer: Writer, scope: Scope) -> Item:
    arrays = [column.name for column in scope if column.type.family == "ints"]
    integers = [column.name for column in scope if column.type.family == "int"]
    if arrays and writer.chance(0.7):
        array = writer.rng.choice(arrays)
        return writer.rng.choice(((f"unnest({array})", INT), (f"(unnest({array}) + 1)", INT)))
    texts = [column.name for column in scope if column.type is TEXT]
    if texts and writer.chance(0.3):
        text = writer.rng.choice(texts)
        return writer.rng.choice((f"string_to_table({text}, 'b')", f"(regexp_matches({text}, '[a-z]', 'g'))[1]")), TEXT
    bound = f"CAST(least({writer.rng.choice(integers)}, 3) AS integer)" if integers else "2"
    return f"generate_series(1, {bound})", INT


def array(writer: Writer, scope: Scope, type_: Type) -> str | None:
    """Write ARRAY over a subquery with a total order, or over the elements of an array of the row."""
    if type_.family != "ints":
        return None
    own = [column.name for column in scope if column.type.family == "ints"]
    if own and writer.chance(0.4):
        order = writer.rng.choice(("", " ORDER BY u.v", " ORDER BY u.v DESC NULLS LAST LIMIT 2"))
        distinct = "DISTINCT " if "LIMIT" not in order and order and writer.chance(0.5) else ""
        return f"ARRAY(SELECT {distinct}u.v FROM unnest({writer.rng.choice(own)}) AS u (v){order})"
    found = rows_of(writer, scope, 0.8)
    integers = [column.name for column in found.scope if column.type.name == "integer"] if found else []
    if found is None or not integers:
        return None
    shown = writer.rng.choice(integers)
    if writer.chance(0.3):
        return f"ARRAY(SELECT DISTINCT {shown}{found.sql()} ORDER BY {writer.ordered(shown)})"
    limit = writer.rng.choice(("", "", f" LIMIT {writer.rng.randint(0, 3)}"))
    return f"ARRAY(SELECT {shown}{found.sql()} ORDER BY {writer.total_order(found.scope)}{limit})"


def elements(writer: Writer, scope: Scope, type_: Type) -> str | None:
    """Write a scalar subquery over the elements of an array of the row."""
    arrays = [column.name for column in scope if column.type.family == "ints"]
    if not arrays or type_.name not in {INT.name, TEXT.name}:
        return None
    rows = f"FROM unnest({writer.rng.choice(arrays)}) AS u (v)"
    if type_.name == TEXT.name:
        return f"(SELECT string_agg(CAST(u.v AS text), ',' ORDER BY u.v) {rows})"
    order = writer.rng.choice(("", " ORDER BY u.v DESC"))
    return writer.rng.choice((f"(SELECT max(u.v) {rows})", f"(SELECT u.v {rows} WHERE u.v > 0{order} LIMIT 1)"))


def among(writer: Writer, scope: Scope) -> str | None:
    """Write EXISTS or IN over the elements of an array, or over a series, of the row."""
    arrays = [column.name for column in scope if column.type.family == "ints"]
    integers = [column for column in scope if column.type.family == "int"]
    if not integers:
        return None
    number = writer.rng.choice(integers).name
    rows = f"generate_series(1, CAST(least({number}, 3) AS integer)) AS g (v)"
    if arrays and writer.chance(0.7):
        rows = f"unnest({writer.rng.choice(arrays)}) AS g (v)"
    tests = (f"EXISTS (SELECT FROM {rows} WHERE g.v <> {number})", f"{number} NOT IN (SELECT g.v FROM {rows})")
    return writer.rng.choice(tests)


def optional(writer: Writer, scope: Scope) -> Query | None:
    """Write rows of the row, with a filter, as LATERAL items are joined by LEFT JOIN too."""
    arrays = [column.name for column in scope if column.type.family == "ints"]
    if not arrays:
        return None
    rows = f" FROM unnest({writer.rng.choice(arrays)}) AS u (v) WHERE u.v IS DISTINCT FROM 1"
    return writer.select("SELECT", [("u.v", INT), ("coalesce(u.v, 0)", INT)], rows)
