"""What the demo shows on a terminal: whole words, whatever the width."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from pytrickle.cli.show.columns import columns
from pytrickle.demo.checks import Observation, Tally
from pytrickle.demo.jobs import Job
from pytrickle.demo.reports import GROUP, MODES, SOURCES, report_name
from pytrickle.demo.screen import Scene, live_view, summary
from tests.unit.cli_recorder import NOON, state, table
from tests.unit.test_cli_width import printed

REASON = f"{GROUP}: {SOURCES[1]} is 9 s behind {SOURCES[0]}, tolerance 0 s"
TALLIES = dict.fromkeys(MODES, Tally().plus(Observation(shown=30, incomplete=4, age=timedelta(seconds=9.8))))
JOB = Job(report_name("hold_back"), "DIFFERENTIAL", "postgres", 17, NOON, "0/1CF2A80", 17, timedelta(milliseconds=38))


def scene() -> Scene:
    status = state(*(table(stream_table=report_name(mode), decision="gated", reason=REASON) for mode in MODES))
    group = replace(status.groups[0], group_name=GROUP, reason=REASON)
    marks = tuple(replace(status.watermarks[0], source=source) for source in SOURCES)
    return Scene(replace(status, groups=(group,), watermarks=marks), TALLIES, (JOB,), timedelta(seconds=12))


@pytest.mark.parametrize("width", [60, 80, 130])
@pytest.mark.parametrize("shown", [live_view(scene(), columns), summary(columns, TALLIES, {}, {})])
def test_no_word_of_the_demo_is_cut_off(shown: Any, width: int) -> None:
    lines = printed(shown, width).splitlines()
    assert all(len(line.rstrip()) <= width for line in lines)
    assert not any("…" in line for line in lines)
    assert "hold_back" in " ".join(lines)


def test_the_time_by_which_it_goes_on_is_none_to_go() -> None:
    """It goes on only where the reports have not differed yet, and nobody knows how long that takes."""
    times = [replace(scene(), left=left).time.strip() for left in (None, timedelta(seconds=12), -timedelta(seconds=12))]
    assert times == ["Starting the refresher", "12 s to go", "Going on until the reports have differed"]
