"""The command that writes what Prometheus and Grafana read: metrics."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from pytrickle.cli.command import Invocation, command
from pytrickle.cli.documents import visible
from pytrickle.cli.observer import MISSING
from pytrickle.errors import PackageMissing
from pytrickle.integrations.prometheus import DASHBOARD, RULES

app = typer.Typer()


@command(app, "metrics", example="pytrickle metrics --output /var/lib/node_exporter/pytrickle.prom")
def metrics(
    invocation: Invocation,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Replace this file at once, for a textfile collector."),
    ] = None,
    rules: Annotated[bool, typer.Option("--rules", help="Print alert rules for Prometheus instead.")] = False,
    dashboard: Annotated[bool, typer.Option("--dashboard", help="Print a dashboard for Grafana instead.")] = False,
) -> None:
    """Print metrics for Prometheus. The state of stream tables, groups and sources, in its text format.

    For a process that runs, `pytrickle run --metrics-listen` also counts what it does; its metrics are what the rules
    and the dashboard read. --json has no effect.
    """
    if rules and dashboard:
        raise typer.BadParameter("--rules and --dashboard are two files; ask for one at a time.")
    if rules or dashboard:
        _write(invocation, output, (RULES if rules else DASHBOARD).read_bytes())
        return
    try:
        from prometheus_client import CollectorRegistry, generate_latest

        from pytrickle.cli.metrics import Catalog, seen_by
    except ImportError as error:
        raise PackageMissing("Metrics need prometheus-client.", MISSING.format("metrics")) from error
    with invocation.client() as client:
        seen = seen_by(client)
    registry = CollectorRegistry()
    registry.register(Catalog(lambda: seen))
    _write(invocation, output, generate_latest(registry))


def _write(invocation: Invocation, output: Path | None, content: bytes) -> None:
    if output is None:
        sys.stdout.write(visible(content.decode()))
        return
    _replace(output, content)
    invocation.show({"output": str(output)}, lambda _: f"Wrote {output}.")


def _replace(path: Path, content: bytes) -> None:
    """Put a file in place as a whole, so that nobody reads half of it; a device or a pipe stays what it is."""
    if path.is_dir():
        raise typer.BadParameter(f"{path.absolute()} cannot be written: it is a directory.")
    target = path.resolve()
    beside = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    try:
        if target.exists() and not target.is_file():
            target.write_bytes(content)
            return
        beside.write_bytes(content)
        beside.replace(target)
    except OSError as error:
        with suppress(OSError):
            beside.unlink()
        raise typer.BadParameter(f"{path} cannot be written: {error.strerror}.") from None
