"""What reaches a terminal cannot steer it."""

import io
import json
import re

import pytest
from rich.table import Table

from pytrickle.cli import console, documents
from pytrickle.errors import PytrickleError

HOSTILE = "a\x1b]0;owned\x07b\x9b2Jc\rd\u202ee"


@pytest.mark.parametrize("as_table", [False, True])
def test_terminal_escapes_in_names_and_values_are_spelled_out(as_table: bool) -> None:
    stream = io.StringIO()
    content: object = HOSTILE
    if as_table:
        content = Table("name")
        content.add_row(HOSTILE)
    console.console(stream).print(content)
    shown = stream.getvalue()
    assert not any(character in shown for character in "\x1b\x07\x9b\r\u202e")
    assert "\\u001b]0;owned" in shown.replace("\n", "")


def test_json_and_errors_hold_no_control_characters_either(capsys: pytest.CaptureFixture[str]) -> None:
    documents.show_json({"name": HOSTILE})
    console.show_error(PytrickleError(HOSTILE, HOSTILE), as_json=False)
    console.show_error(PytrickleError(HOSTILE, HOSTILE), as_json=True)
    written = capsys.readouterr()
    for text in (written.out, written.err):
        assert not any(character in text for character in "\x1b\x07\x9b\r\u202e")
    assert json.loads(written.out) == {"name": HOSTILE}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_an_error_on_a_terminal_is_folded_between_words_and_a_command_stays_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = "the watermark history of public.lines begins after what was asked for, and nobody kept what came before it"
    command = (
        "SELECT pgtrickle.reset_watermark('public.a_table_of_a_long_name', '2026-01-01 00:00:00+00') takes it back."
    )
    shown = {}
    for kind in (Terminal, io.StringIO):
        screen = kind()
        monkeypatch.setattr("sys.stderr", screen)
        monkeypatch.setenv("COLUMNS", "80")
        monkeypatch.setenv("NO_COLOR", "1")
        console.show_error(PytrickleError(said, command), as_json=False)
        shown[kind] = [line.rstrip() for line in re.sub("\x1b\\[[0-9;]*m", "", screen.getvalue()).splitlines()]
    assert shown[io.StringIO] == [f"error: {said}", f"hint: {command}"]
    *folded, last = shown[Terminal]
    assert (len(folded), " ".join(folded), last) == (2, f"error: {said}", f"hint: {command}")
    assert max(map(len, folded)) <= 80


@pytest.mark.usefixtures("in_berlin")
def test_the_moments_of_an_error_are_local_on_a_terminal_as_those_of_results_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = "sales is not complete through 2026-03-05 12:00:00+00"
    command = "It is complete through 2026-03-02 12:00:00+00.\nSELECT f('2026-01-01 00:00:00+00') takes it back."
    shown = {}
    for kind in (Terminal, io.StringIO):
        screen = kind()
        monkeypatch.setattr("sys.stderr", screen)
        monkeypatch.setenv("NO_COLOR", "1")
        console.show_error(PytrickleError(said, command), as_json=False)
        shown[kind] = re.findall(r"\d{4}-.*?\+[\d:]+", re.sub("\x1b\\[[0-9;]*m", "", screen.getvalue()))
    first, second, copied = ("2026-03-05 12:00:00+00", "2026-03-02 12:00:00+00", "2026-01-01 00:00:00+00")
    assert shown[io.StringIO] == [first, second, copied]
    assert shown[Terminal] == ["2026-03-05 13:00:00+01:00", "2026-03-02 13:00:00+01:00", copied]
