"""Joined tables read as they are written, instead of through all products of their sum."""

from collections.abc import Mapping

from pytrickle.catalog.definition import ChangeRange
from pytrickle.plan.algebra.constructs.folded import Folded
from pytrickle.plan.algebra.relation import Operation, Version, relids
from pytrickle.plan.postgres.consolidate import WEIGHT

WEIGHED = "SELECT d.*, CAST(1 AS bigint) AS {weight} FROM (\n{rows}\n) AS d"


def as_written(operation: Operation, version: Version, ranges: Mapping[int, ChangeRange]) -> str | None:
    """Read the rows of an operation as they are written; None where that shows more than the version has.

    The tables show what came after the new frontier, too, and the old one lacks all changes since.
    """
    written = operation.construct.written if isinstance(operation.construct, Folded) else None
    read = (ranges[relid] for relid in relids(operation.input) if relid in ranges)
    if written is None or version is Version.OLD or any(each.future_rows for each in read):
        return None
    return WEIGHED.format(rows=written, weight=WEIGHT)
