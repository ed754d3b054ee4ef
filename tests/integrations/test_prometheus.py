"""Prometheus takes the metrics and the alert rules, and these fire when they should: by its own program, promtool."""

import subprocess
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import yaml

from pytrickle.cli.observer import Wanted, observed
from pytrickle.cli.service import Service
from pytrickle.integrations.prometheus import RULES
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.integrations.environments import debian_program

HELD = 'pytrickle_stream_table_state{stream_table="public.sales", state="gated"}'
LEADER = 'pytrickle_leader{instance="one"}'


def fires(alert: str, at: str, **labels: str) -> dict[str, Any]:
    return {"alertname": alert, "eval_time": at, "exp_alerts": [{"exp_labels": labels}] if labels else []}


@pytest.mark.repeats
def test_the_rules_fire_for_what_is_held_up_and_for_nobody_leading(tmp_path: Path) -> None:
    promtool = debian_program("prometheus", "usr/bin/promtool")
    rules = yaml.safe_load(RULES.read_text())
    for rule in rules["groups"][0]["rules"]:
        # What a text says in detail is not compared.
        rule.pop("annotations")
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rules))
    held = {"stream_table": "public.sales", "state": "gated", "severity": "warning"}
    tests = [
        {
            "interval": "1m",
            "input_series": [{"series": HELD, "values": "1x30"}, {"series": LEADER, "values": "1x14 0x15"}],
            "alert_rule_test": [
                fires("PytrickleStreamTableHeldUp", "9m"),
                fires("PytrickleStreamTableHeldUp", "11m", **held),
                fires("PytrickleNobodyRefreshes", "14m"),
                fires("PytrickleNobodyRefreshes", "25m", severity="critical"),
            ],
        }
    ]
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "tests": tests}))
    for command in (["check", "rules", str(RULES)], ["test", "rules", str(tmp_path / "tests.yaml")]):
        run = subprocess.run([promtool, *command], capture_output=True, text=True)
        assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.repeats
def test_names_units_and_labels_follow_the_conventions(db: Database) -> None:
    promtool = debian_program("prometheus", "usr/bin/promtool")
    db.execute("CREATE TABLE orders (id int); CREATE TABLE lines (id int)")
    with local_client(db.dsn) as (client, _), observed(client, Service(None), Wanted("0")) as observer:
        client.create_watermark_group("pipeline", ["orders", "lines"])
        client.create_stream_table("counts", "SELECT count(*) FROM orders")
        client.tick(observer.result)
        db.execute("INSERT INTO orders VALUES (1)")
        client.tick(observer.result)
        db.execute("SELECT pgtrickle.advance_watermark('orders', '2026-01-01 12:05Z')")
        db.execute("INSERT INTO orders VALUES (2)")
        client.set_alert_limits("orders", lag="1 hour")
        db.execute("SELECT pgtrickle.raise_alerts()")
        with urlopen(f"http://127.0.0.1:{observer.port}/metrics", timeout=30) as answer:
            scraped = answer.read()
    for metric in (b"commit_to_visible_seconds{", b"lag_culprit_info{", b"alert_open{", b"refresh_rows_total{"):
        assert metric in scraped, "the conventions hold for all that there is, not for what is missing"
    run = subprocess.run([promtool, "check", "metrics"], input=scraped, capture_output=True)
    assert (run.returncode, run.stderr) == (0, b"")
