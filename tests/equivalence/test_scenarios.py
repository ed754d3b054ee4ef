"""Every scenario of the checklist by its id: a query, batches of changes, and the same rows after every batch.

A case of `scenarios/*.cases` is a title, `! ` statements that prepare it, `? ` queries and `> ` batches; `= ` is one
whose rows are compared by their text. A line that begins with blanks continues the one above. Every case finds the
tables of TABLES, empty.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import pytrickle
from pytrickle.client.client import Client
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences
from tests.equivalence.runs import disable_jit
from tests.equivalence.worlds import ANY_ACTION
from tests.repeats import first, on_both_servers

TABLES = (
    "CREATE TABLE l (id int PRIMARY KEY, k int, v numeric, t text)",
    "CREATE TABLE r (id int PRIMARY KEY, k int, v numeric, t text)",
    "CREATE TABLE bag (k int, v int)",
    "CREATE INDEX ON r (k)",
)


@dataclass(frozen=True, slots=True)
class Case:
    """One scenario."""

    id: str
    title: str
    preparation: tuple[str, ...]
    queries: tuple[str, ...]
    batches: tuple[str, ...]


def cases(path: Path) -> list[Case]:
    """Read the cases of a file."""
    found = []
    for block in re.split(r"^-- (?=[A-Z]\d+: )", path.read_text(), flags=re.MULTILINE)[1:]:
        head, *lines = _lines(block)
        name, _, title = head.partition(": ")
        parts = [tuple(line for line in lines if line[:2] in marks) for marks in (("! ",), ("? ", "= "), ("> ",))]
        found.append(Case(name, title, *parts))
    return found


def _lines(block: str) -> list[str]:
    """Join what begins with blanks to the line above."""
    joined: list[str] = []
    for line in block.strip().split("\n"):
        if line.startswith("  "):
            joined[-1] += "\n" + line
        else:
            joined.append(line)
    return joined


ALL = [case for path in sorted((Path(__file__).parent / "scenarios").glob("*.cases")) for case in cases(path)]


# Every sixth one, then those after them, and so on: each run plays some of every kind.
MIXED = [case for part in range(6) for case in ALL[part::6]]


@pytest.mark.parametrize("case", first(len(ALL) // 6, MIXED, then=len(ALL) // 3), ids=lambda case: case.id)
def test_scenario(db: Database, case: Case) -> None:
    _play(db, case)


@on_both_servers
@pytest.mark.parametrize("name", ["A29", "A30", "Q18"])
def test_a_server_alone_shows_the_same_however_it_prints_a_query(every_db: Database, name: str) -> None:
    (case,) = (case for case in ALL if case.id == name)
    with pytrickle.connect(every_db.dsn) as client:
        play_case(every_db, client, case)


@pytest.mark.parametrize("name", first(1, ["H8", "H11", "S12"]))
def test_awkward_values_survive_where_the_engine_joins(db: Database, name: str) -> None:
    (case,) = (case for case in ALL if case.id == name)
    _play(db, case, small_delta_rows=0)


def _play(db: Database, case: Case, **settings: Any) -> None:
    disable_jit(db)
    with local_client(db.dsn, **settings) as (client, _):
        play_case(db, client, case)


def play_case(db: Database, client: Client, case: Case) -> None:
    """Create what a case asks for, and after each of its batches refresh and compare."""
    for statement in (*TABLES, *(line[2:] for line in case.preparation)):
        db.execute(statement)
    for number, query in enumerate(case.queries):
        client.create_stream_table(f"st{number}", query[2:])
        # A view keeps what the query meant at first, as the stream table does.
        db.execute(f"CREATE VIEW expected{number} AS {query[2:]}")
    for batch in ("> ", *case.batches, "> "):
        if batch != "> ":
            db.execute(batch[2:])
        for result in client.tick():
            told = f"{case.id}: {result.stream_table}: {result.action}, {result.error or result.reason}"
            assert result.action in ANY_ACTION, f"{told}, after: {batch}"
            assert "failed" not in result.reason, f"{told}, after: {batch}"
        with db.connect() as connection:
            for number, query in enumerate(case.queries):
                wrong = differences(connection, f"st{number}", f"TABLE expected{number}", query[0] == "=")
                assert not wrong, f"{case.id}: {query} differs by {wrong} after: {batch}"
    for number in range(len(case.queries)):
        assert client.verify(f"st{number}").matches


def test_every_scenario_is_read_and_has_queries_and_batches() -> None:
    assert len({case.id for case in ALL}) == len(ALL)
    assert all(case.queries and len(case.batches) >= 2 for case in ALL)
