"""What Spark computes of rows, step by step: what it reads of each, what it takes of several, and the results."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pytrickle.plan.postgres.aggregate import INTEGERS
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.spark.bounds import NUMERIC
from pytrickle.plan.spark.key_encoding import UNSCALED, null_safe
from pytrickle.plan.spark.operations import numerics
from pytrickle.plan.spark.operations.input import AS_BIGINT, AS_TEXT, SIDE, plain
from pytrickle.plan.spark.operations.reading import Reader

# The place for the rows of the input in the text of an operation.
ROWS = "{rows}"
CONSOLIDATED = f"""\
SELECT {SIDE}, {{columns}}, sum({WEIGHT}) AS {WEIGHT} FROM (
{{{{rows}}}}
) AS d GROUP BY {SIDE}, {{columns}} HAVING sum({WEIGHT}) <> 0"""
BESIDE = "SELECT d.*{values} FROM (\n{rows}\n) AS d"
TEXT_OF_NUMERIC, SIGNED = numerics.trimmed("{0}"), "coalesce('=' || CAST({0} AS STRING), '')"
OF_INTEGERS = {AS_BIGINT: "{0}", AS_TEXT: "CAST({0} AS STRING)", plain(null_safe(AS_BIGINT)): SIGNED}
# What may be asked of a result, by its type.
SHOWN = {
    NUMERIC: {
        AS_TEXT: "{0}",
        plain(null_safe(AS_TEXT)): "coalesce('=' || {0}, '')",
        plain(UNSCALED): TEXT_OF_NUMERIC,
        plain(null_safe(UNSCALED)): f"coalesce('=' || {TEXT_OF_NUMERIC}, '')",
    },
    **dict.fromkeys(INTEGERS, OF_INTEGERS),
}


@dataclass(slots=True)
class Values:
    """What is computed: `read` of each row, then `taken` of several, then `results` of what was taken.

    `averages` are the results that are averages of numerics, `sums` those that are sums, each with what it sums.
    """

    read: dict[str, str] = field(default_factory=dict)
    taken: dict[str, str] = field(default_factory=dict)
    quotients: dict[str, tuple[numerics.Items, ...]] = field(default_factory=dict)
    results: dict[str, str] = field(default_factory=dict)
    averages: set[str] = field(default_factory=set)
    sums: dict[str, str] = field(default_factory=dict)

    def take_numeric(self, name: str, function: str, column: str, reader: Reader, over: str = "") -> None:
        """Take a function whose result is numeric, of a column of numbers that a reader reads."""
        self.read |= reader(column)
        self.taken |= numerics.aggregates(column, function, over)
        if function == "avg":
            self.quotients[column] = numerics.quotients(column)
            self.averages.add(name)
        elif function == "sum":
            self.sums[name] = column
        self.results[name] = numerics.result(function, column)

    def shown(self, rows: str) -> str:
        """Write the results over rows that have what was taken."""
        for steps in zip(*self.quotients.values(), strict=True):
            rows = beside(rows, {name: sql for step in steps for name, sql in step.items()})
        return beside(rows, self.results)


def consolidated(columns: str) -> str:
    """Write the rows of both sides with some columns, each with its weight, over a place for them."""
    return CONSOLIDATED.format(columns=columns)


def beside(rows: str, items: Mapping[str, str]) -> str:
    """Write further columns beside those of some rows."""
    return BESIDE.format(values=listed(items), rows=rows) if items else rows


def listed(items: Mapping[str, str]) -> str:
    """Write items by name, each after a comma."""
    return "".join(f", {sql} AS {name}" for name, sql in items.items())
