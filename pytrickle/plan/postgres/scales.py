"""Histograms of the scales of a group's numerics, as JSON: one [scale, count] pair for each scale that there is.

Nearly always there is one. That case is written out, for a call of a function of ours takes as long as all the rest
that is done for a group.
"""

SCALE, COUNT = "{of} -> 0 -> 0", "CAST({of} -> 0 ->> 1 AS bigint)"
WIDEST = """\
CASE jsonb_array_length({of}) WHEN 1 THEN CAST({of} -> 0 ->> 0 AS integer) \
ELSE pgtrickle_private.max_scale({of}) END"""
FIRST = """\
CASE WHEN jsonb_array_length({of}) = 1 AND {count} <> 0 THEN {of} ELSE pgtrickle_private.add_scales(NULL, {of}) END"""
ADDED = """\
CASE WHEN jsonb_array_length({state}) = 1 AND jsonb_array_length({increment}) = 1 AND {scale} = {other} \
AND {count} + {added} <> 0 THEN jsonb_build_array(jsonb_build_array({scale}, {count} + {added})) \
ELSE pgtrickle_private.add_scales({state}, {increment}) END"""


def widest_scale(scales: str) -> str:
    """Write the widest scale in a histogram, which is that of the sum; 0 where there is none.

    >>> print(widest_scale("a_scales"))
    CASE jsonb_array_length(a_scales) WHEN 1 THEN CAST(a_scales -> 0 ->> 0 AS integer) \
ELSE pgtrickle_private.max_scale(a_scales) END
    """
    return WIDEST.format(of=scales)


def first_scales(increment: str) -> str:
    """Write the histogram of a group that had no values before."""
    return FIRST.format(of=increment, count=COUNT.format(of=increment))


def added_scales(state: str, increment: str) -> str:
    """Write the sum of two histograms, the second of which may have negative counts; NULL where nothing is left."""
    (scale, count), (other, added) = ((SCALE.format(of=of), COUNT.format(of=of)) for of in (state, increment))
    return ADDED.format(state=state, increment=increment, scale=scale, other=other, count=count, added=added)
