"""Random defining queries over the whole grammar that has delta rules."""

from dataclasses import dataclass, field, replace
from itertools import count
from random import Random

from tests.equivalence.schemas import Column, Table
from tests.equivalence.values import BIGINT, BOOL, NAMES, NUMERIC, TEXT, Type, quote

Scope = tuple[Column, ...]
WIDEST = 5


@dataclass(frozen=True, slots=True)
class Query:
    """A query, its output columns, and whether even the text of its rows is determined by the sources."""

    sql: str
    columns: tuple[Column, ...]
    exact: bool


@dataclass(slots=True)
class Writer:
    """Writes random queries over some tables; `left` is how many more tables a query may read."""

    rng: Random
    tables: tuple[Table, ...]
    names: "count[int]" = field(default_factory=lambda: count(1))
    left: int = WIDEST
    crossed: bool = False

    def query(self) -> Query:
        """Write one query."""
        kind = self.rng.choices(
            (self.plain, self.grouped, self.ungrouped, self.distinct, self.union, self.with_clause),
            (5, 8, 3, 2, 3, 2),
        )[0]
        return kind()

    def plain(self) -> Query:
        source, scope = self.source(2)
        return self._select("SELECT", source, scope, True)

    def distinct(self) -> Query:
        source, scope = self.source(2)
        return self._certain(self._select("SELECT DISTINCT", source, scope, True))

    def union(self) -> Query:
        """Combine queries whose columns have equal types."""
        types = [self.rng.choice(self._types()) for _ in range(self.rng.randint(1, 3))]
        distinct = self.rng.random() < 0.35
        arms = [self._arm(types) for _ in range(self.rng.randint(2, 3))]
        operators = [" UNION ALL "] * (len(arms) - 1)
        if distinct:
            operators[-1] = " UNION "
        text = arms[0] + "".join(op + arm for op, arm in zip(operators, arms[1:], strict=True))
        names = [Column(quote(f"u{i}"), each) for i, each in enumerate(types)]
        return self._certain(Query(text, tuple(names), True)) if distinct else Query(text, tuple(names), True)

    def with_clause(self) -> Query:
        """Name a derived query in a WITH clause and read it, perhaps twice."""
        inner = self.plain()
        name = f"cte{next(self.names)}"
        table = Table(name, inner.columns, width=WIDEST - self.left)
        outer = Writer(self.rng, (table, table, *self.tables[:1]), self.names, crossed=True)
        query = self.rng.choice((outer.plain, outer.grouped))()
        return replace(query, sql=f"WITH {name} AS ({inner.sql}) {query.sql}")

    def ungrouped(self) -> Query:
        source, scope = self.source(2)
        calls = [self.call(scope) for _ in range(self.rng.randint(1, 4))]
        columns = self._named([(text, each) for text, each, _ in calls])
        having = " HAVING count(*) > 1" if self.rng.random() < 0.2 else ""
        return Query(self._list("SELECT", columns) + source + having, _columns(columns), all(ok for *_, ok in calls))

    def grouped(self) -> Query:
        source, scope = self.source(2)
        keys = [self._key(scope) for _ in range(self.rng.randint(1, 3))]
        calls = [self.call(scope) for _ in range(self.rng.randint(0, 3))]
        items = [*keys, *((text, each) for text, each, _ in calls)]
        self.rng.shuffle(items)
        columns = self._named(items)
        having = f" HAVING {self._having(scope)}" if self.rng.random() < 0.3 else ""
        text = self._list("SELECT", columns) + source + f" GROUP BY {', '.join(text for text, _ in keys)}" + having
        exact = all(ok for *_, ok in calls) and not any(each.ambiguous for _, each in keys)
        return Query(text, _columns(columns), exact)

    def call(self, scope: Scope) -> tuple[str, Type, bool]:
        """Write an aggregate call: text, result type, and whether the text of its result is determined."""
        text, result, exact = self._bare_call(scope)
        if self.rng.random() < 0.25:
            text += f" FILTER (WHERE {self.condition(scope)})"
        wrap = self.rng.random()
        if wrap < 0.12 and result.family in {"int", "numeric"}:
            return (
                f"(coalesce({text}, 0) * 2 + 1)",
                replace(result, name="numeric", family="numeric", ambiguous=True),
                exact,
            )
        if wrap < 0.2:
            return f"CASE WHEN count(*) > 1 THEN {text} END", result, exact
        return text, result, exact

    def _bare_call(self, scope: Scope) -> tuple[str, Type, bool]:
        function = self.rng.choice(("count", "count", "sum", "sum", "avg", "min", "max"))
        usable = [column for column in scope if _fits(function, column.type)]
        if (function == "count" and self.rng.random() < 0.5) or not usable:
            return "count(*)", BIGINT, True
        column = self.rng.choice(usable)
        argument = self.value(scope, column.type) if self.rng.random() < 0.4 else column.name
        if function == "count":
            return f"count({argument})", BIGINT, True
        if function in {"min", "max"}:
            return f"{function}({argument})", column.type, not column.type.ambiguous
        result = NUMERIC if column.type.family in {"int", "numeric"} else column.type
        return f"{function}({argument})", result, True

    def _having(self, scope: Scope) -> str:
        text, result, _ = self._bare_call(scope)
        tests = ["count(*) > 1", f"{text} IS NOT NULL"]
        if result.family in {"int", "numeric"}:
            tests.append(f"{text} > 0")
        return self.rng.choice(tests)

    def source(self, depth: int) -> tuple[str, Scope]:
        """Write FROM and WHERE; return them with the columns that are visible."""
        text, scope = self._item(depth)
        listed, where = self.rng.random() < 0.2, []
        for _ in range(self.rng.choice((0, 0, 0, 1, 1, 1, 1, 2, 2, 3))):
            if self.left <= 0:
                break
            item, columns = self._item(depth - 1)
            pairs = [(a, b) for a in scope for b in columns if a.type == b.type]
            equal = bool(pairs) and (self.crossed or self.rng.random() < 0.85)
            if self.crossed and not equal:
                continue
            self.crossed |= not equal
            condition = self._join_condition(pairs, (*scope, *columns)) if equal else None
            text += self._joined(item, condition, listed)
            where += [condition] if condition and listed else []
            scope = (*scope, *columns)
        if self.rng.random() < 0.35:
            where.append(self.condition(scope))
        return f" FROM {text}" + (f" WHERE {' AND '.join(where)}" if where else ""), scope

    @staticmethod
    def _joined(item: str, condition: str | None, listed: bool) -> str:
        if listed:
            return f", {item}"
        return f" JOIN {item} ON {condition}" if condition else f" CROSS JOIN {item}"

    def _join_condition(self, pairs: list[tuple[Column, Column]], scope: Scope) -> str:
        equal = [
            f"{a.name} = {b.name}" for a, b in self.rng.sample(pairs, min(len(pairs), self.rng.choice((1, 1, 1, 2))))
        ]
        if self.rng.random() < 0.12:
            equal.append(self.condition(scope))
        return " AND ".join(equal)

    def _item(self, depth: int) -> tuple[str, Scope]:
        alias = f"f{next(self.names)}"
        if depth <= 1 or self.rng.random() < 0.7:
            table = self.rng.choice([table for table in self.tables if table.width <= max(self.left, 1)] or self.tables)
            self.left -= table.width
            return f"{table.name} AS {alias}", _qualified(alias, table.columns)
        if self.rng.random() < 0.3:
            types = [self.rng.choice(self._types()) for _ in range(self.rng.randint(1, 3))]
            arms = f"{self._arm(types)} UNION ALL {self._arm(types)}"
            return f"({arms}) AS {alias}", _qualified(
                alias, tuple(Column(quote(f"u{i}"), t) for i, t in enumerate(types))
            )
        source, scope = self.source(depth - 1)
        inner = self._select("SELECT", source, scope, True)
        return f"({inner.sql}) AS {alias}", _qualified(alias, inner.columns)

    def _arm(self, types: list[Type]) -> str:
        source, scope = self.source(1)
        items = ", ".join(f"{self.value(scope, each)} AS {quote(f'u{i}')}" for i, each in enumerate(types))
        return f"(SELECT {items}{source})"

    def _select(self, head: str, source: str, scope: Scope, exact: bool) -> Query:
        columns = self._named([self._output(scope) for _ in range(self.rng.randint(1, 4))])
        return Query(self._list(head, columns) + source, _columns(columns), exact)

    def _output(self, scope: Scope) -> tuple[str, Type]:
        chosen = self.rng.choice(scope)
        return (self.value(scope, chosen.type) if self.rng.random() < 0.4 else chosen.name), chosen.type

    def _key(self, scope: Scope) -> tuple[str, Type]:
        chosen = self.rng.choice(scope)
        if chosen.type.family in {"int", "text"} and self.rng.random() < 0.3:
            return f"coalesce({chosen.name}, {self.literal(chosen.type)})", chosen.type
        return chosen.name, chosen.type

    def _types(self) -> list[Type]:
        return [column.type for table in self.tables for column in table.columns]

    def _named(self, items: list[tuple[str, Type]]) -> list[tuple[str, str, Type]]:
        names = self.rng.sample(NAMES, len(items))
        return [(text, quote(name), each) for name, (text, each) in zip(names, items, strict=True)]

    @staticmethod
    def _list(head: str, columns: list[tuple[str, str, Type]]) -> str:
        return f"{head} " + ", ".join(f"{text} AS {name}" for text, name, _ in columns)

    @staticmethod
    def _certain(query: Query) -> Query:
        return replace(query, exact=not any(column.type.ambiguous for column in query.columns))

    def literal(self, type_: Type) -> str:
        return self.rng.choice(type_.literals())

    def value(self, scope: Scope, type_: Type, depth: int = 2) -> str:
        """Write an expression of a type."""
        columns = [column.name for column in scope if column.type == type_]
        if not columns or depth == 0:
            return self.rng.choice(columns) if columns and self.rng.random() < 0.9 else self.literal(type_)
        inner = self.value(scope, type_, depth - 1)
        shapes = [
            inner,
            f"coalesce({inner}, {self.literal(type_)})",
            f"CASE WHEN {self.condition(scope, depth - 1)} THEN {inner} ELSE {self.value(scope, type_, depth - 1)} END",
            f"NULLIF({inner}, {self.literal(type_)})",
        ]
        for template in _TEMPLATES.get(type_.family, ()):
            shapes.append(f"CAST({template.format(inner, self.literal(type_))} AS {type_.name})")
        return self.rng.choice(shapes)

    def condition(self, scope: Scope, depth: int = 1) -> str:
        """Write a predicate, which may be unknown."""
        column = self.rng.choice(scope)
        other = self.rng.choice([each for each in scope if each.type == column.type])
        tests = [
            f"{column.name} = {self.literal(column.type)}",
            f"{column.name} <> {other.name}",
            f"{column.name} IS NOT NULL",
            f"{column.name} IS NOT DISTINCT FROM {other.name}",
            f"{column.name} IN ({self.literal(column.type)}, {self.literal(column.type)}, NULL)",
            f"{column.name} NOT IN ({self.literal(column.type)}, {self.literal(column.type)})",
        ]
        if column.type.ordered:
            tests += [f"{column.name} <= {other.name}", f"{column.name} > {self.literal(column.type)}"]
        if column.type is TEXT:
            tests += [f"{column.name} LIKE 'a%'", f"{column.name} ~ '^[a-z]'"]
        if column.type is BOOL:
            tests += [column.name, f"NOT {column.name}", f"{column.name} IS NOT TRUE"]
        test = self.rng.choice(tests)
        if depth and self.rng.random() < 0.4:
            joiner = self.rng.choice((" AND ", " OR ", " AND NOT "))
            return f"({test}{joiner}({self.condition(scope, depth - 1)}))"
        return test


_TEMPLATES = {
    "int": ("{0} + 1", "abs({0})", "- {0}", "{0} % 3", "({0} - 1) * 2 - {0}"),
    "numeric": ("{0} + {1}", "- {0}", "abs({0})", "round({0}, 1)", "{0} - (1 - {0})"),
    "text": ("{0} || 'x'", "upper({0})", "left({0}, 1)", "replace({0}, 'a', 'b')", "length({0})"),
    "date": ("{0} + 1",),
    "time": ("{0} + interval '1 day'", "date_trunc('day', {0})"),
    "bool": ("NOT {0}", "{0} AND {1}", "{0} IS NULL"),
}


def _fits(function: str, type_: Type) -> bool:
    if function in {"sum", "avg"}:
        return type_.summed
    return type_.ordered if function in {"min", "max"} else True


def _columns(columns: list[tuple[str, str, Type]]) -> tuple[Column, ...]:
    return tuple(Column(name, each) for _, name, each in columns)


def _qualified(alias: str, columns: tuple[Column, ...]) -> Scope:
    return tuple(Column(f"{alias}.{column.name}", column.type) for column in columns)
