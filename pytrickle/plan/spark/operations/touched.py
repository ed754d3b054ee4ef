"""Reads of the rows that changes touch, of tables so large that reading them whole would not pay off."""

from collections.abc import Mapping
from dataclasses import replace

from pytrickle.catalog.definition import ChangeRange, Definition
from pytrickle.plan.algebra.relation import Expr, Join, Operation, Predicate, Project, Scan, Version, leaves, relids
from pytrickle.plan.postgres.buffer import netted_changes
from pytrickle.plan.spark.operations.input import LeftToPostgres
from pytrickle.plan.spark.restriction import asking_pays_off
from pytrickle.plan.sql.dialect import quote

TOUCHED = "({key}) IN (SELECT {key} FROM ({changes}) AS {alias}{where})"


def touching(
    operation: Operation, blocks: tuple[Project, ...], definition: Definition, ranges: Mapping[int, ChangeRange]
) -> tuple[Project, ...]:
    """Restrict large tables below an operation to rows that have a key of a change.

    Raise LeftToPostgres where that is not possible. Some key of a change may be left in rows that have another one:
    what Spark computes of these rows cancels out.
    """
    changes = sum(ranges[relid].delta_rows for relid in relids(operation.input))
    rows = (definition.source(relid).estimated_rows for relid in relids(operation.input))
    if not any(asking_pays_off(each, changes) for each in rows):
        return blocks
    found = leaves(blocks[0])
    if len(blocks) != 1 or len(found) != 1 or not isinstance(found[0], Scan):
        raise LeftToPostgres("reads few rows of large tables")
    (block,) = blocks
    return (_touched(operation, block, found[0], definition, ranges),)


def _touched(
    operation: Operation, block: Project, scan: Scan, definition: Definition, ranges: Mapping[int, ChangeRange]
) -> Project:
    """Restrict a block over one table. Within the subquery the table's alias means its changes."""
    join = block.input
    assert isinstance(join, Join)
    columns = dict(block.columns)
    tests = [f"({predicate.expr.sql})" for predicate in join.predicates]
    where = f" WHERE {' AND '.join(tests)}" if tests else ""
    changes = netted_changes(definition.source(scan.relid), Version.DELTA, ranges[scan.relid])
    sql = [
        TOUCHED.format(key=columns[key].sql, changes=changes, alias=quote(scan.alias), where=where)
        for key in operation.keys
    ]
    tested = [
        f"({test} OR ({columns[key].sql}) IS NULL)" if operation.nullable else test
        for test, key in zip(sql, operation.keys, strict=True)
    ]
    expr = Expr(" AND ".join(tested), frozenset({scan.alias}), holds_query=True)
    return replace(block, input=replace(join, predicates=(*join.predicates, Predicate(expr))))
