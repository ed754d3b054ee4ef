"""What reads the metrics: alert rules for Prometheus, and a dashboard for Grafana."""

from __future__ import annotations

from pathlib import Path

RULES = Path(__file__).with_name("rules.yaml")
"""Alert rules, as Prometheus' `rule_files` loads them."""

DASHBOARD = Path(__file__).with_name("dashboard.json")
"""A dashboard that Grafana imports; it asks for the Prometheus that it should read."""
