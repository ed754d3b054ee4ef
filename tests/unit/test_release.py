"""What is released, and in what it is run: tag and changelog agree, and the images run commands that there are."""

from __future__ import annotations

import json
import re
import tomllib

import pytest
import yaml

from scripts.release_notes import release_notes
from tests.commands import COMMAND
from tests.documents import ROOT

DOCKER = ROOT / "examples/docker"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CHANGELOG = "# Changelog\n\n## Unreleased\n\nMore.\n\n## 1.2.0, 2026-03-01\n\nBetter.\n\n## 1.1.0\n\n"


def test_a_release_takes_its_notes_from_the_section_of_its_version() -> None:
    assert release_notes("v1.2.0", "1.2.0", CHANGELOG) == "Better.\n"
    for tag, version, why in [("v1.3.0", "1.2.0", "tag"), ("v1.3.0", "1.3.0", "no section"), ("v1.1.0", "1.1.0", "no")]:
        with pytest.raises(ValueError, match=why):
            release_notes(tag, version, CHANGELOG)


def test_the_images_run_commands_with_options_that_there_are() -> None:
    dockerfile = (DOCKER / "Dockerfile").read_text(encoding="utf-8")
    (default,) = (json.loads(found) for found in re.findall(r"^CMD (.*)$", dockerfile, re.MULTILINE))
    services = yaml.safe_load((DOCKER / "compose.yaml").read_text(encoding="utf-8"))["services"]
    started = [default, *(service["command"] for service in services.values() if "command" in service)]
    known = [words for words in started if words[0] in COMMAND.commands]
    assert {"install", "run"} <= {words[0] for words in known}
    for command, *options in known:
        COMMAND.commands[command].make_context(command, list(options))


def test_the_image_names_extras_that_there_are_and_plain_installation_is_small() -> None:
    dockerfile = (DOCKER / "Dockerfile").read_text(encoding="utf-8")
    named = {extra for found in re.findall(r"\[([a-z,]+)\]\"", dockerfile) for extra in found.split(",")}
    assert named - {"console"} <= PROJECT["optional-dependencies"].keys()
    heavy = re.compile("pyspark|pandas|matplotlib|numpy|opentelemetry|openlineage|prometheus")
    assert [each for each in PROJECT["dependencies"] if heavy.match(each)] == []


def test_the_document_says_of_each_extra_what_it_brings() -> None:
    rows = [
        row.split("|")[1] for row in (ROOT / "docs/howto/install.md").read_text().splitlines() if row.count("|") == 4
    ]
    told = {name for row in rows for name in re.findall("`([a-z]+)`", row)}
    assert told == PROJECT["optional-dependencies"].keys() - {"bench", "dev"}
