"""The session settings under which a defining query is evaluated, and the limits of a refresh."""

import re
from datetime import timedelta

import psycopg

from pytrickle.catalog.stream_table import StreamTable
from pytrickle.database import PATIENCE, SAFE_PATH
from pytrickle.errors import CatalogError

# What a creator's session may have set and what functions, casts and formats go by, of which PostgreSQL says that they
# are stable. The values are words, numbers and signs, none of which ends a string.
PINNED = ("TimeZone", "DateStyle", "IntervalStyle", "array_nulls", "xmlbinary", "xmloption")
# These are kept only with a query that may go by them, or where they were set to something.
PINNED_WHERE_KEPT = ("lc_monetary", "lc_numeric", "lc_time", "default_text_search_config", "timezone_abbreviations")
# What it is by default, whatever a transaction set for itself.
ALLOWED = "SELECT reset_val::integer * interval '1 ms' FROM pg_settings WHERE name = 'statement_timeout'"
PLAIN = re.compile(r"[\w+\-/:., <>@\"]*")


def session_statements(table: StreamTable) -> tuple[str, ...]:
    """Write the settings under which a defining query means what its creator meant, and text carries every value.

    Within a string a backslash is just a backslash, as when PostgreSQL printed the query, whatever the role's default.
    Without row_security a policy that would hide rows from the refresher is an error instead. Generated SQL finds names
    only among those of PostgreSQL itself. Raise CatalogError for a stored setting that no session can have had.
    """
    names = (*PINNED, *(name for name in PINNED_WHERE_KEPT if name in table.session_settings))
    settings = [f"SET LOCAL {name} = '{_plain(table, name)}'" for name in names]
    carrying = (
        "SET LOCAL standard_conforming_strings = 'on'",
        "SET LOCAL extra_float_digits = '1'",
        "SET LOCAL bytea_output = 'hex'",
        "SET LOCAL row_security = 'off'",
    )
    return (*settings, *carrying, f"SET LOCAL search_path = {SAFE_PATH}")


def limit_statements(table: StreamTable) -> tuple[str, ...]:
    """Write for how long a refresh waits for a lock, and how long each of its statements may run."""
    allowed = table.statement_timeout
    timeout = "DEFAULT" if allowed is None else f"'{max(1, round(allowed / timedelta(milliseconds=1)))}'"
    return f"SET LOCAL lock_timeout = '{PATIENCE}'", f"SET LOCAL statement_timeout TO {timeout}"


def longest_statement(connection: psycopg.Connection, table: StreamTable) -> timedelta | None:
    """Return for how long a statement of a refresh may run, be it that the server says so; None without a limit."""
    if table.statement_timeout is not None:
        return table.statement_timeout
    (allowed,) = connection.execute(ALLOWED).fetchone() or (None,)
    return allowed or None


def naming_statement(table: StreamTable) -> str:
    """Have the session say in pg_stat_activity which stream table it works for, as pgtrickle.running() reports it."""
    return f"SET LOCAL application_name = 'pytrickle/refresher of {table.pgt_id}'"


def _plain(table: StreamTable, name: str) -> str:
    value = table.session_settings.get(name, "")
    if not value or not PLAIN.fullmatch(value):
        raise CatalogError(f"The setting {name} that is stored for {table.name} is not one that a session can have.")
    return value
