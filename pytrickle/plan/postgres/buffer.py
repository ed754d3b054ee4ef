"""Change buffers read at cuts: the common table expressions that delta plans join."""

from pytrickle.catalog.definition import ChangeRange, Source
from pytrickle.plan.algebra.relation import Version
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.sql.dialect import quote


def condition(version: Version, window: ChangeRange) -> str:
    """Write which buffered changes one version of a source consists of."""
    if version is Version.FUTURE:
        return window.new.beyond() if window.new else "false"
    past = window.old.beyond() if window.old else "false"
    if version is Version.PAST or window.new is None:
        return past
    return f"{past} AND {window.new.covered()}"


def changes_name(version: Version, relid: int) -> str:
    """Name the common table expression that holds one source's buffered changes of one version."""
    return f"pgt_{version.value}_{relid}"


def changes_query(source: Source, version: Version, window: ChangeRange) -> str:
    """Compile one source's buffered changes of one version."""
    columns = "".join(f"{quote(name)}, " for name in source.used)
    return (
        f"SELECT {columns}CAST({WEIGHT} AS integer) AS {WEIGHT} FROM {source.buffer} WHERE {condition(version, window)}"
    )
