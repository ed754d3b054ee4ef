"""The terms of a delta as one query in Spark's SQL, over leaves that are read once each.

Written as text it costs Spark's driver a few calls, however many terms and columns there are. A subquery more, or an
expression more, takes Spark longer to analyse than the rows of few changes to join.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.spark.grouping import SparkGrouping
from pytrickle.plan.spark.leaves import Computed, Frame, SparkLeaf, SparkTerm, leaves_of
from pytrickle.plan.spark.operations.input import SIDE
from pytrickle.plan.spark.together import read_together

# Up to so many rows every task keeps in memory; where both sides of a join have more, Spark shuffles them and spills.
BROADCAST_ROWS = 500_000
# The same of a whole table, whose rows may be wide.
BROADCAST_TABLE = 200_000

# Spark plans what is kept in memory again wherever it is used, so that of few rows it is held as values where there
# would be more reads than this if everything were written out. To hold a result takes about 25 ms.
MANY_READS = 500

TERM = "SELECT {hint}{output}{product} AS {weight}\nFROM {joined}"
CONSOLIDATED = "SELECT {columns}sum({weight}) AS {weight} FROM (\n{rows}\n) AS r{by} HAVING sum({weight}) <> 0"
GROUPED = "SELECT {items} FROM (\n{rows}\n) AS n{by}"

# The frame of all small ones that are read by one connection.
TOGETHER = "together"
ONE_PART = "SELECT /*+ COALESCE(1) */ * FROM (\n{rows}\n) AS o"

NEW = "SELECT 1 AS {side}, {columns}, {weight} FROM (\n{now}\n) AS d"
BOTH = """\
SELECT {side}, {columns}, {weight} FROM (
SELECT {hint}d.* FROM (
{now}
) AS d LEFT SEMI JOIN (
{changed}
) AS k ON {same}
) AS d LATERAL VIEW explode(array(1, -1)) s AS {side}
UNION ALL
SELECT -1, {columns}, -{weight} FROM (
{changed}
) AS d"""


@dataclass(frozen=True, slots=True)
class SparkQuery:
    """One query: `template` has a place in braces for each of the `frames`, by name, and for each of the `computed`.

    These come as templates, each over those before it. They and the frames that are `kept` are used several times.
    If they are `held`, it is as values: few rows are read, and some of them are computed from others many times over.
    """

    frames: Mapping[str, Frame]
    computed: Mapping[str, str]
    template: str
    kept: frozenset[str]
    held: bool = False


def spark_query(
    terms: tuple[SparkTerm, ...],
    grouping: SparkGrouping | None,
    delta_rows: int | None,
    few: bool = False,
    table_rows: int = BROADCAST_TABLE,
) -> SparkQuery:
    """Write the weighted rows of all terms, consolidated, or the parts of groups that they make.

    The terms begin with so many changed rows, or with a whole table if `delta_rows` is None: then tables of up to
    `table_rows` are kept in memory. If they read `few` rows, small frames are read together, and one task joins and
    groups the rows.
    """
    uses: Counter[Frame | Computed] = Counter()
    _count(terms, uses)
    frames, parts = _frames_read(terms, few)
    several = dict.fromkeys(each for each in _innermost_first(terms) if uses[each] > 1)
    views = {f"computed{i}": each for i, each in enumerate(several)}
    held = few and _written_out(terms, {}) > MANY_READS
    split = {f"part{i}": each for i, each in enumerate(parts) if held and uses[each] > 1}
    names = {each: f"{{{name}}}" for name, each in (*frames.items(), *split.items(), *views.items())}
    writer = _Writer(parts | names, delta_rows, few, table_rows)
    rows = writer.one_part(writer.terms(terms))
    columns = tuple(name for name, _ in terms[0].output)
    text = _grouped(rows, columns, grouping) if grouping else _consolidated(rows, columns)
    kept = frozenset(name for name, each in frames.items() if uses[each] > 1 or name == TOGETHER)
    computed = {name: parts[each] for name, each in split.items()}
    computed |= {name: writer.computed(each) for name, each in views.items()}
    return SparkQuery(frames, computed, text, kept, held)


def _frames_read(terms: tuple[SparkTerm, ...], few: bool) -> tuple[dict[str, Frame], dict[Frame | Computed, str]]:
    """Name what is read, small frames together if there are few rows; return beside it how these are told apart."""
    found = ((frame, leaf.columns) for leaf in leaves_of(terms) for frame in leaf.frames)
    columns = {frame.read: columns for frame, columns in found if isinstance(frame, Frame)}
    frames = {f"frame{i}": each for i, each in enumerate(columns)}
    together = read_together(columns, TOGETHER) if few else None
    if together is None:
        return frames, {}
    frame, parts = together
    alone = {name: each for name, each in frames.items() if each not in parts}
    return alone | {TOGETHER: frame}, parts


def _count(terms: tuple[SparkTerm, ...], uses: Counter[Frame | Computed]) -> None:
    """Count how often each frame is used. One that is computed uses its changed rows twice, and all of them once."""
    for frame in _frames(terms):
        uses[frame] += 1
        if isinstance(frame, Computed) and uses[frame] == 1:
            _count((*frame.now, *frame.changed, *frame.changed), uses)


def _written_out(terms: tuple[SparkTerm, ...], known: dict[Computed, int]) -> int:
    """Count the reads of some terms if each result is computed again wherever it is used."""
    reads = 0
    for frame in _frames(terms):
        if isinstance(frame, Computed) and frame not in known:
            known[frame] = _written_out((*frame.now, *frame.changed, *frame.changed), known)
        reads += 1 + (known[frame] if isinstance(frame, Computed) else 0)
    return reads


def _innermost_first(terms: tuple[SparkTerm, ...]) -> Iterator[Computed]:
    for frame in _frames(terms):
        if isinstance(frame, Computed):
            yield from _innermost_first((*frame.now, *frame.changed))
            yield frame


def _frames(terms: tuple[SparkTerm, ...]) -> Iterator[Frame | Computed]:
    return (frame.read for term in terms for leaf in term.leaves for frame in leaf.frames)


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes terms over frames, which begin with so many changed rows, or with a whole table if that is None.

    `texts` name the frames, and what is computed once for several uses. Of `few` rows everything is joined and grouped
    in one task.
    """

    texts: Mapping[Frame | Computed, str]
    delta_rows: int | None
    few: bool
    table_rows: int

    def terms(self, terms: tuple[SparkTerm, ...]) -> str:
        return "\nUNION ALL\n".join(map(self.term, terms))

    def computed(self, computed: Computed) -> str:
        """Write an operation over the rows of its input, of both sides if its delta is asked for.

        Terms at the new frontier begin with whole tables.
        """
        columns = ", ".join(computed.columns)
        now, changed = replace(self, delta_rows=None).terms(computed.now), self.terms(computed.changed)
        if not changed:
            rows = NEW.format(side=SIDE, columns=columns, weight=WEIGHT, now=now)
            return computed.over.format(rows=self.one_part(rows))
        few = self.delta_rows is not None and self.delta_rows <= BROADCAST_ROWS
        both = BOTH.format(
            side=SIDE,
            columns=columns,
            weight=WEIGHT,
            hint="/*+ BROADCAST(k) */ " if few else "",
            now=now,
            changed=changed,
            same=" AND ".join(f"d.{key} <=> k.{key}" for key in computed.keys),
        )
        return computed.over.format(rows=self.one_part(both))

    def one_part(self, rows: str) -> str:
        """Put few rows into one partition, so that they need not be shuffled to be grouped."""
        return ONE_PART.format(rows=rows) if self.few else rows

    def term(self, term: SparkTerm) -> str:
        joined = self._leaf(term.leaves[0], 0)
        for i, leaf in enumerate(term.leaves[1:], 1):
            equal = (f"t{i}.{own} = t{other}.{column}" for own, other, column in term.keys[i])
            tests = " AND ".join([*equal, *(f"({test})" for test in term.tests[i])])
            joined += f"\n{'JOIN' if tests else 'CROSS JOIN'} {self._leaf(leaf, i)}" + (f" ON {tests}" if tests else "")
        return TERM.format(
            hint=self._hint(term),
            output="".join(f"{text} AS `{name}`, " for name, text in term.output),
            product=_product(term),
            weight=WEIGHT,
            joined=joined,
        )

    def _hint(self, term: SparkTerm) -> str:
        kept = ", ".join(f"t{i}" for i in self._kept_in_memory(term))
        return f"/*+ BROADCAST({kept}) */ " if kept else ""

    def _kept_in_memory(self, term: SparkTerm) -> list[int]:
        """List the leaves that every task keeps, so that nothing is shuffled: tables with fewer rows than the changes,
        which then pass by as they are read; else, as far as they fit, the changes themselves.

        Of few rows those of all tables are kept, which terms share, and the changes pass by. Of whole tables the small
        ones are, and the largest passes by.
        """
        if self.few:
            return [i for i, leaf in enumerate(term.leaves) if i > 0 and _is_bounded(leaf)]
        if len(term.leaves) == 1:
            return []
        if self.delta_rows is None:
            return _small_tables([leaf.rows for leaf in term.leaves], self.table_rows)
        changes, *tables = (leaf.rows for leaf in term.leaves)
        least = min(changes or 0, BROADCAST_ROWS)
        fewer = [i for i, rows in enumerate(tables, 1) if rows is not None and rows < least]
        few = self.delta_rows <= BROADCAST_ROWS and not term.leaves[0].multiplies
        leads = len(fewer) < len(tables) and few
        return [0, *fewer] if leads else fewer

    def _leaf(self, leaf: SparkLeaf, position: int) -> str:
        """Write a leaf of several frames as their union."""
        if len(leaf.frames) == 1:
            return f"{self._rows(leaf.frames[0])} AS t{position}"
        frames = "\nUNION ALL\n".join(self._frame(frame, leaf.columns) for frame in leaf.frames)
        return f"(\n{frames}\n) AS t{position}"

    def _frame(self, frame: Frame | Computed, columns: tuple[str, ...]) -> str:
        listed = "".join(f"{column}, " for column in columns)
        return f"SELECT {listed}{_weight(frame)} AS {WEIGHT} FROM {self._rows(frame)} AS f"

    def _rows(self, frame: Frame | Computed) -> str:
        if frame.read in self.texts:
            return self.texts[frame.read]
        assert isinstance(frame, Computed)
        return f"(\n{self.computed(frame)}\n)"


