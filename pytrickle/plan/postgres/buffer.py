"""Change buffers read at cuts: the common table expressions that delta plans join."""

from pytrickle.catalog.definition import ChangeRange, Source
from pytrickle.plan.algebra.relation import Version
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.sql.dialect import quote

CHANGES = "SELECT {columns}CAST({weight} AS integer) AS {weight}{ctid} FROM {buffer} WHERE {condition}"


def condition(version: Version, change_range: ChangeRange) -> str:
    """Write which buffered changes one version of a source consists of."""
    if version is Version.FUTURE:
        return change_range.new.beyond() if change_range.new else "false"
    past = change_range.old.beyond() if change_range.old else "false"
    if version is Version.PAST or change_range.new is None:
        return past
    return f"{past} AND {change_range.new.covered()}"


def changes_name(version: Version, relid: int) -> str:
    """Name the common table expression that holds one source's buffered changes of one version."""
    return f"pgt_{version.value}_{relid}"


def changes_query(source: Source, version: Version, change_range: ChangeRange, ctid: str | None = None) -> str:
    """Compile one source's buffered changes of one version; `ctid` names a column for where each is in the buffer."""
    columns = "".join(f"{quote(name)}, " for name in source.used)
    read = condition(version, change_range)
    place = f", ctid AS {ctid}" if ctid else ""
    return CHANGES.format(columns=columns, weight=WEIGHT, ctid=place, buffer=source.buffer, condition=read)
