"""Reading a project: a directory with pytrickle.toml, SQL files with a header, and Python files."""

import re
import runpy
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytrickle.definitions.decorator import DefinedInPython
from pytrickle.definitions.values import GroupDefinition, Project, SourceDefinition, StreamTableDefinition
from pytrickle.errors import InvalidArgument, PytrickleError

SETTINGS = "pytrickle.toml"
KNOWN = {"project", "search_path", "defaults", "watermark_groups", "refresh_groups", "sources"}
HEADER = re.compile(r"--\s*pytrickle:\s*(\w+)\s*=\s*(.*)")
MEANT = re.compile(r"--\s*pytrickle\s*(:|\w+\s*=)", re.IGNORECASE)
# What a header says beside the options of the stream table.
ABOUT = ("name", "renamed_from", "search_path")


def read_project(directory: Path) -> Project:
    """Read all definitions below a directory; raise InvalidArgument, which names the file, for what is no definition.

    Python files are run: read those of strangers first.
    """
    settings = _settings(directory / SETTINGS)
    defaults = _table(settings, "defaults")
    found = sorted([*_in_sql(directory), *_in_python(directory)], key=lambda each: each.origin)
    tables = tuple(replace(each, options={**defaults, **each.options}) for each in found)
    _refuse_twice(tables)
    return Project(
        settings["project"],
        tables,
        _groups(settings, "watermark_groups", "sources"),
        _groups(settings, "refresh_groups", "members"),
        settings.get("search_path"),
        _sources(settings),
    )


def definition_of(text: str, name: str, origin: str) -> StreamTableDefinition:
    """Read the text of an SQL file: lines like `-- pytrickle: tier = warm`, then the query.

    >>> found = definition_of("-- pytrickle: tier = warm\\nSELECT 1 AS one", "ones", "ones.sql")
    >>> found.name, found.options, found.query
    ('ones', {'tier': 'warm'}, 'SELECT 1 AS one')
    """
    lines, header = text.splitlines(), {}
    while lines and (match := HEADER.fullmatch(lines[0].strip())):
        if match[1] in header:
            raise InvalidArgument(f"{origin} says {match[1]} twice.", "Leave one of the lines out.")
        header[match[1]] = match[2].strip()
        del lines[0]
    _refuse_misplaced(lines, origin)
    query = "\n".join(lines).strip()
    if all(not line or line.startswith("--") for line in map(str.strip, query.splitlines())):
        raise InvalidArgument(f"{origin} has no query.", "Write one SELECT statement below the header.")
    about = {key: header.pop(key) for key in ABOUT if key in header}
    return StreamTableDefinition(
        about.get("name", name), query, header, origin, about.get("renamed_from"), about.get("search_path")
    )


def _refuse_misplaced(lines: list[str], origin: str) -> None:
    """Refuse what looks like a line of the header, but is none: it would be a comment, and its option the default."""
    for line in map(str.strip, lines):
        if MEANT.match(line):
            raise InvalidArgument(
                f"{origin} has a line that is no option: {line}",
                "Write options on top, a line for each, like: -- pytrickle: tier = warm",
            )
        if line and not line.startswith("--"):
            return


def _in_sql(directory: Path) -> Iterator[StreamTableDefinition]:
    for path in sorted(directory.rglob("*.sql")):
        yield definition_of(_text(path), path.stem, str(path.relative_to(directory)))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InvalidArgument(f"{path} cannot be read: {reason}.", "Write it in UTF-8, readable to you.") from None


def _in_python(directory: Path) -> Iterator[StreamTableDefinition]:
    for path in sorted(directory.rglob("*.py")):
        origin = str(path.relative_to(directory))
        for value in _run(path).values():
            if isinstance(value, DefinedInPython):
                yield _defined(value, path, origin)


def _defined(function: DefinedInPython, path: Path, origin: str) -> StreamTableDefinition:
    with _told(path):
        definition = function.definition(origin)
    if not isinstance(definition.query, str):
        raise InvalidArgument(
            f"{origin}: the function of {definition.name} returns no text.", "Return the query, as a string."
        )
    return definition


def _run(path: Path) -> dict[str, Any]:
    """Run a Python file and return what it defines."""
    with _told(path):
        return runpy.run_path(str(path), run_name="pytrickle_definitions")


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Tell in one sentence, with the name of the file, what stopped code of the project."""
    try:
        yield
    except PytrickleError as error:
        raise InvalidArgument(f"{path}: {error}", error.hint) from error
    except (Exception, SystemExit) as error:
        told = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(".: ")
        raise InvalidArgument(f"{path} cannot be run: {told}.", "Run it with python, which shows the line.") from error


def _settings(path: Path) -> Mapping[str, Any]:
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InvalidArgument(
            f"{path} cannot be read: {error.strerror}.", f'A project has a {SETTINGS} with at least: project = "name"'
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"{path} is no TOML: {error}.", "Correct that place; TOML is UTF-8 text.") from None
    if strangers := sorted(found.keys() - KNOWN):
        raise InvalidArgument(
            f"{path} has an unknown key {strangers[0]!r}.", f"The keys are {', '.join(sorted(KNOWN))}."
        )
    if not isinstance(found.get("project"), str) or not found["project"]:
        raise InvalidArgument(f"{path} does not name its project.", 'Write a line like: project = "shop"')
    return found


def _table(settings: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = settings.get(key, {})
    if not isinstance(found, Mapping):
        raise InvalidArgument(f"{key} in {SETTINGS} is no table.", f"Begin it with [{key}].")
    return found


def _groups(settings: Mapping[str, Any], key: str, members: str) -> tuple[GroupDefinition, ...]:
    groups = []
    for name, group in _table(settings, key).items():
        if not isinstance(group, Mapping) or not isinstance(group.get(members), list):
            raise InvalidArgument(f"{key}.{name} in {SETTINGS} has no list of {members}.", f'Write {members} = ["…"].')
        others = {setting: value for setting, value in group.items() if setting != members}
        groups.append(GroupDefinition(name, tuple(map(str, group[members])), others))
    return tuple(groups)


def _sources(settings: Mapping[str, Any]) -> tuple[SourceDefinition, ...]:
    found = _table(settings, "sources")
    if wrong := [name for name, source in found.items() if not isinstance(source, Mapping)]:
        raise InvalidArgument(f"sources.{wrong[0]} in {SETTINGS} is no table.", f"Begin it with [sources.{wrong[0]}].")
    return tuple(SourceDefinition(name, source) for name, source in found.items())


def _refuse_twice(tables: tuple[StreamTableDefinition, ...]) -> None:
    seen: dict[str, str] = {}
    for table in tables:
        if table.name in seen:
            raise InvalidArgument(
                f"{table.name} is defined twice: in {seen[table.name]} and in {table.origin}.", "Remove one of them."
            )
        seen[table.name] = table.origin