def _small_tables(rows: list[int | None], most: int) -> list[int]:
    """List which tables are small, without the largest one; the largest may be one of which nobody knows the rows."""
    small = [i for i, each in enumerate(rows) if each is not None and each <= most]
    if len(small) < len(rows):
        return small
    largest = max(small, key=lambda i: rows[i] or 0)
    return [i for i in small if i != largest]


def _is_bounded(leaf: SparkLeaf) -> bool:
    """Whether it has no more rows than are read for it: a join may have many times as many."""
    computed = [frame for frame in leaf.frames if isinstance(frame, Computed)]
    return all(len(term.leaves) == 1 for each in computed for term in (*each.now, *each.changed))


def _weight(frame: Frame | Computed, prefix: str = "") -> str:
    """Write the weight of a frame's rows, which for a table is not read: it would travel with each row."""
    sign = "-" if frame.negated else ""
    return f"CAST({sign}{prefix + WEIGHT if frame.weighted else 1} AS BIGINT)"


def _product(term: SparkTerm) -> str:
    factors = [
        _weight(leaf.frames[0], f"t{i}.") if len(leaf.frames) == 1 else f"t{i}.{WEIGHT}"
        for i, leaf in enumerate(term.leaves)
    ]
    return ("-" if term.negated else "") + " * ".join(factors)


def _consolidated(rows: str, columns: tuple[str, ...]) -> str:
    listed = "".join(f"`{column}`, " for column in columns)
    return CONSOLIDATED.format(columns=listed, weight=WEIGHT, rows=rows, by=_by(columns))


def _grouped(rows: str, columns: tuple[str, ...], grouping: SparkGrouping) -> str:
    """Take the aggregates of weighted rows; all values of the result are texts."""
    aggregates = [(name, f"CAST({sql} AS STRING)") for name, sql in grouping.aggregates]
    return GROUPED.format(
        items=", ".join(f"{text} AS `{name}`" for name, text in (*grouping.by, *aggregates)),
        rows=_consolidated(rows, columns) if grouping.consolidated else rows,
        by=_by(tuple(name for name, _ in grouping.by)),
    )


def _by(columns: tuple[str, ...]) -> str:
    return f"\nGROUP BY {', '.join(f'`{column}`' for column in columns)}" if columns else ""
