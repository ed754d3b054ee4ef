"""Write the calls that recreate here what the extension's catalog holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from graphlib import TopologicalSorter

from psycopg import sql

from pytrickle.extension.contents import Contents, StreamTable

HEAD = """\
-- What the extension pg_trickle holds, as calls of pytrickle. Run it in the database that has the sources and
-- pytrickle's catalog, as the role that shall own the stream tables: psql -v ON_ERROR_STOP=1 -f FILE
-- A table that has the name of a stream table must be renamed or dropped first. Whoever refreshes runs the queries and
-- the functions that they call: read those of roles that you do not trust."""
_DEFAULTS = {"diamond_consistency": "atomic", "diamond_schedule_policy": "fastest"}
_SETTINGS = "-- Settings of the extension; docs/howto/come-from-pg-trickle.md says what takes the place of each:"


def script(found: Contents) -> str:
    """Return one transaction of calls, with a comment before each thing that has no counterpart here."""
    parts = (
        HEAD,
        "BEGIN;",
        *_remarks(found),
        *(_call("gate_source", _text(source)) for source in found.gates),
        *_stream_tables(found.stream_tables),
        *(
            _call("create_watermark_group", _text(group.name), _texts(group.sources), f"{group.tolerance!r}")
            for group in found.groups
        ),
        *(_call("advance_watermark", _text(source), _text(moment)) for source, moment in found.watermarks),
        *(
            _call("create_refresh_group", _text(group.name), _texts(group.members), _text(group.isolation))
            for group in found.refresh_groups
        ),
        *(_call("subscribe", _text(table), _text(channel)) for table, channel in found.subscriptions),
        "COMMIT;",
    )
    return "\n\n".join(parts) + "\n"


def _stream_tables(tables: Iterable[StreamTable]) -> Iterator[str]:
    """Create each after those that it reads; one of a cycle is created empty and gets its query afterwards."""
    ordered = _in_order(tuple(tables))
    for table in ordered:
        yield _created(table, _empty(table) if table.cycle else table.query)
    for table in ordered:
        if table.cycle:
            yield _call("alter_stream_table", _text(table.name), f"query => {_query(table.query)}")
    for table in ordered:
        if table.row["status"] == "SUSPENDED":
            yield _call("pause_stream_table", _text(table.name))


def _in_order(tables: tuple[StreamTable, ...]) -> list[StreamTable]:
    by_relation = {table.relation: table for table in tables}
    read = {
        table.relation: {
            each
            for each in table.reads & set(by_relation)
            if table.cycle is None or by_relation[each].cycle != table.cycle
        }
        for table in tables
    }
    return [by_relation[relation] for relation in TopologicalSorter(read).static_order()]


def _created(table: StreamTable, query: str) -> str:
    remarks = "".join(_comment(f"{table.name}: {remark}") + "\n" for remark in _without_counterpart(table.row))
    arguments = (f"{name} => {value}" for name, value in _options(table))
    return remarks + _call("create_stream_table", _text(table.name), _query(query), *arguments)


def _options(table: StreamTable) -> Iterator[tuple[str, str]]:
    """Yield the arguments that differ from their defaults."""
    row = table.row
    yield "schedule", _text(row.get("schedule") or "calculated")
    mode = row.get("requested_refresh_mode") or row["refresh_mode"] or "AUTO"
    yield "refresh_mode", _text("AUTO" if mode == "IMMEDIATE" else mode)
    for name, usual in _DEFAULTS.items():
        if (value := row.get(name)) and value != usual:
            yield name, _text(value)
    if (tier := row.get("refresh_tier")) and tier != "hot":
        yield "tier", _text(tier)
    if row.get("fuse_mode") in ("on", "auto") and (ceiling := row.get("fuse_ceiling")):
        yield "fuse_ceiling", str(int(ceiling))
    if table.cycle:
        yield "allow_circular", "true"
    if path := row.get("defining_search_path"):
        yield "search_path", _text(path)


def _without_counterpart(row: Mapping[str, str | None]) -> Iterator[str]:
    if "IMMEDIATE" in (row.get("requested_refresh_mode"), row.get("refresh_mode")):
        yield "it was IMMEDIATE; here it follows each commit, not each statement."
    if row.get("temporal_mode") == "t":
        yield "it kept the history of its rows; here it shows the present ones."
    if row.get("st_partition_key"):
        yield "it was partitioned; here it is one table."
    if row.get("orchestration_mode") == "EXTERNAL":
        yield "it was refreshed from outside; pause it here to do the same."


def _empty(table: StreamTable) -> str:
    columns = sql.SQL(", ").join(
        sql.SQL("NULL::{} AS {}").format(sql.SQL(written), sql.Identifier(name)) for name, written in table.columns
    )
    return sql.SQL("SELECT {} WHERE false").format(columns).as_string()


def _remarks(found: Contents) -> Iterator[str]:
    if found.settings:
        yield "\n".join((_SETTINGS, *(_comment(f"  {name} = {value}") for name, value in found.settings.items())))
    if found.dropped:
        yield _comment(f"Left out, since they are gone: {', '.join(map(str, sorted(found.dropped)))}.")


def _comment(text: str) -> str:
    """Write a comment of one line, whatever the names in it contain.

    >>> _comment("public.a\\nDROP TABLE b")
    '-- public.a DROP TABLE b'
    """
    return f"-- {' '.join(text.splitlines())}"


def _call(function: str, *arguments: str) -> str:
    inner = ", ".join(arguments)
    if len(inner) > 80:
        inner = "\n    " + ",\n    ".join(arguments)
    return f"SELECT pgtrickle.{function}({inner});"


def _text(value: str) -> str:
    return sql.Literal(value).as_string()


def _texts(values: Iterable[str]) -> str:
    return f"ARRAY[{', '.join(map(_text, values))}]"


def _query(text: str) -> str:
    """Write a query between dollar quotes that it does not contain.

    >>> print(_query("SELECT '$query$' AS a"))
    $query1$SELECT '$query$' AS a$query1$
    """
    tags = ("$query$", *(f"$query{number}$" for number in range(1, len(text) + 2)))
    tag = next(tag for tag in tags if (text + tag).find(tag) == len(text))
    return f"{tag}{text}{tag}"
