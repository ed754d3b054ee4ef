"""The layers of the package hold, at rest and at run time."""

import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import pytrickle

ROOT = Path(__file__).parents[2]


def _modules(package: str) -> str:
    """Return a package and every module below it, for an import statement: the package alone may import none."""
    root = importlib.import_module(package)
    below = pkgutil.walk_packages(getattr(root, "__path__", ()), f"{package}.")
    return ", ".join([package, *(module.name for module in below if not module.name.endswith("__main__"))])


def _loaded_by(statement: str) -> set[str]:
    """Return the top-level modules that a fresh interpreter has loaded after ``statement``."""
    script = f"import sys; {statement}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(run.stdout.split())


def test_import_linter_contracts_are_kept() -> None:
    program = Path(sys.executable).with_name("lint-imports")
    run = subprocess.run([program, "--no-cache"], capture_output=True, text=True, cwd=ROOT)
    assert run.returncode == 0, run.stdout


def test_only_a_refresh_loads_spark() -> None:
    refreshing = {"execute", "refresh", "scheduler"}
    modules = {module.name for module in pkgutil.iter_modules(pytrickle.__path__)}
    assert refreshing <= modules
    others = ", ".join(_modules(f"pytrickle.{name}") for name in sorted(modules - refreshing))
    assert _loaded_by(f"import {others}").isdisjoint({"pyspark", "py4j"})


@pytest.mark.parametrize(
    "module", ["pytrickle.plan", "pytrickle.catalog.gating", "pytrickle.inspect.drawing", "pytrickle.watermarks"]
)
def test_pure_layers_load_no_driver(module: str) -> None:
    assert _loaded_by(f"import {_modules(module)}").isdisjoint({"psycopg", "pyspark", "sqlalchemy"})


def test_loaders_of_single_rows_load_no_array_library() -> None:
    assert _loaded_by("import pytrickle.watermarks").isdisjoint({"numpy", "pyarrow"})


def test_a_forbidden_import_would_be_seen() -> None:
    assert "psycopg" in _loaded_by("import pytrickle.database")
