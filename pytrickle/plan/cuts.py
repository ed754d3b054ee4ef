"""Change buffers read at cuts: the common table expressions that delta plans join."""

from pytrickle.catalog.definition import Definition, Source, Window
from pytrickle.plan.algebra import BUFFERED, Relation, Version, scans
from pytrickle.plan.compile import WEIGHT, changes_name
from pytrickle.plan.dialect import quote

CORRECTION = {Version.OLD: Version.PAST, Version.NEW: Version.FUTURE}


def condition(version: Version, window: Window) -> str:
    """Write which buffered changes one version of a source consists of."""
    if version is Version.FUTURE:
        return window.new.beyond() if window.new else "false"
    past = window.old.beyond() if window.old else "false"
    if version is Version.PAST or window.new is None:
        return past
    return f"{past} AND {window.new.covered()}"


def changes_query(source: Source, version: Version, window: Window) -> str:
    """Compile one source's buffered changes of one version."""
    columns = "".join(f"{quote(name)}, " for name in source.used)
    return (
        f"SELECT {columns}CAST({WEIGHT} AS integer) AS {WEIGHT} FROM {source.buffer} WHERE {condition(version, window)}"
    )


def with_changes(node: Relation, definition: Definition, windows: dict[int, Window]) -> tuple[str, ...]:
    """Write the entries of the WITH list for the buffered scans of a relation."""
    read = ((CORRECTION.get(leaf.version, leaf.version), leaf.relid) for leaf in scans(node))
    needed = [(version, relid) for version, relid in dict.fromkeys(read) if version in BUFFERED]
    return tuple(
        f"{changes_name(version, relid)} AS MATERIALIZED "
        f"({changes_query(definition.source(relid), version, windows[relid])})"
        for version, relid in needed
    )
