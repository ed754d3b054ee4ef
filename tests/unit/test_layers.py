"""The layers of the package hold, at rest and at run time."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.repeats import first

ROOT = Path(__file__).parents[2]
DRIVERS = {"psycopg", "pyspark", "sqlalchemy"}
OF_SPARK = (
    *("pytrickle.compute.spark", "pytrickle.streaming.sink"),
    *("pytrickle.streaming.data_source", "pytrickle.streaming.source.data_source"),
    *("pytrickle.streaming.source.filters", "pytrickle.streaming.source.readers"),
)


def _modules(package: str) -> set[str]:
    """Return every module of a package: importing the package alone would load next to nothing."""
    files = (ROOT / package.replace(".", "/")).rglob("*.py")
    return {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in files}


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
    # Those of other tools import their tool, which need not be there.
    elsewhere = (*OF_SPARK, "pytrickle.integrations.")
    others = sorted(name for name in _modules("pytrickle") if not name.startswith(elsewhere))
    assert "pytrickle.client.client" in others
    assert _loaded_by(f"import {', '.join(others)}").isdisjoint({"pyspark", "py4j"})


@pytest.mark.parametrize("package", ["pytrickle.plan", "pytrickle.inspect.drawing", "pytrickle.watermarks"])
def test_pure_layers_load_no_driver(package: str) -> None:
    modules = sorted(_modules(package))
    assert len(modules) > 5
    assert _loaded_by(f"import {', '.join(modules)}").isdisjoint(DRIVERS)


def test_what_draws_the_screen_is_not_loaded_before_the_database_is_asked() -> None:
    assert "rich" not in _loaded_by("import pytrickle.cli, pytrickle.cli.commands.status, pytrickle.client.reports")


def test_the_end_of_a_command_looks_for_no_cycles() -> None:
    script = (
        "import gc, sys\nfrom pytrickle.cli import main\nsys.argv = ['pytrickle', '--version']\n"
        "try:\n    main()\nexcept SystemExit as ended:\n    assert not ended.code\nassert gc.get_freeze_count()"
    )
    subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, cwd=ROOT)


def test_a_small_command_loads_little() -> None:
    """What takes long to load, and the commands that were not called, are left out: a shell waits for each of them."""
    script = (
        "from pytrickle.cli import app\n"
        "try:\n    app(['status', '--dsn', 'host=/nowhere'], standalone_mode=False)\n"
        "except BaseException as ended:\n    print(type(ended).__name__, getattr(ended, 'exit_code', ended))\n"
        "print(*sorted(name for name in sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", f"import sys\n{script}"], capture_output=True, text=True, cwd=ROOT)
    assert "could not be reached" in run.stderr, "it got as far as the database"
    loaded = set(run.stdout.split())
    packages = {name.partition(".")[0] for name in loaded}
    assert packages.isdisjoint(
        {"sqlalchemy", "sqlglot", "networkx", "pyspark", "py4j", "numpy", "pyarrow", "pandas", "matplotlib", "pydantic"}
    )
    assert "rich.progress" not in loaded
    assert {name for name in loaded if name.startswith("pytrickle.cli.commands.")} == {"pytrickle.cli.commands.status"}
    assert not {
        name for name in loaded if name.startswith(("pytrickle.plan", "pytrickle.refresh", "pytrickle.watermarks"))
    }


def test_loaders_of_single_rows_load_no_array_library() -> None:
    assert _loaded_by("import pytrickle.watermarks").isdisjoint({"numpy", "pyarrow"})


@pytest.mark.parametrize(
    ("module", "loaded"),
    first(
        2,
        [
            ("pytrickle.database.connect", "psycopg"),
            ("pytrickle.compute.spark.session", "pyspark"),
            ("pytrickle.streaming.sink.data_source", "pyspark"),
            ("pytrickle.catalog.tables", "sqlalchemy"),
        ],
    ),
)
def test_a_forbidden_import_would_be_seen(module: str, loaded: str) -> None:
    assert loaded in _loaded_by(f"import {module}")
