"""The keyed rule: groups whose stored value a delta cannot merge are recomputed from the sources' new state."""

from pytrickle.plan.postgres.aggregate import Merge
from pytrickle.plan.postgres.aggregate_state import Grouped
from pytrickle.plan.postgres.consolidate import WEIGHT

KEYS = "pgt_keys"
ALL_TOUCHED = "SELECT DISTINCT {items} FROM pgt_touched AS d"
THAT_LOST_THEIR_EXTREME = """\
SELECT DISTINCT {items} FROM pgt_touched AS d JOIN {state} AS s ON {same} WHERE d.{weight} < 0 AND ({lost})"""


def keyed_query(grouped: Grouped, delta: str, recomputed: str, state: str) -> tuple[dict[str, str], str]:
    """Compile op(NEW|K) for the touched keys K that need it: every key for order-dependent sums, and for a minimum or
    maximum the keys that lost a row at least as extreme as the stored one. `recomputed` are the values of these keys,
    or of all rows where there are no keys. Return further entries of the WITH list and the query over them.
    """
    entries = {"pgt_touched": grouped.consolidate(delta), KEYS: _needed(grouped, state)}
    only_if_needed = "" if grouped.keys else f"\nHAVING EXISTS (SELECT FROM {KEYS})"
    return entries, f"{recomputed}{only_if_needed}"


def _needed(grouped: Grouped, state: str) -> str:
    items = ", ".join(f"d.{key}" for key in grouped.keys) or "1 AS pgt_one"
    if len(grouped.extrema) < len(grouped.values):
        return ALL_TOUCHED.format(items=items)
    arguments = {f"{call.name}_v": call.argument for call in grouped.aggregate.calls}
    lost = " OR ".join(
        f"d.{arguments[column.name]} {'<=' if column.merge is Merge.LEAST else '>='} s.{column.name}"
        for column in grouped.extrema
    )
    same = grouped.match("s", "d")
    return THAT_LOST_THEIR_EXTREME.format(items=items, state=state, same=same, weight=WEIGHT, lost=lost)
