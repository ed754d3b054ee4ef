"""SQL that the planner or PostgreSQL itself wrote, on its way to psycopg."""

from psycopg import sql


def trusted(text: str) -> sql.SQL:
    """Pass on SQL that the planner or PostgreSQL itself wrote; it is never formatted again."""
    return sql.SQL(text)
