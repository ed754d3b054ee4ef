"""The tree of commands: the module of one is loaded when it is called, all are where they are listed."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

from pytrickle.cli.absent import convert_only_what_is_given

PLAIN = {
    "operations": ("install", "uninstall", "doctor", "demo"),
    "status": ("status",),
    "stream_tables": ("create", "alter", "drop", "explain", "verify"),
    "refreshes": ("refresh", "tick", "history"),
    "run": ("run",),
    "top": ("top",),
    "schedules": ("pause", "resume"),
    "sources": ("gate", "ungate", "gates", "alerts"),
    "late": ("late-rows", "replay", "discard"),
    "freshness": ("freshness", "wait", "assert-fresh", "as-of"),
    "dag": ("dag",),
    "web_console": ("console",),
    "advice": ("advise",),
    "extension": ("import-from-pg-trickle",),
    "definitions": ("plan", "apply", "export"),
    "metrics": ("metrics",),
    "refresh_groups.fuses": ("reset-fuse",),
}
"""The commands of each module, or of a Typer app in it that is not called app, in the order of `--help`."""
GROUPS = {
    # Those of late rows are added by their module.
    "watermark": "late.watermark_app",
    "group": "groups",
    "alert": "alerts",
    "refresh-group": "refresh_groups",
    "feed": "feeds",
    "source": "late.source_app",
    "dbt": "dbt",
}
"""The module of each group of commands."""
_MODULES = {name: module for module, names in PLAIN.items() for name in names} | GROUPS


def commands_of(home: str) -> dict[str, Any]:
    """Load a module of commands; return its commands, or the group that they are, by name."""
    module, _, attribute = home.partition(".")
    names = [name for name, place in GROUPS.items() if place == home]
    # Rich tracebacks can show local variables, among them connection strings.
    app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
    found = getattr(import_module(f"pytrickle.cli.commands.{module}"), attribute or "app")
    if names:
        app.add_typer(found, name=names[0])
    else:
        app.add_typer(found)
    loaded = dict(get_group(app).commands)
    convert_only_what_is_given(loaded.values())
    return loaded


class Tree(MutableMapping[str, Any]):
    """Commands and groups by name, which are loaded when they are asked for."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        """Return a command, having loaded its module; raise KeyError where there is none."""
        if name not in self._loaded:
            self._loaded |= commands_of(_MODULES[name])
        return self._loaded[name]

    def __setitem__(self, name: str, value: Any) -> None:
        """Put a command in the place of another."""
        self._loaded[name] = value

    def __delitem__(self, name: str) -> None:
        """Take a command out."""
        del self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        """List all names without loading anything."""
        return iter(_MODULES)

    def __len__(self) -> int:
        """Count them."""
        return len(_MODULES)


class LazyGroup(TyperGroup):
    """The root of the tree."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**(attributes | {"commands": None}))
        convert_only_what_is_given([self])
        self.commands = Tree()
