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
from pytrickle.plan.spark.numeric_text import EXPONENT, PLACES, as_decimal
from pytrickle.plan.spark.operations import numerics
from pytrickle.plan.spark.operations.input import AS_BIGINT, AS_TEXT

Reader = Callable[[str], numerics.Items]


def reader_of(derived: Derived, argument: str, definition: Definition) -> tuple[str, Reader]:
    """Return the template by which PostgreSQL writes an argument, and what reads a column of it.

    Numbers of which the digits are known travel as decimals.
    """
    kind = row_kind(derived, argument, definition)
    if kind is not None and kind.base_type in INTEGER:
        return AS_BIGINT, numerics.read_integer
    if bounds := _known(derived, argument, definition):
        template = as_decimal("{0}", bounds.digits + bounds.scale, bounds.scale)
        return template, partial(numerics.read_decimal, bounds=bounds)
    return AS_TEXT, numerics.read


def _known(derived: Derived, argument: str, definition: Definition) -> Bounds | None:
    """Return the bounds of all numbers of an argument; None unless all fit, with as many digits behind the point."""
    found = [_bounds(block, argument, definition) for block in blocks_of(derived.operation.input)]
    known = [each for each in found if each and _fits(each)]
    if len(known) < len(found) or len({each.scale for each in known}) > 1:
        return None
    return max(known, key=lambda each: each.digits)


def _fits(bounds: Bounds) -> bool:
    return bounds.fixed and bounds.digits <= EXPONENT and bounds.scale <= PLACES


def _bounds(block: Project, argument: str, definition: Definition) -> Bounds | None:
    types = Translator({leaf.alias: leaf for leaf in leaves(block)}, definition).type_of
    try:
        return bounds_of(parsed(dict(block.columns)[argument]), types)
    except Untranslatable:
        return None
