"""The documents as text: links lead somewhere, references are complete, nothing claims to be run that is not."""

from __future__ import annotations

import inspect
import re
import shlex
import subprocess
import sys
from dataclasses import fields
from datetime import timedelta
from pathlib import Path

import pytest
from typer import BadParameter

from pytrickle import errors, watermarks
from pytrickle.client.client import Client
from pytrickle.compute.spark.session import CONFIGURATION, LOCAL
from pytrickle.config import Settings
from tests.commands import COMMAND
from tests.documents import ROOT, RUNNABLE, anchors, blocks, documents, links

# What is in a fence but is not meant to be run: formulas and layouts.
PLAIN = ("text",)


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", documents(), ids=name)
def test_links_lead_somewhere(path: Path) -> None:
    for link in links(path):
        if link.startswith(("https://", "mailto:")):
            continue
        place, _, anchor = link.partition("#")
        target = (path.parent / place).resolve() if place else path
        assert target.exists(), f"{name(path)} links to {link}"
        assert not anchor or anchor in anchors(target), f"{name(path)} links to {link}"


@pytest.mark.parametrize("path", documents(), ids=name)
def test_every_block_is_run_or_excused(path: Path) -> None:
    for block in blocks(path):
        assert block.language in (*RUNNABLE, *PLAIN) or block.excuse, f"{name(path)}:{block.line}"
        assert block.excuse is None or len(block.excuse) > 10, f"{name(path)}:{block.line} has no reason"


@pytest.mark.parametrize("path", documents(), ids=name)
def test_commands_that_are_not_run_are_taken_by_the_command_line(path: Path) -> None:
    for block in blocks(path):
        if not block.excuse or block.language not in ("console", "bash"):
            continue
        for words in re.findall(r"^(?:\$ )?pytrickle ([^>|\n]*)", block.text.replace("\\\n", ""), re.MULTILINE):
            first, *rest = shlex.split(words, comments=True)
            assert first in COMMAND.commands, f"{name(path)}:{block.line}: pytrickle {words}"
            try:
                COMMAND.commands[first].make_context(first, rest)
            except BadParameter as error:  # Files that the document names are not here.
                assert "No such file" in error.message, f"{name(path)}:{block.line}"


@pytest.mark.parametrize("path", sorted((ROOT / "docs").rglob("*.md")), ids=name)
def test_every_page_begins_with_who_needs_it(path: Path) -> None:
    # The pages of decisions begin with the question that was asked.
    wanted = "**Question.**" if re.match(r"\d", path.name) else "For "
    title, _, text = path.read_text(encoding="utf-8").partition("\n")
    first = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL).lstrip().partition("\n\n")[0]
    assert title.startswith("# ") and first.startswith(wanted) and first.endswith((".", ":", "?")), first


def test_drawings_ask_no_other_server_for_anything() -> None:
    drawings = list((ROOT / "docs").rglob("*.svg"))
    assert ROOT / "docs/demo.svg" in drawings and "hold_back" in (ROOT / "docs/demo.svg").read_text(encoding="utf-8")
    elsewhere = re.compile(r"@font-face|@import|href=.http|url\(.?http")
    assert [name(path) for path in drawings if elsewhere.search(path.read_text(encoding="utf-8"))] == []


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 130


def test_every_document_is_reached_from_the_readme() -> None:
    seen, waiting = set(), [ROOT / "README.md"]
    while waiting:
        path = waiting.pop()
        seen.add(path)
        local = ((path.parent / link.partition("#")[0]).resolve() for link in links(path) if "://" not in link)
        waiting += [target for target in local if target.suffix == ".md" and target.exists() and target not in seen]
    assert set(documents()) <= seen


def test_every_error_is_described() -> None:
    text = (ROOT / "docs/reference/errors.md").read_text(encoding="utf-8")
    classes = [cls for _, cls in inspect.getmembers(errors, inspect.isclass) if cls.__module__ == errors.__name__]
    assert [cls.__name__ for cls in classes if f"`{cls.__name__}`" not in text] == []


def test_every_setting_is_described_with_its_variable() -> None:
    text = (ROOT / "docs/reference/settings.md").read_text(encoding="utf-8")
    rows = [
        f"| `{setting.name}` | `PYTRICKLE_{setting.name.upper()}` | {shown(setting.default)} |"
        for setting in fields(Settings)
    ]
    assert [row for row in rows if row not in text] == []


def test_all_that_the_built_in_session_sets_is_described() -> None:
    text = (ROOT / "docs/reference/settings.md").read_text(encoding="utf-8")
    rows = [row.split("|")[1:3] for row in text.splitlines() if row.startswith("| `spark.")]
    described = {(name.strip(), value.strip()) for names, value in rows for name in names.split(",")}
    assert described == {(f"`{name}`", f"`{value}`") for name, value in (CONFIGURATION | LOCAL).items()}


def shown(default: object) -> str:
    match default:
        case None:
            return "none"
        case True:
            return "`on`"
        case "":
            return "empty"
        case timedelta(days=days, seconds=0) if days:
            return f"`{days}` (days)"
        case timedelta():
            return f"`{default.total_seconds():g}` (second)"
        case _:
            return f"`{default}`"


def test_every_method_of_the_client_is_described() -> None:
    text = (ROOT / "docs/reference/python.md").read_text(encoding="utf-8")
    methods = [one for one, _ in inspect.getmembers(Client, inspect.isfunction) if not one.startswith("_")]
    internal = {"verify_catalog", "known_shape"}
    assert [one for one in methods if f"`{one}(" not in text and one not in internal] == []


def test_everything_for_loaders_is_described() -> None:
    text = (ROOT / "docs/reference/python.md").read_text(encoding="utf-8")
    assert [one for one in watermarks.__all__ if not re.search(rf"`{one}\b", text)] == []
    for kind in (watermarks.Generator, watermarks.Tracker):
        methods = [one for one in vars(kind) if not one.startswith("_")]
        assert [one for one in methods if not re.search(rf"`{one}[`(]", text)] == [], kind
    assert [one.name for one in fields(watermarks.Metrics) if f"`{one.name}`" not in text] == []


def test_the_reference_of_commands_is_up_to_date() -> None:
    written = subprocess.run(
        [sys.executable, str(ROOT / "scripts/cli_reference.py")], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    assert (ROOT / "docs/reference/cli.md").read_text(encoding="utf-8") == written, "run scripts/cli_reference.py"


def test_documents_speak_only_of_the_project() -> None:
    private = re.compile(r"/tmp/\w|/root|/home/|/work/")
    assert [name(path) for path in documents() if private.search(path.read_text(encoding="utf-8"))] == []
