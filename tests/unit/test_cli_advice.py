"""What `advise` asks for, prints and draws."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from pytrickle.errors import TooFewObservations
from pytrickle.watermarks import Advice, Distribution, Loss, Subject, advise, describe, draw_chart
from pytrickle.watermarks.advice.advise import check_sample
from tests.unit.cli_recorder import Recorder, recording, run

SECOND = 1_000_000


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    recorder = recording(monkeypatch)
    recorder.answers["advise"] = lambda name, loss: advice(name, loss)
    return recorder


def advice(name: str = "pipeline", loss: Loss | None = None, subject: Subject = Subject.TOLERANCE) -> Advice:
    found = Distribution.of([(0, 900), (20 * SECOND, 60), (300 * SECOND, 35), (3_600 * SECOND, 5)])
    return advise(name, subject, found, loss)


def test_the_advice_is_drawn_and_written_down(client: Recorder) -> None:
    result = run("advise", "pipeline")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "The watermarks of pipeline are this far apart, by the time it lasts (4 spreads):"
    assert lines[2:6] == [
        *("   <= 0 s  " + "█" * 40 + "  90.0%", "      ..."),
        *("  <= 20 s  ███" + " " * 40 + "6.0%", "      ..."),
    ]
    assert "   <= 1 h  ▏" + " " * 42 + "0.5%" in lines
    assert "p50 0 s  p75 0 s  p90 0 s  p95 20 s  p99 5 min  p99.5 5 min  p99.9 1 h" in lines
    assert [line.split() for line in lines if line.startswith(("conservative", "balanced", "aggressive"))] == [
        ["conservative", "1", "h", "0.00%", "40.35%"],
        ["balanced", "5", "min", "0.50%", "40.94%"],
        ["aggressive", "20", "s", "4.00%", "44.91%"],
    ]
    assert "cheapest" not in result.stdout
    assert client.calls == [("advise", ("pipeline", None), {})]


def test_many_measurements_need_no_caution() -> None:
    many = Distribution.of((one, 1) for one in range(1_000))
    assert "Of fewer than 1,000" in describe(advice())
    assert "Of fewer than 1,000" not in describe(advise("rows", Subject.LATENESS, many))


def test_of_a_small_sample_nothing_is_recommended() -> None:
    found = [Distribution.of((one, 1) for one in range(count)) for count in (19, 20)]
    with pytest.raises(TooFewObservations, match="pipeline has 19 measurements, and fewer than 20 say nothing"):
        check_sample(advise("pipeline", Subject.TOLERANCE, found[0]))
    surest = check_sample(advise("pipeline", Subject.TOLERANCE, found[1])).recommendations[0]
    assert surest.late_share == 0 and 0.1 < surest.late_at_most < 0.15


@pytest.mark.parametrize("subject", Subject)
def test_every_subject_has_its_words(subject: Subject) -> None:
    assert advice(subject=subject).name in describe(advice(subject=subject)).splitlines()[0]


def test_weights_of_a_loss_are_handed_on_and_their_choice_shown(client: Recorder) -> None:
    result = run("advise", "pipeline", "--alpha", "1000", "--beta", "1")
    assert client.calls == [("advise", ("pipeline", Loss(1_000, 1)), {})]
    assert "cheapest      20 s                4.00%                       60     44.91%" in result.stdout.splitlines()


@pytest.mark.parametrize("options", [("--alpha", "1"), ("--beta", "1"), ("--alpha", "-1", "--beta", "1")])
def test_a_loss_needs_two_weights_that_are_not_negative(client: Recorder, options: tuple[str, ...]) -> None:
    assert run("advise", "pipeline", *options).exit_code == 2
    assert client.calls == []


def test_the_advice_in_json_has_the_fields_of_the_value(client: Recorder) -> None:
    document = json.loads(run("advise", "pipeline", "--json").stdout)
    assert (document["name"], document["subject"], document["observations"]) == ("pipeline", "tolerance", 4)
    assert document["percentiles"][-1] == [99.9, 3600.0]
    told = {
        "name": "balanced",
        "delay": 300.0,
        "late_share": 0.005,
        "loss": None,
        "late_at_most": pytest.approx(0.409, 0.01),
    }
    assert document["recommendations"][1] == told
    assert (document["bars"][0], document["cheapest"]) == ({"above": None, "up_to": 0.0, "share": 0.9}, None)


def test_a_picture_is_drawn_beside_the_text(client: Recorder, tmp_path: Path) -> None:
    picture = tmp_path / "apart.png"
    result = run("advise", "pipeline", "--png", str(picture))
    assert (result.exit_code, result.stderr) == (0, f"Wrote {picture}.\n")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "p99.9 1 h" in result.stdout


def test_bars_without_an_end_and_names_of_any_letters_are_drawn_as_well(tmp_path: Path) -> None:
    found = Distribution.of([(-SECOND, 1), (SECOND, 1), (10**9 * SECOND, 1)])
    draw_chart(advise("$_^ 注文 $", Subject.LATENESS, found), tmp_path / "rows.png")
    assert (tmp_path / "rows.png").stat().st_size > 1_000


def test_a_file_that_cannot_be_written_is_wrong_usage(client: Recorder, tmp_path: Path) -> None:
    result = run("advise", "pipeline", "--png", str(tmp_path / "nowhere" / "apart.png"))
    assert (result.exit_code, "cannot be written" in result.stderr) == (2, True)


def test_a_picture_without_matplotlib_is_an_error_that_says_what_to_install(
    client: Recorder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for module in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, module, None)
    result = run("advise", "pipeline", "--png", str(tmp_path / "apart.png"))
    assert result.exit_code == 1
    assert "error: A PNG needs matplotlib." in result.stderr and "pytrickle-postgres[plot]" in result.stderr
    assert run("advise", "pipeline").exit_code == 0, "text needs nothing"
