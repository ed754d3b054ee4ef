"""Joined tables read as they are written, instead of through all products of their sum."""

from collections.abc import Mapping

from pytrickle.catalog.definition import ChangeRange, Definition
from pytrickle.plan.algebra.constructs.folded import TABLE, Folded
from pytrickle.plan.algebra.relation import Operation, Version, relids
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.postgres.from_item import table_name

WEIGHED = "SELECT d.*, CAST(1 AS bigint) AS {weight} FROM (\n{rows}\n) AS d"


def as_written(
    operation: Operation, version: Version, definition: Definition, ranges: Mapping[int, ChangeRange]
) -> str | None:
    """Read the rows of an operation as they are written; None where that shows more than the version has.

    The tables show what came after the new frontier, too, and the old one lacks all changes since.
    """
    written = operation.construct.written if isinstance(operation.construct, Folded) else None
    read = relids(operation.input)
    beyond = any(ranges[relid].future_rows for relid in read if relid in ranges)
    if written is None or version is Version.OLD or beyond:
        return None
    for relid in read:
        written = written.replace(TABLE.format(relid=relid), table_name(definition.source(relid)))
    return WEIGHED.format(rows=written, weight=WEIGHT)
