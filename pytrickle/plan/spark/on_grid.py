"""A numeric of any digits on the grid of another one's, which some value lies between: a comparison stays what it is.

What is beyond all values of the other side is as good as any that is.
"""

import re
from dataclasses import dataclass

from pytrickle.plan.spark.numeric_text import power

ONTO = {"<": "ceil", ">=": "ceil", "<=": "floor", ">": "floor"}
CLAMPED = """\
CAST(CASE WHEN ({sql}) IS NULL THEN NULL WHEN ({sql}) = 'NaN' THEN {nan} WHEN ({sql}) >= {top} THEN {top} \
WHEN ({sql}) <= -{top} THEN -{top} ELSE {onto}(({sql}) * 1{zeros}) * {step} END AS numeric({digits},{scale}))"""
PARTS = {
    "nan": r"\d+",
    "top": r"\d+",
    "onto": "ceil|floor",
    "zeros": "0*",
    "step": r"[\d.]+",
    "digits": r"\d+",
    "scale": r"\d+",
}


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

        >>> OntoGrid.of(OntoGrid("d.c0 * 2", "ceil", 4, 2).text())
        OntoGrid(sql='d.c0 * 2', onto='ceil', before=4, scale=2)
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

    @classmethod
    def of(cls, text: str) -> "OntoGrid | None":
        """Read what `text` wrote; None for anything else."""
        found = FORM.fullmatch(text)
        if found is None:
            return None
        grid = cls(found["sql"], found["onto"], len(found["top"]) - 1, int(found["scale"]))
        return grid if grid.text() == text else None


def _form() -> re.Pattern[str]:
    text = re.escape(CLAMPED)
    for name, pattern in {"sql": ".+?", **PARTS}.items():
        place = re.escape(f"{{{name}}}")
        text = text.replace(place, f"(?P<{name}>{pattern})", 1).replace(place, f"(?P={name})")
    return re.compile(text, re.DOTALL)


FORM = _form()
