"""A defining query as a whole: its rows, and the aggregate and the LIMIT above them."""

from dataclasses import dataclass

from pytrickle.plan.algebra.relation import Relation


@dataclass(frozen=True, slots=True)
class Call:
    """An aggregate call `function(argument)`; `argument` names an input column, None means count(*).

    One that must be recomputed is `written` over the rows `d` as the query has it; `placed` is the same call, taking
    the rows in the order of their places in the table. All values of a numeric argument have `scale` digits behind the
    point, if that is known. One that is `ordered` takes rows in an order that it says, in which some may tie.
    """

    name: str
    function: str
    argument: str | None
    written: str | None = None
    placed: str | None = None
    scale: int | None = None
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class Aggregate:
    """GROUP BY over `keys` (columns of the input), then HAVING and the final projection over keys and calls.

    `grouped` is False for a query without GROUP BY, which has one row even over no input. `shown_keys` pairs keys with
    output columns that show them unchanged.
    """

    input: Relation
    keys: tuple[str, ...]
    calls: tuple[Call, ...]
    having: str | None
    output: tuple[tuple[str, str], ...]
    grouped: bool
    shown_keys: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class HiddenColumn:
    """A column of a body that is not shown; `collation` is None for none and for the default one."""

    name: str
    type_name: str
    collation: str | None


@dataclass(frozen=True, slots=True)
class Top:
    """Which rows of a body are shown: ORDER BY items over its columns, and LIMIT and OFFSET, all as text.

    `indexed` are the first of the items, each after its column, as far as they are plain columns: by an index of them a
    refresh need not sort the whole body. The body has the `hidden` columns behind those that are shown.
    """

    ordering: tuple[str, ...]
    bounds: str
    with_ties: bool
    indexed: tuple[tuple[str, str], ...]
    hidden: tuple[HiddenColumn, ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """A differentiable defining query: rows, the aggregate over them if there is one, and what LIMIT shows of that.

    `text` is the query for all of the rows as the user wrote it, where that gives them as they are. The output columns
    `representatives` hold one of several equal values. `placed` are the rows together with their places in the one
    table that they come from, where an aggregate takes them in that order, which only the current state has.
    """

    rows: Relation
    row_columns: tuple[str, ...]
    aggregate: Aggregate | None
    top: Top | None = None
    text: str | None = None
    representatives: frozenset[str] = frozenset()
    placed: Relation | None = None
