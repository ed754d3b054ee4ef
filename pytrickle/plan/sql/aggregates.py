"""PostgreSQL's aggregates that a query may call, a line for each.

One that is listed here is maintained by computing the touched groups anew. At the top of a query increments maintain
those that add up; plan/postgres/aggregate.py says what they keep.
"""

from dataclasses import dataclass
from enum import StrEnum


class Shows(StrEnum):
    """What a result shows of values that are equal, but may look different, such as 1 and 1.00.

    A CHOSEN result is one of them, as that of min(); a PASSED one may look as they do, as that of sum(); a COUNTED one
    looks the same whichever they are. Nothing is known of OTHER results.
    """

    CHOSEN = "chosen"
    PASSED = "passed"
    COUNTED = "counted"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Traits:
    """What is known of an aggregate.

    It `sorts` if its result depends on the order of rows unless the call says which. `zero` says that over no rows it
    is zero, others NULL. Increments maintain one that `adds_up`.
    """

    sorts: bool = False
    shows: Shows = Shows.OTHER
    zero: bool = False
    adds_up: bool = False


TRAITS: dict[str, Traits] = {
    "array_agg": Traits(sorts=True, shows=Shows.PASSED),
    "avg": Traits(adds_up=True),
    "bit_and": Traits(),
    "bit_or": Traits(),
    "bit_xor": Traits(),
    "bool_and": Traits(shows=Shows.COUNTED),
    "bool_or": Traits(shows=Shows.COUNTED),
    "corr": Traits(),
    "count": Traits(shows=Shows.COUNTED, zero=True, adds_up=True),
    "covar_pop": Traits(),
    "covar_samp": Traits(),
    "cume_dist": Traits(shows=Shows.COUNTED),
    "dense_rank": Traits(shows=Shows.COUNTED),
    "every": Traits(shows=Shows.COUNTED),
    "json_agg": Traits(sorts=True),
    "json_object_agg": Traits(sorts=True),
    "jsonb_agg": Traits(sorts=True),
    "jsonb_object_agg": Traits(sorts=True),
    "max": Traits(shows=Shows.CHOSEN, adds_up=True),
    "min": Traits(shows=Shows.CHOSEN, adds_up=True),
    "mode": Traits(shows=Shows.CHOSEN),
    "percent_rank": Traits(shows=Shows.COUNTED),
    "percentile_cont": Traits(shows=Shows.CHOSEN),
    "percentile_disc": Traits(shows=Shows.CHOSEN),
    "range_agg": Traits(shows=Shows.CHOSEN),
    "range_intersect_agg": Traits(shows=Shows.CHOSEN),
    "rank": Traits(shows=Shows.COUNTED),
    "regr_avgx": Traits(),
    "regr_avgy": Traits(),
    "regr_count": Traits(shows=Shows.COUNTED, zero=True),
    "regr_intercept": Traits(),
    "regr_r2": Traits(),
    "regr_slope": Traits(),
    "regr_sxx": Traits(),
    "regr_sxy": Traits(),
    "regr_syy": Traits(),
    "stddev": Traits(),
    "stddev_pop": Traits(),
    "stddev_samp": Traits(),
    "string_agg": Traits(sorts=True),
    "sum": Traits(shows=Shows.PASSED, adds_up=True),
    "var_pop": Traits(),
    "var_samp": Traits(),
    "variance": Traits(),
    "xmlagg": Traits(sorts=True),
}


def unordered() -> frozenset[str]:
    """Name the aggregates that do not depend on the order of rows."""
    return frozenset(name for name, traits in TRAITS.items() if not traits.sorts)


def ordered() -> frozenset[str]:
    """Name the aggregates that do, unless the call says which order."""
    return frozenset(name for name, traits in TRAITS.items() if traits.sorts)


def added_up() -> frozenset[str]:
    """Name the aggregates that increments maintain.

    >>> sorted(added_up())
    ['avg', 'count', 'max', 'min', 'sum']
    """
    return frozenset(name for name, traits in TRAITS.items() if traits.adds_up)


def showing(*kinds: Shows) -> frozenset[str]:
    """Name the aggregates whose results show equal values in one of some ways.

    >>> "min" in showing(Shows.CHOSEN), "count" in showing(Shows.CHOSEN)
    (True, False)
    """
    return frozenset(name for name, traits in TRAITS.items() if traits.shows in kinds)
