"""Every rule by the name of its file: a query, the delta that the rule makes of it, and what changes come to.

`rules/<name>.sql` belongs to the file of that name in `pytrickle/plan`. A case is a sentence about it, a query, the
terms of its delta (`-- =`), changes, and the rows that come (`-- +`) and go (`-- -`). Every case begins with ROWS; Δ is
what changed, old and new are before and after that, and … are inputs that fill a line.
"""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytrickle.client.client import Client
from tests.conftest import Database
from tests.documents import ROOT
from tests.equivalence.local_engine import local_client

RULES = Path(__file__).parent / "rules"
NAMES = sorted(path.stem for path in RULES.glob("*.sql"))
TABLES = (
    "CREATE TABLE l (id int PRIMARY KEY, k int, v int)",
    "CREATE TABLE r (id int PRIMARY KEY, k int, v int)",
    "CREATE INDEX ON r (k)",
)
ROWS = (
    "TRUNCATE l, r",
    "INSERT INTO l VALUES (1, 1, 10), (2, 1, 20), (3, 2, 30)",
    "INSERT INTO r VALUES (1, 1, 5), (2, 3, 7)",
)


@dataclass(frozen=True, slots=True)
class Case:
    """One query, and what some changes do to it."""

    sentence: str
    query: str
    terms: tuple[str, ...]
    changes: str
    rows: tuple[str, ...]


def cases(name: str) -> list[Case]:
    """Read the cases of a file, which blank lines separate."""
    pattern = re.compile(r"((?:-- .+\n)+)([^;]+);\n((?:-- = .+\n)+)((?:[^-].*\n)+)((?:-- [+-] .+\n?)*)")
    blocks = (RULES / f"{name}.sql").read_text(encoding="utf-8").split("\n\n")
    return [_case(pattern.fullmatch(block.strip() + "\n"), block) for block in blocks]


def _case(found: re.Match[str] | None, block: str) -> Case:
    assert found is not None, f"no case: {block}"
    sentence, query, terms, changes, rows = found.groups()
    listed = [tuple(line.removeprefix("-- ") for line in part.splitlines()) for part in (sentence, terms, rows)]
    return Case(" ".join(listed[0]), query, tuple(term.removeprefix("= ") for term in listed[1]), changes, listed[2])


def shown(database: Database) -> Counter[str]:
    """Return the rows of the stream table as text."""
    with database.connect() as connection:
        return Counter(text for (text,) in connection.execute("SELECT s::text FROM st AS s").fetchall())


def play(client: Client, database: Database, case: Case) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the terms of the delta, and the rows that came and went."""
    for statement in ROWS:
        database.execute(statement)
    client.create_stream_table("st", case.query, refresh_mode="DIFFERENTIAL")
    client.refresh("st")
    before = shown(database)
    for change in case.changes.strip().split(";\n"):
        database.execute(change)
    terms = tuple(re.sub(r"\(.{80,}\)", "(…)", term) for term in client.explain("st").data["terms"])
    result = client.refresh("st")
    assert result.action == "DIFFERENTIAL" and "failed" not in result.reason, f"{case.sentence}: {result}"
    assert client.verify("st").matches, case.sentence
    after = shown(database)
    client.drop_stream_table("st")
    moved = {"+": after - before, "-": before - after}
    return terms, tuple(f"{sign} {row}" for sign, rows in moved.items() for row in sorted(rows.elements()))


@pytest.mark.parametrize("name", NAMES)
def test_a_rule_makes_the_delta_that_its_file_shows(db: Database, name: str) -> None:
    for statement in TABLES:
        db.execute(statement)
    with local_client(db.dsn) as (client, _):
        for case in cases(name):
            assert play(client, db, case) == (case.terms, case.rows), case.sentence


def test_every_construct_has_a_file_of_cases_and_every_file_belongs_to_a_rule() -> None:
    plan = ROOT / "pytrickle/plan"
    constructs = {path.stem for path in (plan / "algebra/constructs").glob("*.py")} - {"__init__"}
    assert constructs | {"delta"} <= set(NAMES)
    rules = {path.stem for room in ("algebra", "algebra/constructs", "query") for path in (plan / room).glob("*.py")}
    assert set(NAMES) <= rules
