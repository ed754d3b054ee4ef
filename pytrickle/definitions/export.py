"""Writing down what a database has as a project of definitions."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import md5
from pathlib import Path
from typing import Any

import psycopg

from pytrickle.database import translate_errors
from pytrickle.definitions.compare_groups import REFRESH_GROUPS, SETTINGS, WATERMARK_GROUPS
from pytrickle.definitions.compare_sources import EVENT_TIME, SOURCE_LIMITS, known
from pytrickle.definitions.files import SETTINGS as SETTINGS_FILE
from pytrickle.errors import InvalidArgument

TABLES = """
SELECT pgtrickle_private.qualified_name(t.pgt_relid), t.defining_query, t.defining_search_path,
    pgtrickle_private.written_options(t)
FROM pgtrickle.pgt_stream_tables AS t
WHERE to_regclass(t.pgt_relid::text) IS NOT NULL AND (t.project IS NULL OR t.project = %s) ORDER BY t.pgt_id
"""
# What file systems take, without the ending.
LONGEST = 251
PLAIN = re.compile(r"[\w.-]+")


def export_project(connection: psycopg.Connection, project: str, directory: Path) -> tuple[Path, ...]:
    """Write all stream tables and groups but those of other projects below a directory; return the files.

    Raise InvalidArgument where one of the files is there already, or cannot be written; then none is written.
    """
    with translate_errors(), connection.transaction():
        files = dict(_files(connection, project))
    paths = {directory / name: text for name, text in files.items()}
    try:
        if there := sorted(path for path in paths if path.exists()):
            hint = "Export into an empty directory, and compare the two."
            raise InvalidArgument(f"{there[0]} is there already.", hint)
        directory.mkdir(parents=True, exist_ok=True)
        _write(paths)
    except OSError as error:
        reason = f"{error.filename} cannot be written: {error.strerror}."
        raise InvalidArgument(reason, "Name a directory in which you may create files.") from error
    return tuple(paths)


def _write(texts: Mapping[Path, str]) -> None:
    """Write all files or none, the settings last and at once: without them, nobody takes a part for a project."""
    (settings,) = (path for path in texts if path.name == SETTINGS_FILE)
    draft = settings.with_suffix(".new")
    try:
        for path in texts.keys() - {settings}:
            path.write_text(texts[path], encoding="utf-8")
        draft.write_text(texts[settings], encoding="utf-8")
        draft.replace(settings)
    except OSError:
        for path in (*texts, draft):
            with suppress(OSError):
                path.unlink()
        raise


def _files(connection: psycopg.Connection, project: str) -> Iterator[tuple[str, str]]:
    settings = (f"project = {_literal(project)}", *_groups(connection, project), *_sources(connection, project))
    yield SETTINGS_FILE, "\n".join(settings) + "\n"
    for name, query, path, options in connection.execute(TABLES, (project,)).fetchall():
        yield f"{_file_name(name)}.sql", _definition(query, {"name": name, "search_path": path, **options})


def _definition(query: str, header: Mapping[str, str]) -> str:
    """Write a header and, after a line that is none, the query."""
    lines = (f"-- pytrickle: {key} = {value}" for key, value in header.items())
    return "\n".join([*lines, "", query.strip(), ""])


def _file_name(name: str) -> str:
    """Return the name of a stream table as that of a file; of a long one the beginning, and a hash of all of it.

    >>> _file_name("public.sales"), _file_name('public."my sales"')
    ('public.sales', 'public.%22my%20sales%22')
    """
    spelled = name if PLAIN.fullmatch(name) else "".join(c if PLAIN.fullmatch(c) else f"%{ord(c):x}" for c in name)
    if len(spelled.encode()) <= LONGEST:
        return spelled
    return f"{spelled.encode()[: LONGEST - 33].decode(errors='ignore')}.{md5(name.encode()).hexdigest()}"


def _groups(connection: psycopg.Connection, project: str) -> Iterator[str]:
    for name, owner, sources, *settings in connection.execute(WATERMARK_GROUPS).fetchall():
        if owner in {None, project}:
            found = dict(zip(SETTINGS, settings, strict=True))
            if found["batch_tolerance"] is not None:
                found |= {"tolerance": int(found["batch_tolerance"])}
            del found["batch_tolerance"]
            yield from _section("watermark_groups", name, {"sources": sources, **found})
    for name, owner, members, isolation in connection.execute(REFRESH_GROUPS).fetchall():
        if owner in {None, project}:
            yield from _section("refresh_groups", name, {"members": members, "isolation": isolation})


def _sources(connection: psycopg.Connection, project: str) -> Iterator[str]:
    found: dict[str, dict[str, Any]] = {}
    for kind in (SOURCE_LIMITS, EVENT_TIME):
        for name, settings in known(connection, kind).items():
            if settings.pop("project") in {None, project}:
                found.setdefault(name, {}).update(settings)
    for name, settings in sorted(found.items()):
        yield from _section("sources", name, settings)


def _section(kind: str, name: str, values: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    yield f"[{kind}.{_literal(name)}]"
    yield from (f"{key} = {_literal(value)}" for key, value in values.items() if value is not None)


def _literal(value: object) -> str:
    """Write a text, a number or a list as TOML does, which spells them as JSON."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
