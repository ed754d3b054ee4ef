"""The catalog of the extension pg_trickle as pg_dump writes it, in plain text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from pytrickle.errors import CatalogError
from pytrickle.extension.tables import NAMES, CatalogTables, Row, oid_list, refuse_another_catalog

_COPY = re.compile(r"COPY pgtrickle\.(\w+) \((.*)\) FROM stdin;$")
_CREATE = re.compile(r"CREATE (?:UNLOGGED )?TABLE (\S+) \($")
_COLUMN = re.compile(r'\s+("(?:[^"]|"")+"|\w+) (.+?)(?: COLLATE \S+)?(?: DEFAULT .*)?(?: NOT NULL)?,?$')
_ESCAPE = re.compile(r"\\([0-7]{1,3}|x[0-9A-Fa-f]{1,2}|.)", re.DOTALL)
_CONTROL = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_END, _NULL = "\\.", "\\N"


def dumped_tables(dump: Iterable[bytes], relations: Mapping[int, str]) -> CatalogTables:
    """Read the catalog from the lines of a plain dump in UTF-8.

    A dump names stream tables but no other relation by its OID: `relations` says what those were called, with an empty
    name for one that is to be left out.
    Raises CatalogError where the dump is of another form, or has no catalog of the extension.
    """
    rows: dict[str, list[Row]] = {name: [] for name in NAMES}
    columns: list[str] = []
    shapes: dict[str, list[tuple[str, str]]] = {}
    remaining = _lines(dump)
    for line in remaining:
        text = line.rstrip("\n")
        if (found := _COPY.match(text)) and found[1] in rows:
            copied = [name.strip('"') for name in found[2].split(", ")]
            columns = copied if found[1] == NAMES[0] else columns
            rows[found[1]] = [dict(zip(copied, values, strict=True)) for values in _copied(remaining)]
        elif found := _CREATE.match(text):
            shapes[found[1]] = list(_columns(remaining))
    refuse_another_catalog(columns)
    return _with_stream_tables(rows, relations, shapes)


def _lines(dump: Iterable[bytes]) -> Iterator[str]:
    for number, line in enumerate(dump):
        if number == 0 and line.startswith(b"PGDMP"):
            raise CatalogError("This dump is in pg_dump's custom format.", "Make it text by: pg_restore -f - FILE")
        try:
            yield line.decode()
        except UnicodeDecodeError:
            raise CatalogError("This dump is not in UTF-8.", "Make it by: pg_dump --encoding=UTF8") from None


def _with_stream_tables(
    rows: Mapping[str, list[Row]], relations: Mapping[int, str], shapes: Mapping[str, list[tuple[str, str]]]
) -> CatalogTables:
    """Add what the dump itself says about the relations: the names of stream tables, and their columns."""
    own = {
        oid: f"{_quoted(row['pgt_schema'] or '')}.{_quoted(row['pgt_name'] or '')}"
        for row in rows["pgt_stream_tables"]
        for oid in oid_list(row["pgt_relid"] or "")
    }
    known = {oid: shapes[name] for oid, name in own.items() if name in shapes}
    dropped = frozenset(oid for oid, name in relations.items() if not name)
    return CatalogTables(rows, {**relations, **own}, known, dropped=dropped)


def _copied(lines: Iterator[str]) -> Iterator[list[str | None]]:
    for line in lines:
        text = line.rstrip("\n")
        if text == _END:
            return
        yield [None if field == _NULL else _ESCAPE.sub(_unescaped, field) for field in text.split("\t")]


def _unescaped(found: re.Match[str]) -> str:
    """Read one escape of COPY's text format.

    >>> _ESCAPE.sub(_unescaped, r"a\\tb\\\\c\\x41\\101")
    'a\\tb\\\\cAA'
    """
    text = found[1]
    if text[0] == "x" and len(text) > 1:
        return chr(int(text[1:], 16))
    return chr(int(text, 8)) if text.isdigit() else _CONTROL.get(text, text)


def _columns(lines: Iterator[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        if line.startswith(")"):
            return
        if (found := _COLUMN.match(line.rstrip("\n"))) and found[1] != "CONSTRAINT":
            name = found[1]
            yield (name[1:-1].replace('""', '"') if name.startswith('"') else name), found[2]


def _quoted(name: str) -> str:
    """Quote a name as pg_dump does, where it must be.

    >>> _quoted("sales"), _quoted("Sales 2"), _quoted('a"b')
    ('sales', '"Sales 2"', '"a""b"')
    """
    return name if re.fullmatch(r"[a-z_][a-z0-9_]*", name) else '"{}"'.format(name.replace('"', '""'))
