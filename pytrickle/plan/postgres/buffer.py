"""Change buffers read at cuts: the common table expressions that delta plans join."""

from collections.abc import Iterable

from pytrickle.catalog.definition import MOST_NETTED, ChangeRange, Source
from pytrickle.plan.algebra.relation import Version
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.sql.dialect import quote, row_text

NETTED = """\
SELECT {columns}{weight} FROM (
SELECT {columns}{weight}, sum({weight}) OVER (PARTITION BY {text}) AS pgt_net FROM (
{changes}
) AS d
) AS d WHERE pgt_net <> 0"""
CORRECTED = "SELECT {columns}1 AS {weight} FROM {table} UNION ALL SELECT {columns}-{weight} FROM {changes}"
# A buffer has an index only while few changes are looked for among many. So that PostgreSQL can tell one plan from
# another where reading whole tables is forbidden, it may read a buffer from its first page on, which is not.
CHANGES = (
    "SELECT {columns}CAST({weight} AS integer) AS {weight}{ctid} FROM {buffer} "
    "WHERE {condition} AND ctid >= CAST('(0,0)' AS tid)"
)


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


def changes_query(
    source: Source,
    version: Version,
    change_range: ChangeRange,
    ctid: str | None = None,
    columns: tuple[str, ...] | None = None,
) -> str:
    """Compile one source's buffered changes of one version, or columns of them.

    `ctid` names a column for where each is in the buffer.
    """
    read, place = condition(version, change_range), f", ctid AS {ctid}" if ctid else ""
    listed = _listed(source.used if columns is None else columns)
    return CHANGES.format(columns=listed, weight=WEIGHT, ctid=place, buffer=source.buffer, condition=read)


def is_netted(change_range: ChangeRange) -> bool:
    """Whether few changes are buffered, so that it is found out which of them cancel each other."""
    return change_range.past_rows <= MOST_NETTED


def netted_columns(
    source: Source, version: Version, change_range: ChangeRange, columns: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the columns of the changes that a scan of some columns reads: those, if that leaves out what cancels."""
    return columns if columns and _leaves_out(version, change_range) else source.used


def netted_changes(
    source: Source, version: Version, change_range: ChangeRange, columns: tuple[str, ...] | None = None
) -> str:
    """Compile one source's buffered changes, or columns of them, where they are few without what comes to nothing.

    An update of columns that a query does not read takes back a row and brings it again. Each would be joined with all
    that it meets, be it a whole table, only to cancel out in the end. Beyond the new frontier nothing is left out: what
    came before it and went after it is a row of the new state that the table no longer has.
    """
    columns = source.used if columns is None else columns
    changes = changes_query(source, version, change_range, columns=columns)
    if not _leaves_out(version, change_range) or len(columns) == len(source.columns):
        return changes
    text = row_text(tuple(map(quote, columns)))
    return NETTED.format(columns=_listed(columns), weight=WEIGHT, text=text, changes=changes)


def _leaves_out(version: Version, change_range: ChangeRange) -> bool:
    balanced = version is Version.DELTA or (version is Version.PAST and not change_range.future_rows)
    return balanced and is_netted(change_range)


def corrected(table: str, columns: Iterable[str], changes: str) -> str:
    """Read a table without the changes that an entry has, as one subquery."""
    return CORRECTED.format(columns=_listed(columns), weight=WEIGHT, table=table, changes=changes)


def _listed(columns: Iterable[str]) -> str:
    return "".join(f"{quote(name)}, " for name in columns)
