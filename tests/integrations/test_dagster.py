"""Assets and checks of the page work in the real Dagster, in an environment of its own."""

import json
import os
import subprocess
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Any

import pytest

import pytrickle
from tests.conftest import Database
from tests.documents import ROOT, blocks
from tests.integrations.environments import python_with

SESSION = Path(__file__).with_name("dagster_session.py")
DOCUMENT = ROOT / "docs/howto/dagster.md"


@pytest.mark.repeats
def test_dagster_observes_the_data_time_and_checks_completeness(db: Database, tmp_path: Path) -> None:
    program = python_with("dagster", "dagster>=1.10,<2", "psycopg[binary]>=3.2,<4")
    db.execute("CREATE TABLE orders (id int)")
    db.execute("SELECT pgtrickle.create_watermark_group('shop', ARRAY['orders'])")
    query = "SELECT id, count(*) AS n FROM orders GROUP BY id"
    db.execute("SELECT pgtrickle.create_stream_table('sales', %s, watermark_gating => 'hold_back')", query)
    own = {**os.environ, "DAGSTER_HOME": str(tmp_path), "SHOP_DSN": db.dsn, "PYTHONPATH": str(ROOT)}
    (example,) = (block.text for block in blocks(DOCUMENT) if block.language == "python")
    example_file = tmp_path / "example.py"
    example_file.write_text(example)
    with (
        pytrickle.connect(db.dsn, engine="postgres") as client,
        subprocess.Popen(
            [program, SESSION, example_file], stdin=PIPE, stdout=PIPE, stderr=DEVNULL, text=True, env=own
        ) as process,
    ):
        assert process.stdin and process.stdout
        asked, lines = process.stdin, process.stdout

        def observed() -> Any:
            asked.write("\n")
            asked.flush()
            return next(json.loads(line.removeprefix("said: ")) for line in lines if line.startswith("said: "))

        first = observed()
        assert (first["data_time"], first["passed"]) == (None, False) and "nothing yet" in first["told"]
        db.execute("SELECT pgtrickle.advance_watermark('orders', '2026-03-01 12:00Z')")
        client.tick()
        second = observed()
        assert second["data_time"] == 1772366400 and second["version"] != first["version"]
        assert not second["passed"] and "2026-03-01 12:00:00Z" in second["told"]
        db.execute("INSERT INTO orders VALUES (1)")
        db.execute("SELECT pgtrickle.advance_watermark('orders', now() - interval '1 minute')")
        client.tick()
        third = observed()
        assert third["passed"] and third["version"] != second["version"] and third["data_time"] > second["data_time"]
        assert observed()["version"] == third["version"], "nothing new, no other version"
        asked.close()
