"""Text on a terminal is folded between words and in the time zone of its reader; a pipe gets it as it is."""

from __future__ import annotations

import io
import time

import pytest

from pytrickle.cli.show.columns import columns
from pytrickle.cli.show.folded import folded, for_terminal

TEXT = """public.totals: FULL (first load)
  last: FULL completed at 2026-01-01 12:00:00+00:00: no delta rule: now() depends on when it is called by whom
  missing index: CREATE INDEX ON "public"."a_table_of_a_long_name" ("a_column_of_a_long_name", "another");
  plan:
    apply to public.totals
    ├─ join on a_table_of_a_long_name.id = another_table_of_a_long_name.id, about 100 rows
    │  └─ Δpublic.a_table_of_a_long_name less 100,000 buffered changes and some more
    └─ 数量 数量 数量 数量 数量 数量 数量 数量 数量 数量 数量 数量 数量 数量 数量 数量 数量"""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_lines_are_folded_between_words_and_statements_stay_to_be_copied() -> None:
    assert folded(TEXT, 80).splitlines() == [
        "public.totals: FULL (first load)",
        "  last: FULL completed at 2026-01-01 12:00:00+00:00: no delta rule: now()",
        "    depends on when it is called by whom",
        '  missing index: CREATE INDEX ON "public"."a_table_of_a_long_name" ("a_column_of_a_long_name", "another");',
        "  plan:",
        "    apply to public.totals",
        "    ├─ join on a_table_of_a_long_name.id = another_table_of_a_long_name.id,",
        "    │    about 100 rows",
        "    │  └─ Δpublic.a_table_of_a_long_name less 100,000 buffered changes and",
        "    │       some more",
        "    └─ 数量 数量 数量 数量 数量 数量 数量 数量 数量 数量 数量 数量 数量 数量",
        "         数量 数量 数量",
    ]
    assert " ".join(folded(TEXT.replace("│", " "), 70).replace("│", " ").split()) == " ".join(
        TEXT.replace("│", " ").split()
    )


def drawn() -> list[str]:
    """Draw a table with a sentence of PostgreSQL's."""
    table = columns("group", "reason", sentences=("reason",))
    table.add_row("orders", "aligned at 2026-01-01 12:00:00+00")
    return [line.plain for line in table.lines(80)][1:]


def test_a_pipe_gets_the_text_and_a_terminal_moments_of_its_own_time_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", io.StringIO())
    assert for_terminal(TEXT) == TEXT
    assert drawn() == ["orders  aligned at 2026-01-01 12:00:00+00:00"]
    monkeypatch.setattr("sys.stdout", Terminal())
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        assert "2026-01-01 13:00:00+01:00: no delta rule" in for_terminal(TEXT)
        assert drawn() == ["orders  aligned at 2026-01-01 13:00:00+01:00"]
    finally:
        monkeypatch.undo()
        time.tzset()
