"""The signal holds back what is not complete, in the real SQLMesh, in an environment of its own."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.conftest import Database
from tests.documents import ROOT, blocks
from tests.integrations.environments import python_with

SESSION = Path(__file__).with_name("sqlmesh_session.py")
DOCUMENT = ROOT / "docs/howto/sqlmesh.md"
CONFIG = """
gateways:
  shop:
    connection:
      type: postgres
      host: {host}
      port: {port}
      user: {user}
      password: ""
      database: {dbname}
default_gateway: shop
model_defaults:
  dialect: postgres
"""


@pytest.mark.repeats
def test_sqlmesh_computes_the_intervals_that_are_complete(db: Database, tmp_path: Path) -> None:
    program = python_with("sqlmesh", "sqlmesh[postgres]>=0.230,<0.300")
    db.execute("CREATE TABLE orders (id int, ordered_at timestamptz)")
    days_later = "'2026-03-01 12:00Z'::timestamptz + d * interval '1 day'"
    db.execute(f"INSERT INTO orders SELECT d, {days_later} FROM generate_series(0, 3) AS d")
    signal, model = (block.text for block in blocks(DOCUMENT) if block.language in ("python", "sql"))
    for name, text in {
        "config.yaml": CONFIG.format(**conninfo_to_dict(db.dsn)),
        "signals/complete.py": signal,
        "models/orders_per_day.sql": model,
        "external_models.yaml": "- name: public.orders\n  columns:\n    id: int\n    ordered_at: timestamptz\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)

    def days() -> list[str]:
        own = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "HOME": str(tmp_path),
            "SQLMESH__DISABLE_ANONYMIZED_ANALYTICS": "true",
        }
        run = subprocess.run([program, SESSION, tmp_path], capture_output=True, text=True, env=own)
        assert run.returncode == 0, run.stdout + run.stderr
        said = next(line for line in run.stdout.splitlines() if line.startswith("said: "))
        return list(json.loads(said.removeprefix("said: ")))

    assert days() == []
    db.execute("SELECT pgtrickle.advance_watermark('orders', '2026-03-03 06:00Z')")
    assert days() == ["2026-03-01", "2026-03-02"], "the third of March is not complete"
    db.execute("SELECT pgtrickle.advance_watermark('orders', 'infinity')")
    assert days() == ["2026-03-01", "2026-03-02", "2026-03-03", "2026-03-04"]
