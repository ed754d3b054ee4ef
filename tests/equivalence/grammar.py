"""The grammars: the core, which has delta rules of its own, and the whole of what a defining query may say."""

from tests.equivalence import calls, groups, kept, predicates, rowwise, selects, sets, subqueries, tops, windows
from tests.equivalence.joins import OUTER
from tests.equivalence.writer import Grammar

CORE = Grammar(
    kinds=(
        (selects.plain, 5),
        (selects.grouped, 8),
        (selects.ungrouped, 3),
        (selects.distinct, 2),
        (selects.union, 3),
        (selects.with_clause, 2),
    ),
    items=((selects.plain, 7), (selects.union_all, 3)),
)

WHOLE = Grammar(
    kinds=(
        (selects.plain, 7),
        (selects.grouped, 5),
        (selects.ungrouped, 2),
        (selects.distinct, 2),
        (selects.union, 2),
        (selects.with_clause, 2),
        (sets.operation, 4),
        (sets.using, 1),
        (windows.windowed, 4),
        (windows.windowed_groups, 1),
        (windows.best, 1),
        (tops.limited, 2),
        (tops.with_ties, 1),
        (tops.distinct_on, 2),
        (groups.grouping_sets, 2),
        (groups.grouped_having, 2),
        (groups.groups_of_groups, 2),
        (groups.recursive, 1),
        (rowwise.unrolled, 3),
        (kept.told_apart, 2),
        (kept.ordered_below, 1),
        (kept.with_column_names, 1),
    ),
    items=(
        (selects.plain, 4),
        (selects.union_all, 1),
        (selects.grouped, 3),
        (selects.ungrouped, 1),
        (selects.distinct, 2),
        (sets.operation, 2),
        (sets.constants, 1),
        (sets.using, 2),
        (windows.windowed, 1),
        (windows.best, 1),
        (tops.limited, 1),
        (tops.with_ties, 1),
        (tops.distinct_on, 1),
        (groups.groups_of_groups, 1),
        (groups.grouping_sets, 1),
        (rowwise.unrolled, 1),
        (kept.told_apart, 1),
        (kept.with_column_names, 1),
    ),
    joins=OUTER,
    conditions=(
        *subqueries.CONDITIONS,
        *(rowwise.among, predicates.pattern, predicates.never, predicates.across_types, predicates.whole),
    ),
    values=(subqueries.scalar, rowwise.array, rowwise.elements),
    calls=(
        *(calls.of_distinct, calls.of_distinct, calls.of_truth, calls.of_spread, calls.of_bits),
        *(calls.of_texts, calls.of_rows, calls.of_order, predicates.of_whole),
    ),
    laterals=(subqueries.lateral, subqueries.lateral, subqueries.function, rowwise.optional),
)
