"""Write docs/reference/pg-trickle.md to standard output: the functions of pg_trickle beside those of the catalog.

    scripts/mirror_table.py [DSN]

Without a DSN a throw-away server is started, as the tests do.
"""

from __future__ import annotations

import csv
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psycopg

sys.path.insert(0, str(Path(__file__).parents[1]))

from scripts.database import catalog

RELEASE = "0.108.3"
FUNCTIONS = Path(__file__).parents[1] / "docs/reference/pg-trickle.tsv"
HEAD = f"""# Functions of pg_trickle

<!-- Written by scripts/mirror_table.py from an installed catalog and pg-trickle.tsv; do not edit. -->

For whoever has a script for the extension pg_trickle, and asks of a function whether it is here.

Every function of the extension pg_trickle {RELEASE}, and what a call of it does here; see
[Coming from pg_trickle](../howto/come-from-pg-trickle.md). *Same*: the same arguments and the same result. *More*: the
same, with further arguments or columns after them. *Other*: the name is there, the remark says what differs. *Absent*:
a call fails, the remark says why.
"""
WRITTEN = {"timestamptz": "timestamp with time zone", "json": "json"}
INSTALLED = """
SELECT p.proname, p.pronargs, p.pronargdefaults, COALESCE(p.proargnames, '{}'),
       ARRAY(SELECT format_type(t.oid, NULL) FROM unnest(COALESCE(p.proallargtypes, p.proargtypes::oid[]))
             WITH ORDINALITY AS t(oid, place) ORDER BY t.place),
       COALESCE(p.proargmodes::text[], '{}'), format_type(p.prorettype, NULL), p.proretset
FROM pg_proc AS p WHERE p.pronamespace = 'pgtrickle'::regnamespace
ORDER BY p.proname, p.oid::regprocedure::text
"""

Column = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Function:
    """A function's arguments as name and type, how many must be given, and its result: columns, or one type."""

    name: str
    arguments: Sequence[Column]
    required: int
    columns: Sequence[Column]
    returns: str


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the table."""

    function: Function
    verdict: str
    remark: str


def main() -> None:
    """Print the table."""
    with catalog() as connection:
        compared = lines(connection)
    sys.stdout.write("\n".join([HEAD, _counts(compared), "", *_table(compared)]) + "\n")


def lines(connection: psycopg.Connection) -> list[Line]:
    """Compare each function of the extension with the functions of that name in the catalog."""
    ours: dict[str, list[Function]] = {}
    for function in _installed(connection):
        ours.setdefault(function.name, []).append(function)
    return [Line(function, verdict(function, ours.get(function.name, [])), remark) for function, remark in extension()]


def extension() -> list[tuple[Function, str]]:
    """Read the extension's functions, each with the remark about it."""
    with FUNCTIONS.open(encoding="utf-8", newline="") as file:
        return [(_read(row), row["remark"]) for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]


def verdict(function: Function, ours: Sequence[Function]) -> str:
    """Say how much of a function there is: same, more, other or absent.

    >>> one = Function("f", [("a", "text")], 1, [], "void")
    >>> two = Function("f", [("a", "text"), ("b", "text")], 1, [], "integer")
    >>> verdict(one, [one]), verdict(one, [two]), verdict(two, [one]), verdict(one, [])
    ('same', 'more', 'other', 'absent')
    """
    if not ours:
        return "absent"
    if any((each.arguments, each.columns, each.returns) == _shape(function) for each in ours):
        return "same"
    return "more" if any(_has_all(function, each) for each in ours) else "other"


def _shape(function: Function) -> tuple[Sequence[Column], Sequence[Column], str]:
    return function.arguments, function.columns, function.returns


def _has_all(function: Function, ours: Function) -> bool:
    """Whether ours takes each call of the extension's, and its result begins with the extension's."""
    begins = ours.arguments[: len(function.arguments)] == function.arguments
    result = ours.columns[: len(function.columns)] == function.columns
    typed = function.returns in ("void", ours.returns)
    return begins and result and typed and ours.required <= function.required


def _installed(connection: psycopg.Connection) -> Iterator[Function]:
    for name, given, optional, names, types, modes, returns, many in connection.execute(INSTALLED):
        columns = list(zip(names, types, strict=False)) if names else [("", written) for written in types]
        arguments = [column for column, mode in zip(columns, modes or ["i"] * given, strict=False) if mode == "i"]
        table = [column for column, mode in zip(columns, modes, strict=False) if mode == "t"]
        result = "" if table else f"SETOF {returns}" if many else returns
        yield Function(name, arguments, given - optional, table, result)


def _read(row: Mapping[str, str]) -> Function:
    written = [_argument(text) for text in _split(row["arguments"])]
    table = re.fullmatch(r"TABLE\((.*)\)", row["returns"])
    columns = [_argument(text)[0] for text in _split(table[1])] if table else []
    required = sum(not optional for _, optional in written)
    returns = "" if table else _type(row["returns"])
    return Function(row["function"], [column for column, _ in written], required, columns, returns)


def _argument(text: str) -> tuple[Column, bool]:
    name, _, rest = text.partition(" ")
    written, optional, _ = rest.partition(" = ")
    return (name, _type(written)), bool(optional)


def _type(text: str) -> str:
    base = text.removesuffix("[]")
    return WRITTEN.get(base, base) + text[len(base) :]


def _split(text: str) -> list[str]:
    return re.split(r", (?![^(]*\))", text) if text else []


def _counts(compared: Sequence[Line]) -> str:
    counted = Counter(line.verdict for line in compared)
    return ", ".join(f"{counted[name]} {name}" for name in ("same", "more", "other", "absent")) + "."


def _table(compared: Sequence[Line]) -> Iterator[str]:
    yield "| function | | |"
    yield "|---|---|---|"
    for line in compared:
        arguments = ", ".join(f"{name} {written}".strip() for name, written in line.function.arguments)
        call = f"{line.function.name}({arguments})".replace("timestamp with time zone", "timestamptz")
        yield f"| `{call}` | {line.verdict} | {line.remark} |"


if __name__ == "__main__":
    main()
