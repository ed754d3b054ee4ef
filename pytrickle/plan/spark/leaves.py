"""What Spark joins: terms over leaves, whose rows are read through JDBC or computed from further terms."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from pytrickle.plan.algebra.relation import Version

# Fewer rows are joined and grouped by one task sooner than Spark compiles and schedules several.
FEW_ROWS = 200_000

Keys = tuple[tuple[tuple[str, int, str], ...], ...]
Tests = tuple[tuple[str, ...], ...]
Output = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """One JDBC read of one source, or of one operation, at one version: columns c<i> and the weight.

    With `parts` it covers a table of so many `pages`, and is split into ranges of ctid; if it is `looked_up` instead,
    an index leads from the changes to its rows. Rows that are not `weighted` count once each. `left` says what
    PostgreSQL computes before it is read, beyond the rows of one source, and why Spark does not. `rows` is how many
    are expected, None where nobody knows.
    """

    sql: str
    pages: int = 0
    parts: int = 0
    weighted: bool = True
    negated: bool = False
    looked_up: bool = False
    left: str = ""
    rows: int | None = field(default=None, compare=False)

    @property
    def read(self) -> "Frame":
        """What is read, whichever sign its rows get then."""
        return replace(self, negated=False)


@dataclass(frozen=True, slots=True)
class Computed:
    """The result of an operation, or its delta, that Spark computes: columns c<i> and the weight.

    `now` are the terms of its input at the new frontier, `changed` those of the input's delta, if its delta is asked
    for: then only rows that agree with a changed one in the columns `keys` count. `columns` are those of the input.
    `over` has a place for such rows, each with its side: 1 for the new state, -1 for the old one.
    """

    alias: str
    version: Version
    now: tuple["SparkTerm", ...]
    changed: tuple["SparkTerm", ...]
    keys: tuple[str, ...]
    columns: tuple[str, ...]
    over: str
    negated: bool = False
    weighted: bool = True

    @property
    def read(self) -> "Computed":
        """What is computed, whichever sign its rows get then."""
        return replace(self, negated=False)


@dataclass(frozen=True, slots=True)
class SparkLeaf:
    """An input of a Spark join: the union of some frames, all of which have these columns beside the weight.

    `rows` is how many are expected, None where nobody knows. If it `multiplies`, changes are in it, joined already.
    """

    frames: tuple[Frame | Computed, ...]
    columns: tuple[str, ...]
    rows: int | None = None
    multiplies: bool = False


@dataclass(frozen=True, slots=True)
class SparkTerm:
    """Inputs joined in order. `keys[i]` pairs columns of input i with (earlier input, column), `tests[i]` are further
    conditions between it and earlier ones; `output` writes the columns of the result over t0, t1 and so on.

    The weights of a `negated` term change sign. From the leaves with the aliases `reached` only the rows that the delta
    joins are read. PostgreSQL joins leaves that are `together`.
    """

    leaves: tuple[SparkLeaf, ...]
    keys: Keys
    tests: Tests
    output: Output
    negated: bool = False
    reached: frozenset[str] = frozenset()
    together: tuple[frozenset[str], ...] = ()


def computed_in(terms: tuple[SparkTerm, ...]) -> Iterator[Computed]:
    """List what Spark computes for some terms, at any depth."""
    for term in terms:
        for leaf in term.leaves:
            for frame in leaf.frames:
                if isinstance(frame, Computed):
                    yield frame
                    yield from computed_in((*frame.now, *frame.changed))


def only_add(terms: tuple[SparkTerm, ...]) -> bool:
    """Whether no row of some terms takes back another one, as it is where tables are read that did not change since."""
    frames = (frame for term in terms for leaf in term.leaves for frame in leaf.frames)
    return not any(term.negated for term in terms) and all(map(_only_adds, frames))


def _only_adds(frame: Frame | Computed) -> bool:
    weighted = bool(frame.changed) if isinstance(frame, Computed) else frame.weighted
    return not (weighted or frame.negated)


def reads_few(terms: tuple[SparkTerm, ...]) -> bool:
    """Whether some terms are expected to read few rows and pages, each frame once, however many terms use it."""
    frames = {frame.read for frame in reads_of(terms)}
    known = [frame.rows for frame in frames if frame.rows is not None and frame.parts <= 1]
    return len(known) == len(frames) and sum(known) < FEW_ROWS


@dataclass(frozen=True, slots=True)
class NothingToJoin:
    """Terms of which PostgreSQL computes everything; `why` says of which parts it has to, if it has to of any."""

    why: str = "Spark has nothing to join"

    @classmethod
    def of(cls, terms: tuple[SparkTerm, ...]) -> "NothingToJoin":
        """List the parts of some terms that Spark does not compute."""
        left = {frame.left for frame in reads_of(terms)} - {""}
        return cls(", ".join(sorted(left))) if left else cls()

    def __bool__(self) -> Literal[False]:
        """There are no terms."""
        return False


def reads_of(terms: tuple[SparkTerm, ...]) -> Iterator[Frame]:
    """List what is read through JDBC for some terms, at any depth."""
    for leaf in leaves_of(terms):
        yield from (frame for frame in leaf.frames if isinstance(frame, Frame))


def leaves_of(terms: tuple[SparkTerm, ...]) -> Iterator[SparkLeaf]:
    """List the leaves of some terms, at any depth."""
    below = tuple(each for computed in computed_in(terms) for each in (*computed.now, *computed.changed))
    for term in (*terms, *below):
        yield from term.leaves
