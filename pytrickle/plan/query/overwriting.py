"""Aggregates in which a later row overwrites an earlier one: no two rows of a group may have the same key."""

from sqlglot import exp

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.query.block import Block
from pytrickle.plan.query.calls import bare_call, function_name
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.query.scope import resolve
from pytrickle.plan.query.stored_order import calls_in, is_open
from pytrickle.plan.query.unique_rows import finds_one_row, plain_column
from pytrickle.plan.sql.types import has_one_text

OVERWRITING = frozenset({"jsonb_object_agg"})


def refuse_equal_keys(facts: Facts, select: exp.Select, group_keys: list[exp.Expr], blocks: tuple[Block, ...]) -> None:
    """Refuse calls whose result depends on which of several rows comes last."""
    for item in select.selects:
        for call in calls_in(item, facts.definition.aggregates):
            bare = bare_call(call)
            overwrites = function_name(bare) in OVERWRITING and is_open(call)
            if overwrites and not _differ(facts, [bare.expressions[0], *group_keys], blocks):
                name = function_name(bare)
                raise NotDifferentiable(f"{name}() without ORDER BY, over rows of which several may have the same key")


def _differ(facts: Facts, keys: list[exp.Expr], blocks: tuple[Block, ...]) -> bool:
    """Whether a unique key leads from the key of a call, and those of the group, to one row.

    PostgreSQL refuses a key that is NULL, as it is where an outer join has found nothing, unless FILTER leaves it out.
    """
    found = [(block, [resolve(key, block.names) for key in keys]) for block in blocks]
    shown = [(block, columns) for block, columns in found if not _is_null(columns[0])]
    if len(shown) != 1:
        return False
    ((block, (first, *others)),) = shown
    known = [first, *(each for each in others if facts.never_null(each, block))]
    columns = [column for each in known if (column := _told_apart(facts, each, block)) is not None]
    return finds_one_row(facts, (block,), frozenset((column.table, column.name) for column in columns))


def _is_null(key: exp.Expr) -> bool:
    node = key.unnest()
    return isinstance(node.this if isinstance(node, exp.Cast) else node, exp.Null)


def _told_apart(facts: Facts, key: exp.Expr, block: Block) -> exp.Column | None:
    """Return the column of a source that a key is, or is the text of, if different values of it are different texts."""
    column = plain_column(key)
    source = facts.source_column(column, block) if column else None
    return column if source and has_one_text(source.type_name) else None
