"""What a monotone query gains within a cycle: its sources stand in temporary tables, and rows keep their types."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pytrickle.catalog.definition import ChangeRange, Source
from pytrickle.plan.algebra.delta import arrange, at, differentiate, unfold_all
from pytrickle.plan.algebra.relation import Version
from pytrickle.plan.analysis import Analysis
from pytrickle.plan.delta_terms import delta_compiler, terms_read
from pytrickle.plan.limits import WITHIN
from pytrickle.plan.placement import ALONE, SETTINGS, Place, join_place
from pytrickle.plan.postgres.compile import Compiler
from pytrickle.plan.postgres.consolidate import WEIGHT, consolidate
from pytrickle.plan.sql.types import all_exact
from pytrickle.plan.whole_rows import rows_of


@dataclass(frozen=True, slots=True)
class Growth:
    """A query for the columns of a stream table and a weight, and the planner settings for it alone."""

    query: str
    settings: tuple[str, ...]


def standing_in(shape: Analysis, sources: Mapping[int, Source]) -> Analysis:
    """Have a query read other relations in place of some of its sources."""
    definition = shape.definition
    changed = replace(definition, sources=tuple(sources.get(each.relid, each) for each in definition.sources))
    # The user's own text names the sources themselves.
    return replace(shape, definition=changed, query=replace(shape.query, text=None) if shape.query else None)


def growth(shape: Analysis, ranges: dict[int, ChangeRange], whole: bool) -> Growth:
    """Compile what a query gains by the changes of some ranges, or with `whole` all of its rows.

    The rows are consolidated, so that weights count copies: a monotone query loses nothing. Where the query removes
    duplicates, every row comes once, whether it was there already or not.
    """
    query = shape.query
    if query is None:
        raise TypeError("a query without algebra is not known to be monotone")
    changed = frozenset(relid for relid, change_range in ranges.items() if change_range.changed)
    terms = (at(query.rows, Version.NEW),) if whole else differentiate(arrange(query.rows, ranges), changed)
    parts = unfold_all(terms, ranges)
    compiler = Compiler(shape.definition, ranges) if whole else delta_compiler(query, shape.definition, ranges)
    rows = rows_of(compiler, parts, shape)
    if shape.grouped is None:
        exact = all_exact(tuple(type_name for _, type_name in shape.definition.columns), shape.definition)
        gained = consolidate(rows, query.row_columns, exact)
    else:
        groups = consolidate(rows, shape.grouped.keys)
        gained = f"SELECT f.*, CAST(1 AS bigint) AS {WEIGHT} FROM ({shape.grouped.final(f'({groups}) AS s')}) AS f"
    delta_rows = sum(change_range.delta_rows for change_range in ranges.values())
    place = Place.POSTGRES if whole else join_place(terms_read(compiler, parts), delta_rows, WITHIN)[0]
    return Growth(compiler.within(gained), (*SETTINGS[place], ALONE))
