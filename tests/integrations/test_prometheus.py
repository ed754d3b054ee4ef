"""Prometheus takes the alert rules, and they fire when they should: by its own program, promtool."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytrickle.integrations.prometheus import RULES
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
