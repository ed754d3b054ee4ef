"""The operators, the sensor and the trigger work with the real Airflow, in an environment of its own."""

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

SESSION = Path(__file__).with_name("airflow_session.py")
DOCUMENT = ROOT / "docs/howto/airflow.md"


@pytest.mark.repeats
def test_airflow_loads_with_watermarks_and_waits_for_completeness(db: Database, tmp_path: Path) -> None:
    program = python_with("airflow", "apache-airflow-core>=3.2,<4", "psycopg[binary]>=3.2,<4")
    db.execute("CREATE TABLE orders (id int)")
    db.execute("SELECT pgtrickle.create_watermark_group('shop', ARRAY['orders'])")
    query = "SELECT id, count(*) AS n FROM orders GROUP BY id"
    db.execute("SELECT pgtrickle.create_stream_table('per_day', %s, watermark_gating => 'hold_back')", query)
    own = {**os.environ, "AIRFLOW_HOME": str(tmp_path), "AIRFLOW_CONN_SHOP": db.dsn, "PYTHONPATH": str(ROOT)}
    (example,) = (block.text for block in blocks(DOCUMENT) if "DAG(" in block.text)
    command = [str(program), str(SESSION), str(DOCUMENT)]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, text=True, env=own) as process:
        assert process.stdin and process.stdout
        process.stdin.write(example)
        process.stdin.close()
        lines = process.stdout

        def said() -> Any:
            return next(json.loads(line.removeprefix("said: ")) for line in lines if line.startswith("said: "))

        assert said() == ["complete", "load", "report"]
        assert said() == "2026-03-01T00:00Z"
        assert said() == "DataException", "a watermark does not go back, and nothing is loaded"
        assert said() == "2026-03-01T00:00:00Z"
        assert said() == ["2026-03-01T00:00:00Z"]
        path, told = said()
        assert path.endswith("CompletenessTrigger") and told["name"] == "per_day"
        assert db.dsn not in str(told), "the triggerer learns of a connection by its name"
        assert said() == "complete"
        db.execute("SELECT pgtrickle.advance_watermark('orders', '2026-05-01Z')")
        with pytrickle.connect(db.dsn, engine="postgres") as client:
            assert [result.action for result in client.tick()] == ["FULL"]
        assert said() == "2026-05-01T00:00:00Z"
        assert said() == ["2026-05-01T00:00:00Z"]
        assert said() == {"name": "per_day", "watermark": "2026-05-01T00:00:00Z"}
    assert db.execute("TABLE orders") == [(2,)]
