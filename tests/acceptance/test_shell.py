"""The sandbox of those who work on pytrickle."""

import subprocess
import sys
from pathlib import Path

from tests.documents import ROOT

PROMPTED = """
print("connected as", repr(pt))
print(len(pt.status().stream_tables), "stream tables,", pt.watermark_status()[0].reason)
print(sql("SELECT count(*) > 0 FROM orders"), sql("SELECT max(placed_at) FROM orders")[0][0].utcoffset())
psql()
"""


def test_the_sandbox_opens_with_the_tables_of_the_demo_and_is_gone_at_its_end() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "shell.py")]
    run = subprocess.run(command, input=PROMPTED, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    assert "connected as <pytrickle.Client: postgres on 127.0.0.1:" in run.stdout
    assert "3 stream tables, pytrickle_demo.order_lines is 20 s behind pytrickle_demo.orders" in run.stdout
    assert "[(True,)] 0:00:00" in run.stdout
    assert "Traceback" not in run.stderr
    (place,) = {word.partition("=")[2] for word in run.stderr.split() if word.startswith("PGPASSFILE=")}
    assert not Path(place).parent.exists()
