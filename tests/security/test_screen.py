"""What strangers name and write reaches the screen, pictures and reports of an operator as text, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from pytrickle.cli import app
from tests.repeats import first
from tests.security.roles import House, ask

# It would clear the screen, name the window, type for its reader, turn lines around, and pose as another line.
HOSTILE = "x\x1b[2J\x1b]0;owned\x07\x9b6n\u202e\r"
MARKUP = '<script>alert(1)</script>"]; click n0 "javascript:alert(1)" [bold red]'
STEERING = "\x1b\x07\x9b\u202e\r"


@pytest.fixture
def signed(home: House) -> House:
    """A stranger's gate, watermark, sink and late row, and a stream table of ours that reads his table."""
    mallory = home.session("mallory")
    table = f'mallory."{HOSTILE}"'
    home.db.execute("GRANT mallory TO steward")
    mallory.execute(f'CREATE TABLE {table} (id integer PRIMARY KEY, "{HOSTILE}" text, at timestamptz)'.encode())
    mallory.execute("SELECT pgtrickle.gate_source(%s::regclass, %s)", (table, HOSTILE + MARKUP))
    mallory.execute("SELECT pgtrickle.advance_watermark(%s::regclass, '2026-03-01 12:00Z')", (table,))
    ask(home.etl, "SELECT pgtrickle.create_stream_table('seen', %s)", f"SELECT id FROM {table}")
    ask(home.etl, "SELECT pgtrickle.set_event_time(%s::regclass, 'at')", table)
    ask(home.etl, "SELECT pgtrickle.create_watermark_group(%s, ARRAY[%s])", MARKUP, table)
    mallory.execute(f"INSERT INTO {table} VALUES (1, %s, '2026-03-01 08:00Z')".encode(), (HOSTILE + MARKUP,))
    return home


def shown(home: House, *arguments: str) -> str:
    done = CliRunner().invoke(app, ["--dsn", home.refresher, *arguments], prog_name="pytrickle")
    assert done.exit_code in (0, 3), done.output
    return done.output


@pytest.mark.parametrize("as_json", first(1, (False, True)), ids=["for people", "as JSON"])
@pytest.mark.parametrize(
    "command",
    ["status", "gates", "late-rows", "source status", "watermark list", "watermark metrics", "dag", "explain seen"],
)
def test_no_command_sends_what_a_stranger_wrote_to_a_terminal_to_be_obeyed(
    signed: House, command: str, as_json: bool
) -> None:
    text = shown(signed, *(["--json"] if as_json else []), *command.split())
    assert not [character for character in STEERING if character in text]
    assert "owned" in text, "the hostile name is shown"
    if as_json:
        json.loads(text)


@pytest.mark.parametrize("kind", ["svg", "mermaid"])
def test_no_picture_holds_markup_that_a_stranger_wrote(signed: House, kind: str, tmp_path: Path) -> None:
    file = tmp_path / f"dag.{kind}"
    shown(signed, "dag", "--format", kind, "--output", str(file))
    text = file.read_text()
    assert "owned" in text
    assert not [character for character in STEERING if character in text]
    assert "<script" not in text
    if kind == "mermaid":
        assert "click n0 #34;javascript:" in text
    else:
        tags = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(text).iter()}
        assert tags <= {"svg", "title", "style", "defs", "marker", "path", "rect", "text", "tspan", "g"}
