"""The session settings under which a defining query is evaluated, and the limits of a refresh."""

from datetime import timedelta

from pytrickle.catalog.refresh import StreamTable
from pytrickle.db import PATIENCE


def session_statements(table: StreamTable) -> tuple[str, ...]:
    """Write the settings under which a defining query means what its creator meant, and text carries every value.

    Without row_security a policy that would hide rows from the refresher is an error instead.
    """
    pinned = {**table.session_settings, "extra_float_digits": "1", "bytea_output": "hex", "row_security": "off"}
    path = pinned.pop("search_path")
    settings = [f"SET LOCAL {name} = '{value.replace(chr(39), chr(39) * 2)}'" for name, value in pinned.items()]
    # A list of quoted identifiers, which must not become one string.
    return (*settings, f"SET LOCAL search_path = {path}")


def limit_statements(table: StreamTable) -> tuple[str, ...]:
    """Write for how long a refresh waits for a lock, and how long each of its statements may run."""
    allowed = table.statement_timeout
    timeout = "DEFAULT" if allowed is None else f"'{max(1, round(allowed / timedelta(milliseconds=1)))}'"
    return f"SET LOCAL lock_timeout = '{PATIENCE}'", f"SET LOCAL statement_timeout TO {timeout}"
