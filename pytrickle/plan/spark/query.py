"""The terms of a delta as one query in Spark's SQL, over leaves that are read once each.

Written as text it costs Spark's driver a few calls, however many terms and columns there are.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.spark.grouping import SparkGrouping
from pytrickle.plan.spark.reads import Frame, SparkLeaf
from pytrickle.plan.spark.terms import SparkTerm

# Up to so many changed rows every task keeps them in memory; beyond, Spark shuffles both sides and spills.
BROADCAST_ROWS = 500_000

JOINED = "SELECT {hint}* FROM (\n{left}\n) AS a {join} (\n{right}\n) AS b{condition}"
TERM = "SELECT {output}{sign}{product} AS {weight} FROM (\n{joined}\n) AS j"
CONSOLIDATED = "SELECT {columns}sum({weight}) AS {weight} FROM (\n{rows}\n) AS r{by} HAVING sum({weight}) <> 0"
GROUPED = "SELECT {texts} FROM (\nSELECT {items} FROM (\n{rows}\n) AS n{by}\n) AS g"


@dataclass(frozen=True, slots=True)
class SparkQuery:
    """One query: `template` has a place in braces for each of the `frames`, by name; `kept` are read several times."""

    frames: Mapping[str, Frame]
    template: str
    kept: frozenset[str]


def spark_query(terms: tuple[SparkTerm, ...], grouping: SparkGrouping | None, delta_rows: int | None) -> SparkQuery:
    """Write the weighted rows of all terms, consolidated, or the parts of groups that they make.

    The terms begin with so many changed rows, or with a whole table if `delta_rows` is None.
    """
    read = [frame.read for term in terms for leaf in term.leaves for frame in leaf.frames]
    names = {each: f"frame{i}" for i, each in enumerate(dict.fromkeys(read))}
    writer = _Writer(names, delta_rows is not None and delta_rows <= BROADCAST_ROWS)
    rows = "\nUNION ALL\n".join(writer.term(term) for term in terms)
    columns = tuple(name for name, _, _ in terms[0].output)
    text = _grouped(rows, columns, grouping) if grouping else _consolidated(rows, columns)
    kept = frozenset(name for each, name in names.items() if read.count(each) > 1)
    return SparkQuery({name: each for each, name in names.items()}, text, kept)


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes terms over named frames; `small` says that what comes first fits into every task's memory."""

    names: Mapping[Frame, str]
    small: bool

    def term(self, term: SparkTerm) -> str:
        joined = self._leaf(term.leaves[0], 0)
        for i, leaf in enumerate(term.leaves[1:], 1):
            tests = " AND ".join(f"b.l{i}_{own} = a.l{other}_{column}" for own, other, column in term.keys[i])
            joined = JOINED.format(
                hint=self._hint(i),
                left=joined,
                join="JOIN" if tests else "CROSS JOIN",
                right=self._leaf(leaf, i),
                condition=f" ON {tests}" if tests else "",
            )
        return TERM.format(
            output="".join(f"l{leaf}_{column} AS `{name}`, " for name, leaf, column in term.output),
            sign="-" if term.negated else "",
            product=" * ".join(f"l{i}_{WEIGHT}" for i in range(len(term.leaves))),
            weight=WEIGHT,
            joined=joined,
        )

    def _hint(self, position: int) -> str:
        # The delta leads; where it fits into memory the tables need no shuffle.
        return "/*+ BROADCAST(a) */ " if self.small and position == 1 else ""

    def _leaf(self, leaf: SparkLeaf, position: int) -> str:
        """Name the columns of a leaf after its position, so that they differ from those of all others."""
        frames = "\nUNION ALL\n".join(self._frame(frame, leaf.columns) for frame in leaf.frames)
        items = ", ".join(f"{column} AS l{position}_{column}" for column in (*leaf.columns, WEIGHT))
        return f"SELECT {items} FROM (\n{frames}\n) AS l"

    def _frame(self, frame: Frame, columns: tuple[str, ...]) -> str:
        listed = "".join(f"{column}, " for column in columns)
        return f"SELECT {listed}CAST({frame.weight} AS BIGINT) AS {WEIGHT} FROM {{{self.names[frame.read]}}}"


def _consolidated(rows: str, columns: tuple[str, ...]) -> str:
    listed = "".join(f"`{column}`, " for column in columns)
    return CONSOLIDATED.format(columns=listed, weight=WEIGHT, rows=rows, by=_by(columns))


def _grouped(rows: str, columns: tuple[str, ...], grouping: SparkGrouping) -> str:
    """Take the aggregates of weighted rows; all values of the result are texts."""
    return GROUPED.format(
        texts=", ".join(f"CAST(`{name}` AS STRING) AS `{name}`" for name in grouping.columns),
        items=", ".join(
            [*(f"`{name}`" for name in grouping.by), *(f"{sql} AS `{name}`" for name, sql in grouping.aggregates)]
        ),
        rows=_consolidated(rows, columns) if grouping.consolidated else rows,
        by=_by(grouping.by),
    )


def _by(columns: tuple[str, ...]) -> str:
    return f"\nGROUP BY {', '.join(f'`{column}`' for column in columns)}" if columns else ""
