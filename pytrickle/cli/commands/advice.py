"""The command that recommends a tolerance, or how long to wait for a source: advise."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pytrickle.cli.command import Invocation, command
from pytrickle.cli.console import show_note
from pytrickle.watermarks.advice.advise import Loss
from pytrickle.watermarks.advice.chart import draw_chart
from pytrickle.watermarks.advice.report import describe

app = typer.Typer()


@command(app, "advise", example="pytrickle advise order_pipeline --png apart.png")
def advise(
    invocation: Invocation,
    name: Annotated[str, typer.Argument(help="A watermark group, else a source; a source also with its schema.")],
    png: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw it as a PNG as well; this needs matplotlib.")
    ] = None,
    alpha: Annotated[float | None, typer.Option(min=0, help="What it costs if all is late; needs --beta.")] = None,
    beta: Annotated[float | None, typer.Option(min=0, help="What a second of waiting costs; needs --alpha.")] = None,
) -> None:
    """Recommend a tolerance, or how long to wait. From the history of the watermarks.

    For a group: how far the watermarks of its sources were apart, and for which share of the time they would have been
    apart at each tolerance. For a source: how long after an event time it was declared complete through it. With
    --alpha and --beta also what costs least: alpha times the share that is late, plus beta times the seconds.
    """
    if (alpha is None) != (beta is None):
        raise typer.BadParameter("A loss needs both weights; give --alpha and --beta.")
    loss = None if alpha is None or beta is None else Loss(alpha, beta)
    with invocation.client() as client:
        advice = client.advise(name, loss)
    if png is not None:
        try:
            draw_chart(advice, png)
        except OSError as error:
            raise typer.BadParameter(f"{png} cannot be written: {error.strerror}.") from None
        show_note(f"Wrote {png}.")
    invocation.show(advice, describe)
