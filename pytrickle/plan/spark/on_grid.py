"""A numeric of any digits on the grid of another one's, which some value lies between: a comparison stays what it is.

What is beyond all values of the other side is as good as any that is.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from pytrickle.plan.algebra.relation import Expr
from pytrickle.plan.spark.numeric_text import power

ONTO = {"<": "ceil", ">=": "ceil", "<=": "floor", ">": "floor"}
CLAMPED = """\
CAST(CASE WHEN ({sql}) IS NULL THEN NULL WHEN ({sql}) = 'NaN' THEN {nan} WHEN ({sql}) >= {top} THEN {top} \
WHEN ({sql}) <= -{top} THEN -{top} ELSE {onto}(({sql}) * 1{zeros}) * {step} END AS numeric({digits},{scale}))"""


@dataclass(frozen=True, slots=True)
class OntoGrid:
    """A numeric, as PostgreSQL's SQL, put onto the grid of numbers with so many digits before the point and behind."""

    sql: str
    onto: str
    before: int
    scale: int

    @property
    def top(self) -> str:
        """The least number that is beyond all of the other side."""
        return power(self.before)

    @property
    def nan(self) -> str:
        """What stands for NaN, which is larger."""
        return str(int(self.top) + 1)

    @property
    def digits(self) -> int:
        """How many digits there are at most."""
        return self.before + 1 + self.scale

    @property
    def step(self) -> str:
        """What lies between two numbers of the grid."""
        return f"0.{'0' * (self.scale - 1)}1" if self.scale else "1"

    def text(self) -> str:
        """Write it for PostgreSQL.

        >>> OntoGrid("d.c0 * 2", "ceil", 4, 2).text().partition(" ELSE ")[2]
        'ceil((d.c0 * 2) * 100) * 0.01 END AS numeric(7,2))'
        """
        return CLAMPED.format(
            sql=self.sql,
            nan=self.nan,
            top=self.top,
            onto=self.onto,
            zeros="0" * self.scale,
            step=self.step,
            digits=self.digits,
            scale=self.scale,
        )


NO_GRIDS: Mapping[str, OntoGrid] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class PutOntoGrid(Expr):
    """An expression that is a numeric on a grid, which is kept beside its text for who computes the numeric himself."""

    grid: OntoGrid = field(kw_only=True)

    @classmethod
    def of(cls, number: Expr, onto: str, before: int, scale: int) -> "PutOntoGrid":
        """Put a numeric onto a grid with so many digits before the point and behind."""
        grid = OntoGrid(number.sql, onto, before, scale)
        return cls(grid.text(), number.tables, number.columns, grid=grid)
