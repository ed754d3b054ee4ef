"""Operations over rows whose expressions may fail, and those that need nothing but rows."""

from pytrickle.plan.algebra.construct import Construct
from pytrickle.plan.algebra.constructs.distinct import Distinct
from pytrickle.plan.algebra.constructs.domain import Domain
from pytrickle.plan.algebra.constructs.exists import Exists
from pytrickle.plan.algebra.relation import Derived
from pytrickle.plan.query.block import Block
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.query.guard import guard_rows
from pytrickle.plan.query.operation import Rows, derive_unguarded


def derive(
    facts: Facts, rows: Rows, arguments: tuple[str, ...], keys: tuple[str, ...], construct: Construct
) -> Derived:
    """Build an operation over blocks, each projected to the same arguments, under a fresh alias."""
    return derive_unguarded(facts, guard_rows(facts, rows), arguments, keys, construct)


def distinct(facts: Facts, rows: Rows, construct: Distinct | Domain | Exists) -> Derived:
    """Build the distinct rows of blocks; columns k<i>."""
    keys = tuple(f"k{i}" for i in range(len(rows[0][1])))
    return derive(facts, rows, keys, keys, construct)


def exists(facts: Facts, blocks: tuple[Block, ...]) -> Derived:
    """Build one row without content if the blocks have any."""
    return derive(facts, tuple((block, ()) for block in blocks), (), (), Exists())
