"""Where SQL finds what its text names without a schema: PostgreSQL's own path for what is generated, or a user's."""

from __future__ import annotations

import re
from collections.abc import Iterable

# In pgtrickle_state lies the equality of the types of extensions, which PostgreSQL looks up by its name.
SAFE_PATH = "pg_catalog, pgtrickle_state, pg_temp"
# Until the transaction ends, names mean what they mean to whoever opened the connection. Types and functions of ours
# are written with their schemas there, and operators not at all.
USERS_PATH = "SET LOCAL search_path TO DEFAULT"
AGAIN_SAFE = f"SET LOCAL search_path = {SAFE_PATH}"
# A stream table keeps the style of intervals of whoever gives its query; they are not readable meanwhile.
USERS_STYLE = "SET LOCAL IntervalStyle TO DEFAULT"
READABLE_STYLE = "SET LOCAL IntervalStyle TO postgres"
USERS_SETTINGS = f"{USERS_PATH}; {USERS_STYLE}"
AGAIN_READABLE = f"{AGAIN_SAFE}; {READABLE_STYLE}"
_SETTING = "SET LOCAL search_path = "
_SCHEMA = re.compile(r'"((?:[^"]|"")+)"|([a-z_][a-z0-9_$]*)')


def quoted_path(path: str) -> str | None:
    """Write a search_path as a list of quoted schemas; None if it is no such list.

    >>> quoted_path('pg_catalog, public, "a ""b"", c"')
    '"pg_catalog", "public", "a ""b"", c"'
    >>> quoted_path("pg_catalog; COMMIT") is None
    True
    """
    schemas, at = [], 0
    while found := _SCHEMA.match(path, at):
        schemas.append(f'"{found[1] or found[2]}"')
        if found.end() == len(path):
            return ", ".join(schemas)
        if not path.startswith(", ", found.end()):
            return None
        at = found.end() + 2
    return None


def path_set(statements: Iterable[str]) -> str:
    """Return the search_path under which a session stands after its settings: the last one that they set.

    >>> path_set([AGAIN_SAFE, "SET LOCAL jit = off", 'SET LOCAL search_path = "pg_catalog", "my tools"'])
    '"pg_catalog", "my tools"'
    """
    found = [statement.removeprefix(_SETTING) for statement in statements if statement.startswith(_SETTING)]
    return [SAFE_PATH, *found][-1]
