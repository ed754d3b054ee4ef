"""What is distributed is complete."""

import ast
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import pytrickle
from pytrickle.catalog import install as migrate

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = directory.glob("pytrickle_postgres-*.whl")
    return built


def test_wheel_has_all_modules_all_sql_all_macros_all_rules_and_all_of_the_console(wheel: Path) -> None:
    modules = {f"pytrickle/{path.relative_to(ROOT / 'pytrickle')}" for path in (ROOT / "pytrickle").rglob("*.py")}
    scripts = {f"pytrickle/_sql/{path.relative_to(ROOT / 'sql')}" for path in (ROOT / "sql").rglob("*.sql")}
    formats = {"pyspark_pytrickle/__init__.py"}
    macros = {
        f"pytrickle/{path.relative_to(ROOT / 'pytrickle')}"
        for folder in ("dbt/package", "prometheus")
        for path in (ROOT / "pytrickle/integrations" / folder).rglob("*.*")
        if path.suffix != ".pyc"
    }
    console = {f"pytrickle/{path.relative_to(ROOT / 'pytrickle')}" for path in _files_of_the_console()}
    assert scripts and len(macros) > 4 and len(console) > 10
    with zipfile.ZipFile(wheel) as archive:
        assert modules | scripts | formats | macros | console | {"pytrickle/py.typed"} <= set(archive.namelist())


def _files_of_the_console() -> list[Path]:
    folder = ROOT / "pytrickle/console"
    return [*folder.glob("templates/*"), *folder.glob("assets/*")]


def test_unpacked_wheel_reads_its_own_sql(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    script = "from pytrickle.catalog import install; print(install.__file__); print(install.render(), end='')"
    run = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, check=True, capture_output=True, text=True, encoding="utf-8"
    )
    location, _, rendered = run.stdout.partition("\n")
    assert location == str(tmp_path / "pytrickle" / "catalog" / "install.py")
    assert rendered == migrate.render()


def test_checkout_reads_its_live_sql() -> None:
    first, *_ = migrate.scripts()
    assert first.text == (ROOT / "sql" / "migrations" / f"{first.name}.sql").read_text(encoding="utf-8")
    assert not (ROOT / "pytrickle" / "_sql").exists()


def test_exports_are_sorted_and_there() -> None:
    assert pytrickle.__all__ == sorted(pytrickle.__all__, key=str)
    assert all(getattr(pytrickle, name) is not None for name in pytrickle.__all__)


def test_what_is_loaded_when_it_is_first_asked_for_has_its_type_before() -> None:
    tree = ast.parse(Path(pytrickle.__file__).read_text(encoding="utf-8"))
    told = [statement for node in tree.body if isinstance(node, ast.If) for statement in node.body]
    found = {
        name.name: statement.module
        for statement in told
        if isinstance(statement, ast.ImportFrom)
        for name in statement.names
    }
    assert found.pop("errors") == "pytrickle"
    assert found == pytrickle._HOMES
