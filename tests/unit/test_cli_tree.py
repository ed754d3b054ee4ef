"""Commands are found without loading their modules, and none of a module's commands is missing."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from pytrickle.cli import app, commands, tree
from tests.documents import ROOT

MODULES = {path.stem for path in Path(commands.__file__).parent.glob("*.py")} - {"__init__"}

# A process that has loaded no module of commands starts one for each group.
ALONE = """
import os, sys
from pytrickle.cli import tree
assert not [name for name in sys.modules if name.startswith("pytrickle.cli.commands.")]
for name in tree.GROUPS:
    if not os.fork():
        print(name, *tree.Tree()[name].commands, flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.mark.parametrize("home", [*tree.PLAIN, *tree.GROUPS.values()])
def test_each_module_has_the_commands_that_the_tree_names(home: str) -> None:
    names = tree.PLAIN.get(home) or tuple(name for name, place in tree.GROUPS.items() if place == home)
    assert tuple(tree.commands_of(home)) == names


@pytest.fixture(scope="module")
def loaded_alone() -> dict[str, list[str]]:
    """The commands of each group in a process that has loaded no other one."""
    ran = subprocess.run([sys.executable, "-c", ALONE], stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    return {name: names for name, *names in map(str.split, ran.stdout.splitlines())}


@pytest.mark.parametrize("name", tree.GROUPS)
def test_a_group_that_is_loaded_alone_has_all_its_commands(name: str, loaded_alone: dict[str, list[str]]) -> None:
    """One module may add commands to the group of another."""
    for home in (*tree.PLAIN, *tree.GROUPS.values()):
        tree.commands_of(home)
    assert sorted(loaded_alone[name]) == sorted(tree.commands_of(tree.GROUPS[name])[name].commands)


def test_every_module_of_commands_is_in_the_tree() -> None:
    homes = {home.partition(".")[0] for home in (*tree.PLAIN, *tree.GROUPS.values())}
    # Its group is taken by the module that adds to it.
    assert homes | {"watermarks"} == MODULES
    assert len(MODULES) > 20


def test_a_command_is_loaded_when_it_is_asked_for() -> None:
    found = tree.Tree()
    assert (len(found), "status" in found, found.get("nonsense")) == (len(list(found)), True, None)
    assert found["status"].name == "status"
    assert found["watermark"].commands["list"].name == "list"
    assert list(get_command(app).commands) == list(found)  # type: ignore[attr-defined]
