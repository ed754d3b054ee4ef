"""The keyed rule: groups whose stored value a delta cannot merge are recomputed from the sources' new state."""

from pytrickle.plan.accumulators import Merge
from pytrickle.plan.grouped import Grouped
from pytrickle.plan.zset import WEIGHT


def keyed_query(grouped: Grouped, delta: str, new: str, state: str) -> tuple[dict[str, str], str]:
    """Compile op(NEW|K) for the touched keys K that need it: every key for order-dependent sums, and for a minimum or
    maximum the keys that lost a row at least as extreme as the stored one. Return further entries of the WITH list
    and the query over them.
    """
    keys = grouped.keys
    entries = {"pgt_touched": grouped.netted(delta), "pgt_keys": _needed(grouped, state)}
    only_if_needed = "" if keys else "\nHAVING EXISTS (SELECT FROM pgt_keys)"
    return entries, f"{grouped.recomputed(_restricted(keys, new))}{only_if_needed}"


def _needed(grouped: Grouped, state: str) -> str:
    items = ", ".join(f"d.{key}" for key in grouped.keys) or "1 AS pgt_one"
    if len(grouped.extrema) < len(grouped.values):
        return f"SELECT DISTINCT {items} FROM pgt_touched AS d"
    arguments = {f"{call.name}_v": call.argument for call in grouped.aggregate.calls}
    lost = " OR ".join(
        f"d.{arguments[column.name]} {'<=' if column.merge is Merge.LEAST else '>='} s.{column.name}"
        for column in grouped.extrema
    )
    return (
        f"SELECT DISTINCT {items} FROM pgt_touched AS d JOIN {state} AS s ON {grouped.match('s', 'd')} "
        f"WHERE d.{WEIGHT} < 0 AND ({lost})"
    )


def _restricted(keys: tuple[str, ...], new: str) -> str:
    """Keys without NULL restrict by plain equality, which indexes and hash joins serve; NULL keys one by one."""
    if not keys:
        return new
    equal = " AND ".join(f"n.{key} = k.{key}" for key in keys)
    same = " AND ".join(f"n.{key} IS NOT DISTINCT FROM k.{key}" for key in keys)
    some_null = " OR ".join(f"k.{key} IS NULL" for key in keys)
    return (
        f"SELECT n.* FROM pgt_keys AS k JOIN (\n{new}\n) AS n ON {equal}\nUNION ALL\n"
        f"SELECT n.* FROM pgt_keys AS k CROSS JOIN LATERAL "
        f"(SELECT * FROM (\n{new}\n) AS n WHERE {same} OFFSET 0) AS n WHERE {some_null}"
    )
