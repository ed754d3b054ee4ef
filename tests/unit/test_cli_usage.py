"""Wrong usage in plain words, and where help is to be had."""

from __future__ import annotations

import pytest

from tests.unit.cli_recorder import Recorder, recording, run


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    return recording(monkeypatch)


def test_a_wrong_value_is_told_in_plain_words_and_not_in_those_of_a_library(client: Recorder) -> None:
    for arguments, sentence in {
        ("history", "--limit", "0"): "Invalid value for '--limit' / '-n': '0' is too small; the least is 1.",
        ("history", "--limit", "x"): "Invalid value for '--limit' / '-n': 'x' is no whole number.",
        ("alter", "name", "--engine", "foo"): "'--engine': 'foo' is not one of 'auto', 'spark', 'postgres'.",
        ("dag", "--format", "foo"): "'--format': 'foo' is not one of 'tree', 'mermaid', 'svg', 'png'.",
        ("alert", "set", "--late-share", "x"): "Invalid value for '--late-share': 'x' is no number.",
        ("discard", "orders", "--id", "1", "--id", "x"): "'--id': One of the values is no whole number.",
    }.items():
        refused = run(*arguments)
        assert (refused.exit_code, sentence in refused.stderr) == (2, True), refused.stderr
    assert client.calls == []


@pytest.mark.parametrize("command", [(), ("status",), ("group",), ("group", "create"), ("watermark", "advance")])
def test_h_is_short_for_help_everywhere(command: tuple[str, ...]) -> None:
    short, long = run(*command, "-h"), run(*command, "--help")
    assert (short.exit_code, short.stdout) == (0, long.stdout)
    assert "-h, --help" in short.stdout
