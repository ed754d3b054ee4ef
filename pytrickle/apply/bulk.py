"""The staging table: where Spark writes what is too large to pass through this process."""

import psycopg

from pytrickle.apply.staging import run
from pytrickle.plan.compile import WEIGHT
from pytrickle.plan.dialect import quote
from pytrickle.plan.refresh_plan import RefreshPlan, Stage, input_layout


def create_staging(connection: psycopg.Connection, plan: RefreshPlan, pgt_id: int) -> str:
    """Create the empty, unlogged staging table of a stream table, in place of one that a failed refresh left.

    Its columns are those that the plan stages, under their staged names.
    """
    name = f"pgtrickle_changes.staging_{pgt_id}"
    run(connection, f"DROP TABLE IF EXISTS {name}")
    run(connection, f"CREATE UNLOGGED TABLE {name} AS\n{_layout(plan)}\nWITH NO DATA")
    return name


def _layout(plan: RefreshPlan) -> str:
    grouped = plan.shape.grouped
    match plan.stage:
        case Stage.INPUT:
            return input_layout(plan.shape)
        case Stage.STATE | Stage.INCREMENTS if grouped is not None:
            columns = ", ".join([*grouped.keys, *(column.name for column in grouped.merged)])
            return f"SELECT {columns} FROM (\n{grouped.layout(input_layout(plan.shape))}\n) AS s"
        case _:
            definition = plan.shape.definition
            items = [f"{quote(name)} AS r{i}" for i, (name, _) in enumerate(definition.columns)]
            weighted = bool(plan.join) or (plan.read is not None and plan.read.weighted)
            items += [f"CAST(NULL AS bigint) AS {WEIGHT}"] if weighted else []
            return f"SELECT {', '.join(items)} FROM {quote(definition.schema)}.{quote(definition.name)}"
