"""The screen of `pytrickle top` shows all of a text, and no news that is none any more."""

from __future__ import annotations

from pytrickle.cli.top.frame import frame
from pytrickle.cli.top.view import View, pressed, settled
from pytrickle.cli.top.watch import Seen
from tests.unit.cli_recorder import NOON


def test_long_lines_of_an_explanation_are_folded_and_each_is_reached() -> None:
    text = [f"  gating: none: run. number {number} of a few, which is longer than the screen" for number in range(9)]
    view = View().opened("public.totals", text)
    for number in range(9):
        lines = [line.plain for line in frame(Seen(), view, NOON, (40, 12))]
        assert (len(lines), max(map(len, lines)) <= 40, "…" in "".join(lines[1:])) == (12, True, False)
        assert f"number {number} of a few" in " ".join(" ".join(lines).split())
        view, _ = pressed(view, "down", ["public.totals"])


def test_a_key_before_the_first_reading_leaves_no_news_beside_the_tables() -> None:
    view, asked = pressed(View(), "e", [])
    assert (view.news, asked) == ("No stream table is shown yet.", None)
    assert settled(view, []).news == view.news
    assert settled(view, ["public.totals"]) == View(chosen="public.totals")
