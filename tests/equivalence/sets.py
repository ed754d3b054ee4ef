"""Random set operations, derived tables of constants, and joins by column names."""

from tests.equivalence.expressions import value
from tests.equivalence.joins import source
from tests.equivalence.schemas import Column
from tests.equivalence.selects import arm, united
from tests.equivalence.values import Type, quote
from tests.equivalence.writer import Query, Writer, chosen

_OPERATORS = (" UNION ", " INTERSECT ", " INTERSECT ALL ", " EXCEPT ", " EXCEPT ALL ", " EXCEPT ", " UNION ALL ")


def operation(writer: Writer) -> Query:
    """Combine two or three queries by set operations, in the order of precedence or in parentheses."""
    types = writer.types(2)
    arms = [arm(writer, types) for _ in range(writer.rng.choice((2, 2, 3)))]
    operators = [writer.rng.choice(_OPERATORS) for _ in arms[1:]]
    if len(arms) == 3 and writer.chance(0.4):
        arms = [arms[0], f"({arms[1]}{operators.pop()}{arms[2]})"]
    query = united(arms, operators, types)
    return chosen(query)


def constants(writer: Writer) -> Query:
    """Write a VALUES list, with NULLs and duplicates."""
    types = writer.types(2)
    lists = [
        ", ".join(f"NULL::{each.name}" if writer.chance(0.2) else writer.literal(each) for each in types)
        for _ in range(writer.rng.randint(1, 3))
    ]
    lists.append(lists[0])
    text = "VALUES " + ", ".join(f"({values})" for values in lists)
    return Query(text, tuple(Column(f"column{i + 1}", each) for i, each in enumerate(types)))


def using(writer: Writer) -> Query:
    """Join two derived tables by the names that their columns share: USING, or NATURAL."""
    types = writer.types(2)
    shared = [quote(f"j{i}") for i in range(len(types))]
    left, right = _named_arm(writer, shared, types, "own"), _named_arm(writer, shared, types, "other")
    word = writer.rng.choice(writer.grammar.joins)
    aliases = writer.alias(), writer.alias()
    names = [*shared, f"{aliases[0]}.own", f"{aliases[1]}.other"]
    kinds = [each.chosen() for each in (*types, types[0], types[0])]
    sides = f"({left}) AS {aliases[0]}", f"({right}) AS {aliases[1]}"
    if writer.chance(0.3):
        joined = f"{sides[0]} NATURAL {word} {sides[1]}"
    else:
        joined = f"{sides[0]} {word} {sides[1]} USING ({', '.join(shared)})"
    return writer.select("SELECT", list(zip(names, kinds, strict=True)), f" FROM {joined}")


def _named_arm(writer: Writer, names: list[str], types: list[Type], own: str) -> str:
    found = source(writer, (0,))
    items = [f"{value(writer, found.scope, each, 1)} AS {name}" for each, name in zip(types, names, strict=True)]
    return f"SELECT {', '.join(items)}, {value(writer, found.scope, types[0], 0)} AS {own}{found.sql()}"
