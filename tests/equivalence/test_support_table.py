"""The table of supported SQL is what the planner says today, and what it does not refuse is exact."""

import subprocess
import sys
from pathlib import Path

import pytest

from scripts.support_table import Construct, answer, read_constructs
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences
from tests.repeats import first

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "docs/reference/support.md"

# What has another answer whenever it is asked, or none at all; or lists rows as PostgreSQL happens to join them.
UNSTEADY = {
    "array_agg without ORDER BY, over rows that are joined",
    "foreign table",
    "system catalog",
    "system column",
    "LIMIT without ORDER BY",
    "LIMIT of a subquery without ORDER BY",
}
CHANGES = """
INSERT INTO customers SELECT i, 'name ' || i, (ARRAY['x', 'y', NULL])[i % 3 + 1], nullif(i / 2, 0)
FROM generate_series(1, 8) AS i ON CONFLICT DO NOTHING;
INSERT INTO orders SELECT i, nullif(i % 6, 5), i % 9 * 1.5, (ARRAY['a', 'name 1', NULL])[i % 3 + 1],
    current_date - i, i % 2 = 0 FROM generate_series(1, 24) AS i ON CONFLICT DO NOTHING;
INSERT INTO returns SELECT i, nullif(i % 4, 3), i % 5 * 3 FROM generate_series(1, 6) AS i;
INSERT INTO readings SELECT i % 3, i / 3.0, ARRAY['t' || i, 'u'],
    jsonb_build_object('unit', i, 'parts', '[1, 2]'::jsonb) FROM generate_series(1, 6) AS i
|
UPDATE orders SET amount = amount + 1, customer = customer + 1 WHERE id % 4 = 0;
DELETE FROM orders WHERE id % 7 = 0;
DELETE FROM returns WHERE customer IS NULL;
UPDATE customers SET region = 'x', parent = 3 WHERE id = 8;
UPDATE readings SET value = value * 2, tags = tags || 'more'::text WHERE sensor = 1
|
DELETE FROM orders WHERE customer = 2;
DELETE FROM customers WHERE id > 6;
INSERT INTO returns VALUES (1, NULL, NULL), (1, 2, 9);
TRUNCATE readings
"""


def answers() -> dict[tuple[str, str], str]:
    """Read the committed table: (section, construct) -> answer."""
    found, section = {}, ""
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        section = line.removeprefix("## ") if line.startswith("## ") else section
        cells = line.replace("\\|", "\0").strip("| ").split(" | ")
        if line.startswith("| ") and len(cells) == 3:
            found[section, cells[0]] = cells[2]
    return found


def test_every_fourth_construct_has_the_answer_that_the_table_gives(db: Database) -> None:
    prologue, constructs = read_constructs()
    with db.connect() as connection:
        connection.execute(prologue.encode())
        given = {(each.section, each.name): answer(connection, each.query) for each in constructs[::4]}
    known = answers()
    assert given == {key: known[key].replace("\0", "|") for key in given}


@pytest.mark.repeats
def test_the_table_of_supported_sql_is_up_to_date(db: Database) -> None:
    command = [sys.executable, str(ROOT / "scripts/support_table.py"), db.dsn]
    written = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    assert TABLE.read_text(encoding="utf-8") == written, "run scripts/support_table.py"


def test_every_construct_has_one_answer() -> None:
    _, constructs = read_constructs()
    assert [(each.section, each.name) for each in constructs] == [key for key in answers() if key[1] != "construct"]


@pytest.mark.parametrize("begin", first(0, range(2), then=1))
def test_what_is_not_refused_equals_its_query_after_every_change(db: Database, begin: int) -> None:
    """Every other construct in each run."""
    prologue, constructs = read_constructs()
    known = answers()
    accepted = [
        each
        for each in constructs
        if not known[each.section, each.name].startswith("refused") and each.name not in UNSTEADY
    ][begin::2]
    db.execute(prologue)
    with local_client(db.dsn) as (client, _):
        for number, construct in enumerate(accepted):
            client.create_stream_table(f"c{number}", construct.query)
        client.tick()
        for batch in CHANGES.split("|\n"):
            for statement in batch.split(";\n"):
                db.execute(statement)
            failed = [result for result in client.tick() if result.error]
            assert not failed
            assert_equal(db, accepted)


def assert_equal(db: Database, constructs: list[Construct]) -> None:
    with db.connect() as connection:
        for number, construct in enumerate(constructs):
            wrong = differences(connection, f"c{number}", construct.query, False)
            assert not wrong, f"{construct.section}, {construct.name}: {construct.query} differs by {wrong}"
