"""Which leaves of a join carry a weight, and what the weight of a joined row comes to."""

from collections.abc import Iterable, Mapping

from pytrickle.plan.algebra.delta import blocks_of
from pytrickle.plan.algebra.relation import Derived, Function, Join, Leaf, Project, Relation, Scan, Version, leaves
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.sql.dialect import quote


def has_weight(leaf: Leaf) -> bool:
    """Whether the rows of a leaf carry a weight column; those of the others count once."""
    match leaf:
        case Scan(version=version):
            return version is not Version.CURRENT
        case Derived(operation=operation, version=version):
            return operation.linear or version is Version.DELTA
        case Function():
            return False


def weight(join: Join, totals: Mapping[str, str]) -> str:
    """Multiply the weights of a join's leaves; `totals` says what stands for those of some of them."""
    weighted = [leaf for leaf in leaves(join) if has_weight(leaf)]
    sign = -1 if (sum(_is_negated(leaf) for leaf in weighted) + join.negated) % 2 else 1
    factors = [totals.get(leaf.alias, f"{quote(leaf.alias)}.{WEIGHT}") for leaf in weighted]
    return "CAST(" + " * ".join([str(sign), *factors]) + " AS bigint)"


def _is_negated(leaf: Leaf) -> bool:
    return isinstance(leaf, Scan | Derived) and leaf.negated


def are_plain(nodes: Iterable[Relation]) -> bool:
    """Whether every row of some relations in sum-of-products form has weight one."""
    return all(_is_plain(block) for node in nodes for block in blocks_of(node))


def _is_plain(block: Project) -> bool:
    join = block.input
    return isinstance(join, Join) and not join.negated and not any(map(has_weight, leaves(join)))
