"""Random predicates: patterns, conditions that are never true, comparisons across types, and whole rows."""

from tests.equivalence.schemas import Column
from tests.equivalence.subqueries import rows_of
from tests.equivalence.values import BIGINT, TEXT, VARCHAR
from tests.equivalence.writer import Item, Scope, Writer

_NUMBERS = ("integer", "smallint", "bigint", "numeric", "numeric(10,2)", "double precision", "real")
_TEXTS = ("text", "character varying(6)", "character(3)")
_PATTERNS = (
    "{} LIKE '%!_%' ESCAPE '!'",
    "{} NOT LIKE 'a#%' ESCAPE '#'",
    "{} LIKE 'a%' ESCAPE ''",
    "{} ILIKE 'A%'",
    "{} NOT ILIKE '%b'",
    "{} SIMILAR TO '(a|b)%'",
    "{} NOT SIMILAR TO '[a-z]+'",
    "{} SIMILAR TO '#%%' ESCAPE '#'",
    "{} ~* '^A.?$'",
    "{} !~ '[[:upper:]]'",
    "{} !~* 'b|\\s'",
    "{} LIKE ANY (ARRAY['a%', '%b'])",
    "starts_with({}, 'a')",
)


def pattern(writer: Writer, scope: Scope) -> str | None:
    """Match a text with a pattern."""
    texts = [column.name for column in scope if column.type in (TEXT, VARCHAR)]
    return writer.rng.choice(_PATTERNS).format(writer.rng.choice(texts)) if texts else None


def never(writer: Writer, scope: Scope) -> str:
    """Write what is true for no row, alone or beside what may be."""
    name = writer.rng.choice(scope).name
    false = (
        "false",
        "1 = 0",
        "NULL::boolean",
        "NOT true",
        f"({name} IS NULL AND {name} IS NOT NULL)",
        f"{name} <> {name}",
    )
    found = writer.rng.choice(false)
    return found if writer.chance(0.4) else f"({found} OR {name} IS NOT NULL)"


def across_types(writer: Writer, scope: Scope) -> str | None:
    """Write IN or a quantified comparison of values of two types, which PostgreSQL compares as a third one."""
    found = rows_of(writer, scope, 0.2)
    if found is None:
        return None
    pairs = [(a, b) for a in found.scope for b in scope if a.type.name != b.type.name and _comparable(a, b)]
    if not pairs:
        return f"EXISTS (SELECT 1{found.sql()})"
    inner, outer = writer.rng.choice(pairs)
    word = writer.rng.choice(("IN", "NOT IN", "= ANY", "<> ALL", "< ANY", ">= ALL"))
    return f"{outer.name} {word} (SELECT {inner.name}{found.sql()})"


def _comparable(one: Column, other: Column) -> bool:
    return any({one.type.name, other.type.name} <= set(group) for group in (_NUMBERS, _TEXTS))


def whole(writer: Writer, scope: Scope) -> str | None:
    """Ask for a whole row in a predicate."""
    alias = _alias(writer, scope)
    tests = ("{}.* IS NULL", "({}.* IS NOT NULL) IS NOT TRUE", "{0}.* = {0}.*", "{}.* IS DISTINCT FROM NULL")
    return writer.rng.choice(tests).format(alias) if alias else None


def of_whole(writer: Writer, scope: Scope) -> Item | None:
    """Count whole rows."""
    alias = _alias(writer, scope)
    distinct = writer.rng.choice(("", "DISTINCT "))
    return (f"count({distinct}{alias}.*)", BIGINT) if alias else None


def _alias(writer: Writer, scope: Scope) -> str | None:
    aliases = sorted({column.name.partition(".")[0] for column in scope if column.name.startswith("f")})
    return writer.rng.choice(aliases) if aliases else None
