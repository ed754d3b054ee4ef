"""The page that describes the tree is true: every file, folder and function that it names is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.documents import ROOT

PAGE = ROOT / "docs/explanation/architecture.md"
ROWS = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
PATH = re.compile(r"`([\w./]+/[\w./]*)`")
NAME = re.compile(r"`(\w+(?:\.\w+)?)`")
TABLES = ("The way of one change", "Beside that way", "Where do I …?")


def _section(heading: str) -> list[str]:
    """Return the rows of the table below a heading, without the table's own heading."""
    _, _, rest = PAGE.read_text(encoding="utf-8").partition(f"## {heading}\n")
    assert rest, heading
    lines = rest.partition("\n## ")[0].splitlines()
    rows = [line for line in lines if line.startswith("| ") and "---" not in line]
    return rows[1:]


def _defined(path: Path) -> set[str]:
    """Return the functions of a file: in Python with those of its classes, in SQL without the schema."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".sql":
        return set(re.findall(r"FUNCTION pgtrickle(?:_private)?\.(\w+)\(", text))
    found = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{each.name}" for each in node.body if isinstance(each, ast.FunctionDef)}
    return found


def _file_and_functions(row: str) -> tuple[str, list[str]]:
    """Return what the second and third cell of a row name."""
    file, functions = row.strip("| ").split(" | ")[1:3]
    return file.strip("`"), NAME.findall(functions)


@pytest.mark.parametrize("path", sorted({path for row in ROWS for path in PATH.findall(row)}))
def test_every_file_and_folder_that_the_page_names_is_there(path: str) -> None:
    assert (ROOT / path).is_dir() if path.endswith("/") else (ROOT / path).is_file()


@pytest.mark.parametrize("row", [row for heading in TABLES for row in _section(heading)])
def test_every_function_that_the_page_names_is_in_its_file(row: str) -> None:
    file, functions = _file_and_functions(row)
    assert functions
    assert set(functions) <= _defined(ROOT / file)


def test_the_page_names_every_room() -> None:
    text = PAGE.read_text(encoding="utf-8")
    packages = {path.parent.relative_to(ROOT) for path in (ROOT / "pytrickle").rglob("__init__.py")}
    hidden = {Path("pytrickle"), Path("pytrickle/streaming/sink")}
    assert [str(path) for path in sorted(packages - hidden) if f"`{path}/`" not in text] == []
    loose = sorted(path.name for path in (ROOT / "pytrickle").glob("*.py") if path.name != "__init__.py")
    assert [name for name in loose if f"`pytrickle/{name}`" not in text] == []


def test_the_page_counts_its_hops_and_files() -> None:
    hops = [_file_and_functions(row)[0] for row in _section("The way of one change")]
    assert f"These are {len(hops)} hops in {len(set(hops))} files." in PAGE.read_text(encoding="utf-8")


def test_the_way_of_one_change_is_short() -> None:
    hops = [_file_and_functions(row)[0] for row in _section("The way of one change")]
    assert len(hops) <= 25
    assert len(set(hops)) <= 15


def test_what_is_beside_the_way_is_not_on_it_too() -> None:
    way, beside = ({_file_and_functions(row)[0] for row in _section(heading)} for heading in TABLES[:2])
    assert way.isdisjoint(beside)


def test_a_newcomer_finds_twenty_answers() -> None:
    assert len(_section("Where do I …?")) == 20


@pytest.mark.parametrize("path", sorted((ROOT / "sql/functions").rglob("*.sql")), ids=lambda path: path.stem)
def test_sql_comes_in_short_files_of_short_lines(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 300
    assert [number for number, line in enumerate(lines, 1) if len(line) > 120] == []
    # A database may have another encoding than UTF-8.
    assert path.read_text(encoding="utf-8").isascii()
