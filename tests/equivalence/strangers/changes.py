"""Four rounds of changes to tables whose columns and constraints nobody knows beforehand."""

from typing import Any

import psycopg
from psycopg import sql

ROUNDS = ("delete", "insert", "update", "all at once")
MOST = 40  # rows changed per table and round
_COLUMNS = """
    SELECT attname::text FROM pg_attribute
    WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped AND attgenerated = '' AND attidentity = ''
    ORDER BY attnum"""


def change(connection: psycopg.Connection[Any], number: int, tables: list[int]) -> int:
    """Play one round on all tables; return how many statements changed rows. What constraints refuse is left out."""
    return sum(_play(connection, number, table) for table in tables)


def move_rows(connection: psycopg.Connection[Any], tables: list[int], salt: int) -> None:
    """Store about half of the tables' rows anew, behind the others, unchanged; `salt` chooses which."""
    for table in tables:
        (name,) = connection.execute("SELECT %s::oid::regclass::text", [table]).fetchone() or ("",)
        for (column,) in connection.execute(_COLUMNS + " LIMIT 1", [table]):
            text = "UPDATE {} SET {} = {} WHERE hashtextextended(ctid::text, {}) %% 2 = 0"
            own = sql.Identifier(column)
            _try(connection, sql.SQL(text).format(sql.SQL(name), own, own, sql.Literal(salt)))


def _play(connection: psycopg.Connection[Any], number: int, table: int) -> int:
    columns = [name for (name,) in connection.execute(_COLUMNS, [table])]
    (name,) = connection.execute("SELECT %s::oid::regclass::text", [table]).fetchone() or ("",)
    target, saved = sql.SQL(name), sql.Identifier(f"saved_{table}")
    deletion, insertion = _deletion(target, saved), _insertion(target, saved, columns)
    update = [_update(target, column) for column in columns]
    statements: list[sql.Composed] = {
        "delete": deletion,
        "insert": insertion,
        "update": update,
        "all at once": [deletion[-1], *insertion[-2:], *update],
    }[ROUNDS[number]]
    return sum(_try(connection, statement) for statement in statements)


def _deletion(target: sql.SQL, saved: sql.Identifier) -> list[sql.Composed]:
    rows = sql.SQL("(SELECT ctid FROM {} WHERE hashtext(ctid::text) %% 3 = 0 ORDER BY ctid LIMIT {})").format(
        target, sql.Literal(MOST)
    )
    return [
        sql.SQL("CREATE TABLE {} AS SELECT * FROM {} WHERE ctid = ANY (ARRAY{})").format(saved, target, rows),
        sql.SQL("DELETE FROM {} WHERE ctid = ANY (ARRAY{})").format(target, rows),
    ]


def _insertion(target: sql.SQL, saved: sql.Identifier, columns: list[str]) -> list[sql.Composed]:
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    into = sql.SQL("INSERT INTO {} ({}) ").format(target, names)
    kept = sql.SQL("SELECT {} FROM {} ON CONFLICT DO NOTHING").format(names, saved)
    twins = sql.SQL("SELECT {} FROM {} LIMIT 2").format(names, target)
    if not columns:
        return [sql.SQL("INSERT INTO {} DEFAULT VALUES").format(target)]
    nulls = sql.SQL("VALUES ({})").format(sql.SQL(", ").join([sql.SQL("NULL")] * len(columns)))
    return [into + kept, into + twins, into + nulls]


def _update(target: sql.SQL, column: str) -> sql.Composed:
    """Give a few rows the value of another row."""
    name = sql.Identifier(column)
    return sql.SQL(
        "WITH few AS (SELECT ctid AS place, row_number() OVER (ORDER BY ctid) AS n FROM {0} LIMIT 200),"
        " chosen AS (SELECT place, n FROM few WHERE (n + {2}) %% 4 = 0 LIMIT 3)"
        " UPDATE {0} SET {1} = (SELECT o.{1} FROM {0} o JOIN few ON o.ctid = place WHERE few.n = chosen.n - 1)"
        " FROM chosen WHERE {0}.ctid = chosen.place"
    ).format(target, name, sql.Literal(len(column)))


def _try(connection: psycopg.Connection[Any], statement: sql.Composed) -> bool:
    try:
        with connection.transaction():
            return connection.execute(sql.SQL(statement.as_string().replace("%%", "%"))).rowcount > 0
    except psycopg.Error:
        return False
