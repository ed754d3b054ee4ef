"""Sections of the report that runs of their own measure: each is replaced alone, and kept by the other runs."""

import re
from pathlib import Path

FIRST_REFRESH = "First refresh of a process"
CLUSTER = "One executor against two"
PRIMARY = "What it costs the primary"
APART = (FIRST_REFRESH, CLUSTER, PRIMARY)
LAST = "Conditions"


def put_section(path: Path, title: str, text: str) -> None:
    """Put a section into a report, in place of the one of this title or before the conditions."""
    report = path.read_text(encoding="utf-8") if path.exists() else ""
    others = _section(title).sub("", report)
    section = f"## {title}\n\n{text.strip()}\n\n"
    before, heading, rest = others.partition(f"## {LAST}\n")
    path.write_text(f"{before}{section}{heading}{rest}".rstrip() + "\n", encoding="utf-8")


def sections_apart(path: Path) -> dict[str, str]:
    """Return the sections that a report has of those measured apart, by title."""
    report = path.read_text(encoding="utf-8") if path.exists() else ""
    found = {title: _section(title).search(report) for title in APART}
    return {title: match[1] for title, match in found.items() if match}


def _section(title: str) -> re.Pattern[str]:
    return re.compile(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
