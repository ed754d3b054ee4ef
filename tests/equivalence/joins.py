"""Random FROM clauses: tables and derived tables, joined by equality, by other conditions, or not at all."""

from tests.equivalence.expressions import condition
from tests.equivalence.schemas import Column
from tests.equivalence.writer import From, Scope, Writer, alike, qualified

Pairs = list[tuple[Column, Column]]
OUTER = ("JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
_MORE = (0, 0, 0, 1, 1, 1, 1, 2, 2, 3)


def source(writer: Writer, more: tuple[int, ...] = _MORE) -> From:
    """Write FROM and WHERE."""
    text, scope = item(writer)
    found = From(text, scope)
    listed = writer.chance(0.2)
    for _ in range(writer.rng.choice(more)):
        if writer.left <= 0:
            break
        found = _extended(writer, found, listed)
    if writer.chance(0.35):
        found = From(found.text, found.scope, (*found.where, condition(writer, found.scope)))
    return found


def item(writer: Writer) -> tuple[str, Scope]:
    """Write a table or a derived table."""
    if writer.depth <= 1 or writer.left <= 1 or writer.chance(0.65):
        return writer.table()
    query, alias = writer.derived(), writer.alias()
    return f"({query.sql}) AS {alias}", qualified(alias, query.columns)


def _extended(writer: Writer, found: From, listed: bool) -> From:
    if writer.grammar.laterals and writer.chance(0.15):
        return _with_lateral(writer, found, listed)
    text, columns = _nested(writer) if not listed and writer.left >= 2 and writer.chance(0.1) else item(writer)
    pairs = [(a, b) for a in found.scope for b in columns if alike(a.type, b.type)]
    equal = bool(pairs) and (writer.crossed or writer.chance(0.85))
    if writer.crossed and not equal:
        return found
    writer.crossed |= not equal
    scope = (*found.scope, *columns)
    if listed:
        more = (equality(writer, pairs, scope, "JOIN"),) if equal else ()
        return From(f"{found.text}, {text}", scope, (*found.where, *more))
    return From(found.text + _joined(writer, text, pairs if equal else [], scope), scope, found.where)


def _joined(writer: Writer, text: str, pairs: Pairs, scope: Scope) -> str:
    word = writer.rng.choice(writer.grammar.joins)
    if pairs:
        return f" {word} {text} ON {equality(writer, pairs, scope, word)}"
    if word in {"JOIN", "FULL JOIN"}:
        return f" CROSS JOIN {text}"
    return f" {word} {text} ON {writer.rng.choice(('true', condition(writer, scope)))}"


def equality(writer: Writer, pairs: Pairs, scope: Scope, word: str) -> str:
    """Write a join condition that holds an equality, and perhaps more."""
    drawn = writer.rng.sample(pairs, min(len(pairs), writer.rng.choice((1, 1, 1, 2))))
    equal = [f"{a.name} = {b.name}" if writer.chance(0.7) else f"{b.name} = {a.name}" for a, b in drawn]
    if word != "FULL JOIN" and len(writer.grammar.joins) > 1 and writer.chance(0.08):
        equal = [f"{a.name} IS NOT DISTINCT FROM {b.name}" for a, b in drawn]
    if writer.chance(0.12 if len(writer.grammar.joins) == 1 else 0.25):
        equal.append(condition(writer, scope))
    return " AND ".join(equal)


def _nested(writer: Writer) -> tuple[str, Scope]:
    """Write a join in parentheses, to stand right of another."""
    left, columns = item(writer)
    right, others = item(writer)
    pairs = [(a, b) for a in columns for b in others if alike(a.type, b.type)]
    if not pairs:
        return left, columns
    scope = (*columns, *others)
    return f"({left}{_joined(writer, right, pairs, scope)})", scope


def _with_lateral(writer: Writer, found: From, listed: bool) -> From:
    query = writer.rng.choice(writer.grammar.laterals)(writer, found.scope)
    if query is None:
        return found
    alias = writer.alias()
    scope = (*found.scope, *qualified(alias, query.columns))
    text = f"LATERAL ({query.sql}) AS {alias}"
    if listed:
        return From(f"{found.text}, {text}", scope, found.where)
    if writer.chance(0.5):
        return From(f"{found.text} CROSS JOIN {text}", scope, found.where)
    on = condition(writer, scope) if writer.chance(0.3) else "true"
    return From(f"{found.text} LEFT JOIN {text} ON {on}", scope, found.where)
