"""Write docs/reference/support.md to standard output: what the planner says of each query in constructs.sql.

    scripts/support_table.py [DSN]

The DSN is that of a database with pytrickle that may be filled. Without one a throw-away server is started, as the
tests do.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

import psycopg

sys.path.insert(0, str(Path(__file__).parents[1]))

from pytrickle.catalog.definition import Definition
from pytrickle.catalog.server_probe import server_probe
from pytrickle.catalog.stream_table import definition
from pytrickle.plan.analysis import analyse
from scripts.database import catalog

CONSTRUCTS = Path(__file__).parents[1] / "docs/reference/constructs.sql"
HEAD = """# Supported SQL

<!-- Written by scripts/support_table.py from constructs.sql and the planner's answers; do not edit. -->

For whoever wonders whether a query is refreshed from its changes alone: what the planner says of each construct.

Every query in [constructs.sql](constructs.sql) was given to `create_stream_table` and to the planner, over the small
tables at the top of that file. All that is not refused is kept exactly.

| answer | |
|---|---|
| differential | only the changes are computed |
| full | the query is computed as a whole when a source changed, and only rows that differ are written |
| full, every tick | the same whenever it is due: a change of the result cannot be noticed otherwise |
| refused | `create_stream_table` raises an error |
"""


@dataclass(frozen=True, slots=True)
class Construct:
    """A named example query of a section."""

    section: str
    name: str
    query: str


def main() -> None:
    """Print the reference."""
    with catalog() as connection:
        prologue, constructs = read_constructs()
        connection.execute(prologue.encode())
        lines = [HEAD.rstrip("\n")]
        for section in dict.fromkeys(construct.section for construct in constructs):
            lines += ["", f"## {section}", "", "| construct | example | refresh |", "|---|---|---|"]
            lines += [_row(connection, construct) for construct in constructs if construct.section == section]
    sys.stdout.write("\n".join(lines) + "\n")


def read_constructs() -> tuple[str, tuple[Construct, ...]]:
    """Read the statements that make the tables, and the constructs in order."""
    prologue, *sections = re.split(r"^-- ## (.+)\n", CONSTRUCTS.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = [
        Construct(section, name, query)
        for section, text in zip(sections[::2], sections[1::2], strict=True)
        for name, query in re.findall(r"^-- (.+)\n([^;]+);$", text, flags=re.MULTILINE)
    ]
    return prologue, tuple(found)


def _row(connection: psycopg.Connection, construct: Construct) -> str:
    example = " ".join(construct.query.split())
    cells = (construct.name, f"`{example}`", answer(connection, construct.query))
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def answer(connection: psycopg.Connection, query: str) -> str:
    """Tell how a stream table with this query is refreshed; nothing is left behind."""
    try:
        with connection.transaction(force_rollback=True):
            row = connection.execute("SELECT pgtrickle.create_stream_table('probed', %s)", (query,)).fetchone()
            known = definition(connection, row[0] if row else 0)
            return _planned(connection, known)
    except psycopg.Error as error:
        return f"refused: {error.diag.message_primary}"


def _planned(connection: psycopg.Connection, known: Definition) -> str:
    with server_probe(connection) as probe:
        reason = analyse(known, probe).full_reason
    if reason is None:
        return "differential"
    every_tick = known.full_reason is not None or not all(source.captured for source in known.sources)
    return f"full{', every tick' if every_tick else ''}: {reason}"


if __name__ == "__main__":
    main()
