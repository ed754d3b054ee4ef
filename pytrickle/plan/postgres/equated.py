"""Which columns of a table are equated with what is known of a row, so that an index on them may find the rows."""

from collections.abc import Container

from pytrickle.catalog.definition import Definition, Source
from pytrickle.plan.algebra.relation import Join, Predicate, Scan

TEXTUAL = frozenset({"text", "varchar"})


def equated_columns(scan: Scan, join: Join, reached: Container[str], definition: Definition) -> dict[str, Predicate]:
    """Return the columns of a table that equalities equate with what is reached, so that an index may serve."""
    source, found = definition.source(scan.relid), dict[str, Predicate]()
    for predicate in join.predicates:
        equality = predicate.equality
        # IS NOT DISTINCT FROM uses no index.
        if equality is None or equality.null_safe:
            continue
        for own, other in ((equality.left, equality.right), (equality.right, equality.left)):
            serves = not equality.as_text or _is_textual(source, own[1])
            if own[0] == scan.alias and other[0] in reached and serves:
                found.setdefault(own[1], predicate)
    return found


def _is_textual(source: Source, column: str) -> bool:
    """Whether a cast of the column to text changes nothing, so that an index on it still serves."""
    found = source.column(column)
    return found is not None and found.base_type in TEXTUAL
