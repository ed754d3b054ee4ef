"""Commands on late data: event times of sources, the late ledger, and the metrics of watermarks."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Annotated

import typer

from pytrickle.cli import values
from pytrickle.cli.command import Invocation, command
from pytrickle.cli.commands.sources import Source, source_app
from pytrickle.cli.commands.watermarks import app as watermark_app
from pytrickle.cli.show import render_late as render
from pytrickle.readable import counted

app = typer.Typer()


class LateStatus(StrEnum):
    """What became of a late row."""

    LOADED = "loaded"
    KEPT_OUT = "kept_out"
    REPLAYED = "replayed"
    DISCARDED = "discarded"


Ids = Annotated[list[int] | None, typer.Option("--id", help="Number of a late row, as late-rows shows it; repeatable.")]


@command(source_app, "event-time", example="pytrickle source event-time orders ordered_at --too-late 1d")
def event_time(
    invocation: Invocation,
    source: Source,
    column_name: Annotated[str, typer.Argument(metavar="COLUMN", help="The column that says when something happened.")],
    too_late: Annotated[
        timedelta | None,
        typer.Option(parser=values.duration, metavar="DURATION", help="Keep rows out that are later than this."),
    ] = None,
    time_zone: Annotated[
        str | None, typer.Option("--time-zone", help="The time zone of a column of type timestamp or date.")
    ] = None,
) -> None:
    """Declare the event time of a source. From then on its late rows are noted; replaces what was declared before."""
    with invocation.client() as client:
        client.set_event_time(source, column_name, too_late, time_zone)
    declared = {"source": source, "column_name": column_name, "too_late": too_late, "time_zone": time_zone}
    invocation.show(declared, lambda _: f"The event time of {source} is {column_name}.")


@command(source_app, "unset-event-time", example="pytrickle source unset-event-time orders")
def unset_event_time(invocation: Invocation, source: Source) -> None:
    """Stop noting the late rows of a source. Those in the ledger stay."""
    with invocation.client() as client:
        client.unset_event_time(source)
    invocation.show({"source": source}, lambda _: f"Late rows of {source} are no longer noted.")


@command(source_app, "event-times", example="pytrickle source event-times")
def event_times(invocation: Invocation) -> None:
    """List the declared event times. Each with its limit, and what keeps late rows from being noted."""
    with invocation.client() as client:
        rows = client.event_times()
    invocation.show(rows, lambda rows: render.event_times(rows) if rows else "No event time is declared.")


@command(app, "late-rows", example="pytrickle late-rows orders --status kept_out")
def late_rows(
    invocation: Invocation,
    source: Annotated[str | None, typer.Argument(help="A source table; without one, all that you may read.")] = None,
    status: Annotated[
        LateStatus | None, typer.Option("--status", case_sensitive=False, help="Only rows in this status.")
    ] = None,
    limit: Annotated[int, values.limit("rows")] = 20,
) -> None:
    """Show the late ledger. Rows that came below the watermark in force, newest first."""
    with invocation.client() as client:
        rows = client.late_rows(source, None if status is None else status.value, limit)
    invocation.show(rows, lambda rows: render.late_rows(rows) if rows else "No late row.")


@command(app, "replay", example="pytrickle replay orders --skip-conflicts")
def replay(
    invocation: Invocation,
    source: Source,
    late_ids: Ids = None,
    skip_conflicts: Annotated[
        bool, typer.Option("--skip-conflicts", help="Pass over rows that are there already.")
    ] = False,
) -> None:
    """Put rows into a source that were kept out. All of them, or those given; each once."""
    with invocation.client() as client:
        replayed = client.replay_late_rows(source, late_ids or None, skip_conflicts=skip_conflicts)
    sentence = f"Replayed {counted(replayed, 'late row')} into {source}."
    invocation.show({"source": source, "replayed": replayed}, lambda _: sentence)


@command(app, "discard", example="pytrickle discard orders --id 12")
def discard(
    invocation: Invocation,
    source: Source,
    late_ids: Annotated[list[int], typer.Option("--id", help="Number of a late row; repeatable.")],
) -> None:
    """Give up rows that were kept out of a source. They can no longer be replayed, and go with the history."""
    with invocation.client() as client:
        discarded = client.discard_late_rows(source, late_ids)
    invocation.show(
        {"source": source, "discarded": discarded}, lambda _: f"Discarded {counted(discarded, 'late row')} of {source}."
    )


@command(watermark_app, "metrics", example="pytrickle watermark metrics")
def metrics(invocation: Invocation) -> None:
    """Show how watermarks move. Lag, pace by the history that is kept, idleness, and late rows."""
    with invocation.client() as client:
        rows = client.watermark_metrics()
    invocation.show(rows, lambda rows: render.metrics(rows) if rows else "No source ever advanced.")
