"""The table of the extension's functions is true of the real catalog, and says why where something is missing."""

import subprocess
import sys

from scripts.mirror_table import lines
from tests.conftest import Database
from tests.documents import ROOT

DIFFERENT = {"create_watermark_group"}


def test_the_table_is_written_from_the_catalog(db: Database) -> None:
    command = [sys.executable, str(ROOT / "scripts/mirror_table.py"), db.dsn]
    written = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    page = ROOT / "docs/reference/pg-trickle.md"
    assert page.read_text(encoding="utf-8") == written, "run make docs"


def test_every_function_of_the_extension_is_there_or_explained(db: Database) -> None:
    compared = lines(db.connect())
    assert len(compared) == 185
    unexplained = [line.function.name for line in compared if line.verdict in ("absent", "other") and not line.remark]
    assert not unexplained
    needless = [line.function.name for line in compared if line.verdict == "same" and line.remark]
    assert not needless


def test_the_readme_counts_what_is_there(db: Database) -> None:
    there = sum(line.verdict != "absent" for line in lines(db.connect()))
    assert f"{there} of its 185 functions" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_only_what_is_named_here_differs_in_its_arguments_or_columns(db: Database) -> None:
    assert {line.function.name for line in lines(db.connect()) if line.verdict == "other"} == DIFFERENT
