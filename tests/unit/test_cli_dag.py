"""The command dag: what it says of each relation, in every form, on a screen and in a file."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console

from pytrickle.catalog.reports import Dag, DagRow, RefreshGroupRow, WatermarkStatusRow
from pytrickle.cli.show.picture import picture
from pytrickle.cli.show.tree import tree
from tests.unit.cli_recorder import NOON, Recorder, recording, run, table

BEHIND = "shop.lines is 5 min behind shop.orders, tolerance 30 s"


def row(name: str, *reads: str, **changes: Any) -> DagRow:
    known: dict[str, Any] = {"tree": name, "relation": name, "kind": "STREAM_TABLE", "reads": reads}
    unknown = dict.fromkeys(("watermark", "status", "last_action", "last_duration"))
    return DagRow(**{**known, "watermark_groups": (), **unknown, **changes})


def graph() -> Dag:
    group = WatermarkStatusRow(
        *("pipeline", NOON, NOON, timedelta(minutes=5), timedelta(seconds=30), False, None, "shop.lines", BEHIND)
    )
    took = {"last_action": "DIFFERENTIAL", "last_duration": timedelta(milliseconds=120)}
    rows = (
        row("shop.orders", kind="TABLE", watermark_groups=("pipeline",), watermark=NOON),
        row("shop.lines", kind="TABLE", watermark_groups=("pipeline",)),
        row("shop.rates", kind="UNCAPTURED"),
        row("shop.summary", "shop.orders", **took),
        row("shop.details", "shop.lines", "shop.rates"),
        row("shop.report", "shop.summary", "shop.details", watermark=NOON, **took),
    )
    tables = (
        table(stream_table="shop.summary", watermark_gating="none", schedule="5 minutes", reason="not gated"),
        table(stream_table="shop.details", status="ERROR", last_error="division [by] zero"),
        table(decision="gated", reason=f"pipeline: {BEHIND}"),
    )
    together = RefreshGroupRow("board", ("shop.details", "shop.summary"), "repeatable_read", NOON)
    return Dag(rows, tables, (group,), (together,), NOON)


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    recorder = recording(monkeypatch)
    recorder.answers["dag"] = graph()
    return recorder


def test_the_tree_describes_each_relation_once(client: Recorder) -> None:
    assert run("dag").stdout == (
        f"pipeline  apart  {BEHIND}\n"
        "shop.lines  table\n"
        "in pipeline\n"
        "└── shop.details  error\n"
        "    calculated, gate: run, never refreshed\n"
        "    refreshed together: board\n"
        "    also reads shop.rates\n"
        "    division [by] zero\n"
        "    └── shop.report  gated\n"
        "        calculated, gate: gated, DIFFERENTIAL took 120 ms\n"
        "        complete through 2026-01-01 12:00:00+00:00\n"
        "        also reads shop.summary\n"
        f"        pipeline: {BEHIND}\n"
        "shop.orders  table, complete through 2026-01-01 12:00:00+00:00\n"
        "in pipeline\n"
        "└── shop.summary  ok\n"
        "    5 minutes, none: run, DIFFERENTIAL took 120 ms\n"
        "    refreshed together: board\n"
        "    └── shop.report (described below shop.details)\n"
        "shop.rates  not captured, read as a whole\n"
        "└── shop.details (described below shop.lines)\n"
        "As of 2026-01-01 12:00:00+00:00.\n"
    )


def drawn(dag: Dag, width: int) -> list[str]:
    screen = io.StringIO()
    Console(file=screen, width=width, markup=False, emoji=False, highlight=False).print(tree(picture(dag)))
    return screen.getvalue().splitlines()


def test_it_fits_a_terminal_of_80_columns() -> None:
    lines = drawn(graph(), 80)
    assert max(map(len, lines)) <= 80
    words = " ".join(" ".join(lines).split())
    for text in ("calculated, gate: gated, DIFFERENTIAL took 120 ms", BEHIND, "division [by] zero"):
        assert text in words, text


def test_a_long_chain_is_drawn_without_recursion() -> None:
    names = [f"t{number}" for number in range(1500)]
    rows = (row("t0", kind="TABLE"), *(row(name, before) for before, name in pairwise(names)))
    tables = tuple(table(stream_table=name) for name in names[1:])
    assert len(tree(picture(Dag(rows, tables, (), (), NOON))).renderables) == 2


def test_a_tier_and_a_pause_are_told() -> None:
    tables = (table(stream_table="t", tier="cold", paused=True),)
    assert "calculated, tier cold, paused, gate: run" in drawn(Dag((row("t"),), tables, (), (), NOON), 80)


def test_relations_that_read_each_other_are_drawn_all_the_same() -> None:
    rows = (row("a", kind="TABLE"), row("b", "a", "c"), row("c", "b"), row("d", "d"))
    tables = (table(stream_table="b"), table(stream_table="c"), table(stream_table="d"))
    lines = drawn(Dag(rows, tables, (), (), NOON), 80)
    names = [line for line in lines if line.endswith("  ok") or "described" in line]
    assert names == [
        "└── b  ok",
        "    └── c  ok",
        "        └── b (described below a)",
        "d  ok",
        "└── d (described by itself)",
    ]


def test_names_cannot_command_the_terminal(client: Recorder) -> None:
    rows = (row('s."\x1b[2J"', kind="TABLE"), row("shop.report", 's."\x1b[2J"', kind="STREAM_TABLE"))
    client.answers["dag"] = Dag(rows, (table(decision="gated", reason="\x1b[2J"),), (), (), NOON)
    assert "\x1b" not in run("dag").stdout


def test_every_form_reaches_the_screen(client: Recorder) -> None:
    assert run("dag", "--format", "mermaid").stdout.startswith("flowchart LR\n")
    ElementTree.fromstring(run("dag", "--format", "svg").stdout)
    assert "described below" in run("dag", "--format", "tree").stdout


def test_json_has_relations_tables_and_groups(client: Recorder) -> None:
    document = json.loads(run("dag", "--json").stdout)
    assert document["relations"][5]["reads"] == ["shop.summary", "shop.details"]
    assert document["relations"][3]["last_duration"] == 0.12
    assert [entry["decision"] for entry in document["stream_tables"]] == ["run", "run", "gated"]
    assert document["groups"][0]["lag"] == 300.0
    assert document["refresh_groups"][0]["members"] == ["shop.details", "shop.summary"]


def test_a_png_goes_to_a_file_only(client: Recorder, tmp_path: Path) -> None:
    refused = run("dag", "--format", "png")
    assert refused.exit_code == 2 and "--output" in refused.stderr
    file = tmp_path / "dag.png"
    assert run("dag", "--format", "png", "--output", str(file)).exit_code == 0
    assert file.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("options", [(), ("--format", "mermaid"), ("--format", "svg"), ("--json",)])
def test_a_file_gets_what_the_screen_would_get(client: Recorder, tmp_path: Path, options: tuple[str, ...]) -> None:
    file = tmp_path / "dag.out"
    screen = run("dag", *options).stdout
    written = run("dag", *options, "--output", str(file))
    assert written.exit_code == 0
    assert written.stdout == (f'{{\n  "output": "{file}"\n}}\n' if "--json" in options else f"Wrote {file}.\n")
    assert file.read_text(encoding="utf-8") == screen


def test_a_file_that_cannot_be_written_is_wrong_usage(client: Recorder, tmp_path: Path) -> None:
    result = run("dag", "--output", str(tmp_path / "nowhere" / "dag.svg"))
    assert result.exit_code == 2
    assert "cannot be written: No such file or directory." in " ".join(result.stderr.replace("│", " ").split())


def test_an_empty_catalog_is_a_friendly_sentence(client: Recorder) -> None:
    client.answers["dag"] = Dag((), (), (), (), NOON)
    assert run("dag").stdout == "No stream table yet; pytrickle create makes one.\n"
    assert "No stream table yet" in run("dag", "--format", "mermaid").stdout
    assert "No stream table yet" in "".join(ElementTree.fromstring(run("dag", "--format", "svg").stdout).itertext())
    assert json.loads(run("dag", "--json").stdout)["relations"] == []


@pytest.mark.usefixtures("in_berlin")
def test_its_sentences_have_the_moments_of_the_place_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "aligned at 2026-03-02 12:00:00+00"
    found = graph()
    dag = replace(
        found,
        groups=(replace(found.groups[0], reason=said),),
        stream_tables=tuple(
            replace(each, decision="gated", reason=said, last_error=None) for each in found.stream_tables
        ),
    )
    drawn = {}
    for terminal in (False, True):
        monkeypatch.setattr("sys.stdout.isatty", lambda answer=terminal: answer, raising=False)
        shown = picture(dag)
        drawn[terminal] = {shown.bands[0].note, *(box.note for box in shown.boxes if box.note)}
    assert drawn == {False: {"aligned at 2026-03-02 12:00:00+00:00"}, True: {"aligned at 2026-03-02 13:00:00+01:00"}}
