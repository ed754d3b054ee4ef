"""Random tables and random changes of them."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tests.equivalence.values import ALL, INT, NAMES, Type, quote

TABLE_NAMES = ("orders", "select", "action", 'wei"rd', "Mixed Case", "t1")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, a view or a stream table; `name` is quoted."""

    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class Table:
    """Something to select from; `name` and `key` are quoted, `width` is roughly how many tables it joins."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    width: int = 1


def random_tables(rng: Random, types: tuple[Type, ...] = ALL) -> tuple[Table, ...]:
    """Invent two to four tables that share some column types, so that they can be joined."""
    shared = [INT, *rng.sample(types, 4)]
    return tuple(_random_table(rng, name, shared) for name in rng.sample(TABLE_NAMES, rng.randint(2, 4)))


def _random_table(rng: Random, name: str, types: list[Type]) -> Table:
    names = rng.sample(NAMES, rng.randint(2, 5))
    columns = tuple(Column(quote(each), rng.choice(types)) for each in names)
    columns = (Column(columns[0].name, INT), *columns[1:])
    key = tuple(column.name for column in columns[: rng.choice((0, 0, 1, 2))])
    return Table(quote(name), columns, key)


def creation(rng: Random, table: Table) -> list[str]:
    """Write the statements that create a table, with an index on some of its columns."""
    items = [f"{column.name} {column.type.name}" for column in table.columns]
    if table.key:
        items.append(f"PRIMARY KEY ({', '.join(table.key)})")
    indexes = [f"CREATE INDEX ON {table.name} ({c.name})" for c in table.columns if rng.random() < 0.6]
    return [f"CREATE TABLE {table.name} ({', '.join(items)})", *indexes]


def insertion(rng: Random, table: Table, rows: int) -> str:
    """Write an INSERT of random rows; those that a key refuses are left out."""
    values = ", ".join(f"({', '.join(_value(rng, table, c) for c in table.columns)})" for _ in range(rows))
    return f"INSERT INTO {table.name} VALUES {values} ON CONFLICT DO NOTHING"


def _value(rng: Random, table: Table, column: Column) -> str:
    if column.name in table.key:
        return str(rng.randint(1, 12)) if column.type is INT else rng.choice(column.type.literals())
    return "NULL" if rng.random() < 0.2 else rng.choice(column.type.literals())


def mutation(rng: Random, table: Table) -> list[str]:
    """Write a random change of one table as statements of one transaction."""
    return rng.choice(_MUTATIONS)(rng, table)


def _insert(rng: Random, table: Table) -> list[str]:
    return [insertion(rng, table, rng.randint(2, 6))]


def _delete(rng: Random, table: Table) -> list[str]:
    return [f"DELETE FROM {table.name} {_some(rng, table)}"]


def _update(rng: Random, table: Table) -> list[str]:
    columns = [column for column in table.columns if column.name not in table.key] or []
    if not columns:
        return _move_key(rng, table)
    chosen = rng.sample(columns, rng.randint(1, len(columns)))
    changes = ", ".join(f"{column.name} = {_value(rng, table, column)}" for column in chosen)
    # A few rows at a time: where all rows share a key, joins over it multiply.
    few = f"SELECT ctid FROM {table.name} {_some(rng, table)} ORDER BY ctid LIMIT {rng.randint(1, 4)}"
    return [f"UPDATE {table.name} SET {changes} WHERE ctid = ANY (ARRAY({few}))"]


def _update_nothing(rng: Random, table: Table) -> list[str]:
    name = rng.choice(table.columns).name
    return [f"UPDATE {table.name} SET {name} = {name}"]


def _move_key(rng: Random, table: Table) -> list[str]:
    """Move every integer key past all others and back; the first column is always an integer."""
    name = table.columns[0].name
    largest = f"(SELECT coalesce(max({name}), 0) + 1 FROM {table.name})"
    there = f"UPDATE {table.name} SET {name} = {name} + {largest} WHERE {largest} < 1000"
    if rng.random() < 0.3:
        return [there]
    back = f"UPDATE {table.name} SET {name} = {name} - (SELECT min({name}) FROM {table.name})"
    return [there, back]


def _truncate(rng: Random, table: Table) -> list[str]:
    statements = [f"TRUNCATE {table.name}"]
    return [*statements, insertion(rng, table, 8)] if rng.random() < 0.8 else statements


def _empty_and_refill(rng: Random, table: Table) -> list[str]:
    copy = f"copy{rng.randrange(10**9)}"
    return [
        f"CREATE TEMP TABLE {copy} ON COMMIT DROP AS SELECT * FROM {table.name}",
        f"DELETE FROM {table.name}",
        f"INSERT INTO {table.name} SELECT * FROM {copy}",
    ]


def _duplicate(rng: Random, table: Table) -> list[str]:
    return [f"INSERT INTO {table.name} SELECT * FROM {table.name} LIMIT 3 ON CONFLICT DO NOTHING"]


def _rolled_back(rng: Random, table: Table) -> list[str]:
    lost = rng.choice((_insert, _delete, _update))(rng, table)
    return [*_insert(rng, table), "SAVEPOINT s", *lost, "ROLLBACK TO SAVEPOINT s", *_update(rng, table)]


def _some(rng: Random, table: Table) -> str:
    column = rng.choice(table.columns)
    return rng.choice(
        (
            f"WHERE {column.name} IS NULL",
            f"WHERE {column.name} = {rng.choice(column.type.literals())}",
            f"WHERE ctid = (SELECT min(ctid) FROM {table.name})",
            f"WHERE ctid = ANY (ARRAY(SELECT ctid FROM {table.name} ORDER BY ctid DESC LIMIT 2))",
            f"WHERE {column.name} = (SELECT mode() WITHIN GROUP (ORDER BY {column.name}) FROM {table.name})",
            "" if rng.random() < 0.3 else f"WHERE {column.name} IS NOT NULL",
        )
    )


_MUTATIONS: tuple[Callable[[Random, Table], list[str]], ...] = (
    *(_insert, _insert, _insert, _insert, _delete, _delete, _update, _update, _update, _update, _update_nothing),
    *(_move_key, _truncate, _empty_and_refill, _duplicate, _rolled_back),
)
