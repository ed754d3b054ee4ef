"""Hints in the language of the command line: where a command does what a hint says in SQL, it names the command."""

from __future__ import annotations

import re
import shlex
from functools import cache

# What a call in a hint is on the command line. A call that has no command stays as it is. What is in brackets is left
# out where the call has a source alone.
COMMANDS = {
    "adopt_source": "source adopt SOURCE",
    "alter_stream_table": "alter NAME",
    "alter_watermark_group": "group alter NAME",
    "create_stream_table": "create NAME QUERY",
    "create_watermark_group": "group create NAME SOURCE…",
    "create_refresh_group": "refresh-group create NAME MEMBER…",
    "create_feed": "feed create NAME RELATION",
    "drop_feed": "feed drop NAME",
    "drop_refresh_group": "refresh-group drop NAME",
    "drop_stream_table": "drop NAME",
    "drop_watermark_group": "group drop NAME",
    "feeds": "feed list",
    "forget_source": "source forget SOURCE",
    "gate_source": "gate SOURCE",
    "mark_idle": "source idle SOURCE",
    "pause_stream_table": "pause NAME",
    "pgt_status": "status",
    "problems": "status",
    "refresh_groups": "refresh-group list",
    "refresh_stream_table": "refresh NAME",
    "reset_fuse": "reset-fuse NAME",
    "reset_watermark": "watermark reset SOURCE [VALUE]",
    "resume_stream_table": "resume NAME",
    "freshness": "freshness",
    "set_alert_limits": "alert set --source SOURCE --lag VALUE",
    "set_source_limits": "source limits SOURCE",
    "set_watermark_checks": "source checks SOURCE --max-ahead VALUE",
    "source_gates": "gates",
    "ungate_source": "ungate SOURCE",
    "watermark_groups": "group list",
    "watermark_status": "group status",
    "watermarks": "watermark list",
}
_CALL = re.compile(
    r"(?:SELECT (?:\*|[a-z_]+(?:, [a-z_]+)*) FROM |SELECT )?(?:pgtrickle\.)?\b([a-z_]+)"
    r"\(((?:'(?:[^']|'')*'|[^()']|\([^()]*\))*)\)"
)
# Arguments as SQL gives them, and as sentences name them.
_ARGUMENT = re.compile(r"\b([a-z_]+) => (?:'([^']*)'(?: or '([^']*)')?|true)")
_NAMED = re.compile(r"(?<![-.'\w])([a-z]+(?:_[a-z]+)+)(?!\w|\(|\.\w| =>)")
_QUOTED = re.compile("'((?:[^']|'')+)'")


def on_the_command_line(hint: str) -> str:
    """Return a hint with the commands that do what its calls do.

    >>> on_the_command_line("SELECT stream_table FROM pgtrickle.pgt_status() lists those that exist.")
    'pytrickle status lists those that exist.'
    >>> on_the_command_line("SELECT pgtrickle.drop_stream_table('public.a', cascade => true) removes it.")
    'pytrickle drop public.a --cascade removes it.'
    >>> on_the_command_line("SELECT pgtrickle.alter_stream_table('public.a', query => ...) gives it its query anew.")
    'pytrickle alter public.a QUERY gives it its query anew.'
    >>> on_the_command_line("alter_stream_table(name, statement_timeout => '1 hour') gives it more time.")
    "pytrickle alter NAME --statement-timeout '1 hour' gives it more time."
    >>> on_the_command_line("SELECT pgtrickle.set_watermark_checks('public.a', max_ahead => '30 days').")
    "pytrickle source checks public.a --max-ahead '30 days'."
    >>> on_the_command_line("pgtrickle.reset_watermark('public.a') forgets it.")
    'pytrickle watermark reset public.a forgets it.'
    >>> on_the_command_line("pgtrickle.reset_watermark() takes it back.")
    'pytrickle watermark reset SOURCE VALUE takes it back.'
    >>> on_the_command_line("Use pgtrickle.cut() instead.")
    'Use pgtrickle.cut() instead.'
    >>> on_the_command_line("Use refresh_mode => 'AUTO' or 'FULL', or raise fuse_ceiling.")
    'Use --refresh-mode AUTO or FULL, or raise --fuse-ceiling.'
    """
    told = _CALL.sub(lambda call: _command(call[1], call[2]) or call[0], hint)
    if "SELECT " in told or "pgtrickle." in told:
        # Its arguments are those of SQL.
        return told
    told = _ARGUMENT.sub(lambda given: _option(given[1], *given.group(2, 3)) or given[0], told)
    return _NAMED.sub(lambda name: _option(name[1]) or name[0], told)


def _option(name: str, *values: str | None) -> str | None:
    """Return an option of the command line with its values, where there is one of this name and no other word is."""
    # A timeout is also a setting of the server, and the end of a window often a column.
    unmistakable = ("_" in name and name not in ("statement_timeout", "window_end")) or name == "cascade"
    return _spelled(name, *values) if unmistakable and name in _options() else None


@cache
def _options() -> frozenset[str]:
    """Return what `alter`, `create` and `drop` take; it is loaded when the first hint is told."""
    from pytrickle.catalog.options import DECLARED

    return frozenset(DECLARED) | {"cascade"}


def _spelled(name: str, *values: str | None) -> str:
    """Return an option of the command line; it is a flag, or just named, without a value."""
    return f"--{name.replace('_', '-')} {' or '.join(shlex.quote(value) for value in values if value)}".rstrip()


def _command(function: str, arguments: str) -> str | None:
    """Return the command that does what a call does, with the name that the call has."""
    if function not in COMMANDS:
        return None
    quoted = [shlex.quote(text.replace("''", "'")) for text in _QUOTED.findall(arguments)]
    name, *others = quoted if arguments.startswith("'") else [""]
    values = " ".join(others)
    placed = {"NAME": name, "SOURCE": name, "VALUE": values}
    wanted = COMMANDS[function].replace(" [VALUE]", "" if name and not values else " VALUE")
    command = re.sub("NAME|SOURCE|VALUE", lambda place: placed[place[0]] or place[0], wanted)
    if "query => ..." in arguments:
        command += " QUERY"
    for option, value, _ in _ARGUMENT.findall(arguments):
        if option in _options():
            command += f" {_spelled(option, value)}"
    return f"pytrickle {command}"
