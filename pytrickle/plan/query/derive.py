"""Operations over rows whose expressions may fail, and the two that need nothing but rows: DISTINCT and EXISTS."""

from pytrickle.plan.algebra.relation import Derived
from pytrickle.plan.query.block import Block
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.query.guard import guarded
from pytrickle.plan.query.operation import ROW, Form, Rows, derive_unguarded


def derive(facts: Facts, rows: Rows, arguments: tuple[str, ...], keys: tuple[str, ...], form: Form) -> Derived:
    """Build an operation over blocks, each projected to the same arguments, under a fresh alias."""
    return derive_unguarded(facts, guarded(facts, rows), arguments, keys, form)


def distinct(facts: Facts, rows: Rows, name: str = "distinct") -> Derived:
    """Build the distinct rows of blocks; columns k<i>."""
    keys = tuple(f"k{i}" for i in range(len(rows[0][1])))
    listed = ", ".join(f"{ROW}.{key}" for key in keys)
    # Indicators and what is asked for tell equal values apart where anything may show that.
    chosen = keys if name == "distinct" else ()
    form = Form(name, f"SELECT DISTINCT {listed} FROM", f"AS {ROW}", keys, chosen=chosen)
    return derive(facts, rows, keys, keys, form)


def exists(facts: Facts, blocks: tuple[Block, ...]) -> Derived:
    """Build one row without content if the blocks have any."""
    form = Form("exists", "SELECT 1 AS one FROM", f"AS {ROW} LIMIT 1", ("one",))
    return derive(facts, tuple((block, ()) for block in blocks), (), (), form)
