"""What a stream table must contain: its defining query, run by PostgreSQL itself."""

from typing import Any

import psycopg

PINNED = ("SET extra_float_digits = 1", "SET bytea_output = hex")


def differences(connection: psycopg.Connection[Any], name: str, query: str, exact: bool) -> list[tuple[str, int]]:
    """Return the rows that a stream table lacks (negative) or has too many, as (text of the row, copies).

    Rows are compared by equality, and with `exact` by their text, so that 1.0 is not 1.00.
    """
    with connection.transaction():
        for statement in PINNED:
            connection.execute(statement.replace("SET", "SET LOCAL", 1).encode())
        row = "ROW(q.*)::text" if exact else "q.*"
        text = (
            f"WITH expected AS (SELECT {row} FROM ({query}) AS q), stored AS (SELECT {row} FROM {name} AS q) "
            "SELECT ROW(d.*)::text, sum(sign)::int FROM ("
            "(SELECT *, 1 AS sign FROM (TABLE stored EXCEPT ALL TABLE expected) AS s) UNION ALL "
            "(SELECT *, -1 FROM (TABLE expected EXCEPT ALL TABLE stored) AS e)) AS d GROUP BY 1 ORDER BY 1"
        )
        return connection.execute(text.encode()).fetchall()  # type: ignore[return-value]
