"""What a role may not do, where PostgreSQL names only the function, table or schema of the catalog it may not use."""

from __future__ import annotations

import re

from pytrickle.errors import InsufficientPrivilege

# What a role wants to do that uses one of these functions or tables before any other part of the catalog.
_DEEDS = {
    "create stream tables": "create_stream_table",
    "create stream tables from definitions": "create_from create_or_replace_stream_table",
    "alter stream tables": "alter_stream_table",
    "drop stream tables": "drop_stream_table",
    "explain queries": "draft_stream_table",
    "refresh stream tables": "adopt_restored ask_for_recomputation pgt_leader raise_alerts",
    "explain or verify stream tables, or read them as of an earlier watermark": "current_cut",
    "pause stream tables": "pause_stream_table pause_all",
    "resume stream tables": "resume_stream_table resume_all",
    "request refreshes": "refresh_stream_table",
    "decide about fuses": "reset_fuse",
    "create, alter or drop watermark groups": "create_watermark_group alter_watermark_group drop_watermark_group",
    "create or drop refresh groups": "create_refresh_group drop_refresh_group",
    "create or drop feeds": "create_feed drop_feed",
    "say where a source has its event times": "set_event_time unset_event_time",
    "set limits of sources": "set_source_limits",
    "set limits of alerts": "set_alert_limits reset_alert_limits",
    "have dropped sources forgotten": "forget_source",
    "look into the catalog": "dropped_sources foreign_grants",
}
_DEED_OF = {part: deed for deed, parts in _DEEDS.items() for part in parts.split()}
_OPERATORS = frozenset({"pause stream tables", "resume stream tables", "request refreshes", "decide about fuses"})
_OUR_SCHEMA = re.compile(r"\bpgtrickle(_private|_sinks)?\b(?![.\w])")
_OUR_RELATION = re.compile(r"\b(pgt_\w+|pgtrickle_(changes|state))\b")
_NAME = re.compile(r"\w+")

_WHO_MAY = "docs/howto/permissions.md says who may do what."
_AS_OWNER = f"Grant it membership in the owner of the catalog, whom pytrickle doctor names; {_WHO_MAY}"
_AS_OPERATOR = (
    "Grant it pytrickle_operator, a group that pytrickle install --roles creates, or membership in the owner of the"
    f" catalog; {_WHO_MAY}"
)
_AS_ANYBODY = f"Grant it USAGE on the schemas pgtrickle, pgtrickle_private and pgtrickle_sinks; {_WHO_MAY}"


def denied(message: str) -> InsufficientPrivilege | None:
    """Return the error that says what a role may not do, if the server's message, in any language, names a part of us.

    >>> print(denied("permission denied for function raise_alerts"))
    The role of this connection may not refresh stream tables.
    >>> denied("permission denied for table orders")
    """
    for name in _NAME.findall(message):
        if deed := _DEED_OF.get(name):
            return _error(deed, _AS_OPERATOR if deed in _OPERATORS else _AS_OWNER)
    if _OUR_RELATION.search(message):
        return _error("use the tables of pytrickle's catalog, as export, plan and apply do", _AS_OWNER)
    return _error("use pytrickle's catalog", _AS_ANYBODY) if _OUR_SCHEMA.search(message) else None


def _error(deed: str, hint: str) -> InsufficientPrivilege:
    return InsufficientPrivilege(f"The role of this connection may not {deed}.", hint, sqlstate="42501")
