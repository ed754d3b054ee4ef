"""How the numbers of an operation's argument travel to Spark, and what it reads from them."""

from collections.abc import Callable
from functools import partial

from pytrickle.catalog.definition import Definition
from pytrickle.plan.algebra.delta import blocks_of
from pytrickle.plan.algebra.relation import Derived, Project, leaves
from pytrickle.plan.spark.bounds import Bounds, bounds_of
from pytrickle.plan.spark.key_encoding import INTEGER, row_kind
from pytrickle.plan.spark.mixed import Translator, parsed
from pytrickle.plan.spark.numbers import Untranslatable
from pytrickle.plan.spark.numeric_text import EXPONENT, PLACES
from pytrickle.plan.spark.operations import numerics
from pytrickle.plan.spark.operations.input import AS_BIGINT, AS_TEXT

Reader = Callable[[str], numerics.Items]


def reader_of(derived: Derived, argument: str, definition: Definition) -> tuple[str, Reader]:
    """Return the template by which PostgreSQL writes an argument, and what reads a column of it.

    Of numbers with a declared scale less has to be read than of others.
    """
    kind = row_kind(derived, argument, definition)
    if kind is not None and kind.base_type in INTEGER:
        return AS_BIGINT, numerics.read_integer
    scale = _scale(derived, argument, definition)
    return AS_TEXT, numerics.read if scale is None else partial(numerics.read_of_scale, scale=scale)


def _scale(derived: Derived, argument: str, definition: Definition) -> int | None:
    """Return the digits behind the point that all numbers of an argument have; None unless all of them fit."""
    found = {_bounds(block, argument, definition) for block in blocks_of(derived.operation.input)}
    scales = {each.scale if each and _fits(each) else None for each in found}
    return scales.pop() if len(scales) == 1 else None


def _fits(bounds: Bounds) -> bool:
    return bounds.fixed and bounds.digits <= EXPONENT and bounds.scale <= PLACES


def _bounds(block: Project, argument: str, definition: Definition) -> Bounds | None:
    types = Translator({leaf.alias: leaf for leaf in leaves(block)}, definition).type_of
    try:
        return bounds_of(parsed(dict(block.columns)[argument]), types)
    except Untranslatable:
        return None
