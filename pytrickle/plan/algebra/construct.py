"""What operations make of the rows of a partition: a node for each construct of SQL that needs them together.

The expressions of a node are PostgreSQL text over the columns of ROW, which are the arguments of its operation.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

ROW = "d"
Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Construct:
    """A construct, under the name by which `explain` and reasons call it.

    All but Folded are keyed: d op(R) = op(NEW|K) - op(OLD|K), where K are the keys that dR touches.
    """

    label: ClassVar[str] = ""

    @property
    def name(self) -> str:
        """What it is called."""
        return self.label

    @property
    def linear(self) -> bool:
        """Whether it is its input, with its weights: d op(R) = op(dR), without keys or a result of its own."""
        return False

    @property
    def consolidated(self) -> bool:
        """Whether, though linear, it shows no row that others of its input take away."""
        return False

    @property
    def breaks_ties(self) -> bool:
        """Whether its own order breaks ties, which the user's text leaves open."""
        return False

    @property
    def ordering(self) -> Names:
        """The expressions by which rows are sorted, after the keys, before it is computed."""
        return ()

    @property
    def pushed_down(self) -> Names:
        """The arguments on which PostgreSQL moves conditions below it, where it shows its rows as they are."""
        return ()

    def columns(self, arguments: Names, keys: Names) -> Names:
        """Name the columns of the result; one that is named like an argument shows it unchanged."""
        return keys

    def entries(self, arguments: Names, keys: Names) -> Names:
        """Name the columns through which a condition on the result reaches the input."""
        return tuple(key for key in keys if key in self.columns(arguments, keys))

    def representatives(self, keys: Names) -> Names:
        """Name the columns that show one of several equal values."""
        return ()

    def depends_on_order(self, exact: bool) -> bool:
        """Whether the result may depend on the order of rows; `exact` says that equal arguments are the same text."""
        return not exact


@dataclass(frozen=True, slots=True)
class Distinct(Construct):
    """SELECT DISTINCT: each row once."""

    label = "distinct"

    def representatives(self, keys: Names) -> Names:
        """Name the columns of the row that stands for those that equal it."""
        return keys


@dataclass(frozen=True, slots=True)
class Domain(Construct):
    """The distinct values for which the rows around a subquery need it."""

    label = "domain"


@dataclass(frozen=True, slots=True)
class Exists(Construct):
    """The distinct keys that have a row; without keys one row, without content, if there is any.

    >>> Exists().columns((), ())
    ('one',)
    """

    label = "exists"

    def columns(self, arguments: Names, keys: Names) -> Names:
        """Name the keys."""
        return keys or ("one",)

    def depends_on_order(self, exact: bool) -> bool:
        """Which of several equal keys is kept shows nowhere."""
        return False


@dataclass(frozen=True, slots=True)
class Group(Construct):
    """GROUP BY the keys, with aggregate `calls`; without keys there is one group, even over no rows.

    `settled` says that some call sorts its rows further than the user's text does.

    >>> Group(("count(*)",)).columns(("k0",), ("k0",)), Group(()).columns((), ())
    (('k0', 'c0'), ('one',))
    """

    calls: Names
    settled: bool = False
    label = "aggregate"

    @property
    def breaks_ties(self) -> bool:
        """Whether the order of some call breaks ties."""
        return self.settled

    def columns(self, arguments: Names, keys: Names) -> Names:
        """Name the keys, then the calls."""
        return (*keys, *(f"c{i}" for i in range(len(self.calls)))) or ("one",)

    def representatives(self, keys: Names) -> Names:
        """Name the key that stands for those of its group."""
        return keys


@dataclass(frozen=True, slots=True)
class Window(Construct):
    """Window `functions` beside each row of a partition; the rows come sorted by `order`.

    `entered` are arguments by which all windows are partitioned, `partitioned` those that occur in their partitions.

    >>> Window(("rank() OVER (ORDER BY d.a0)",), ("d.a0",)).columns(("k0", "a0"), ("k0",))
    ('a0', 'w0')
    """

    functions: Names
    order: Names
    entered: Names = ()
    partitioned: Names = ()
    label = "window"

    @property
    def ordering(self) -> Names:
        """The order of the first window."""
        return self.order

    @property
    def pushed_down(self) -> Names:
        """What partitions are told apart by."""
        return self.partitioned

    def columns(self, arguments: Names, keys: Names) -> Names:
        """Name the arguments beside the keys, then the functions."""
        return (*arguments[len(keys) :], *(f"w{i}" for i in range(len(self.functions))))

    def entries(self, arguments: Names, keys: Names) -> Names:
        """Name what every window is partitioned by."""
        return self.entered

    def depends_on_order(self, exact: bool) -> bool:
        """Rows that tie for one window need not tie for another."""
        return True


@dataclass(frozen=True, slots=True)
class SetOperation(Construct):
    """UNION, INTERSECT or EXCEPT by how often two sides have a row, l and r times; the argument `side` is 0 or 1.

    INTERSECT ALL shows it min(l, r) times, EXCEPT ALL max(l - r, 0) times; without ALL they show it once, if l and r
    are positive, or if l is positive and r is zero.

    >>> SetOperation("except", distinct=False).name
    'except all'
    """

    operator: Literal["union", "intersect", "except"]
    distinct: bool

    @property
    def name(self) -> str:
        """What it is called."""
        return self.operator if self.distinct else f"{self.operator} all"

    def representatives(self, keys: Names) -> Names:
        """Name the columns of the row that stands for those that equal it."""
        return keys


@dataclass(frozen=True, slots=True)
class DistinctOn(Construct):
    """DISTINCT ON the keys: the first row for each, in an `order` over arguments; `shown` are its columns.

    `entered` are columns that show a key.
    """

    shown: Names
    order: Names
    entered: Names
    label = "distinct on"

    @property
    def breaks_ties(self) -> bool:
        """Rows that tie come in the order of their text."""
        return True

    @property
    def pushed_down(self) -> Names:
        """The keys that are shown."""
        return self.entered

    def columns(self, arguments: Names, keys: Names) -> Names:
        """Name what is shown."""
        return self.shown

    def entries(self, arguments: Names, keys: Names) -> Names:
        """Name the keys that are shown."""
        return self.entered


@dataclass(frozen=True, slots=True)
class FirstRows(Construct):
    """LIMIT and OFFSET for every key: the rows from the one after `offset` on, in an `order` over arguments.

    Without `limit` all of these; `with_ties` adds those that tie with the last one.
    """

    shown: Names
    order: Names
    limit: int | None
    offset: int
    with_ties: bool
    label = "limit"

    @property
    def breaks_ties(self) -> bool:
        """Rows that tie come in the order of their text."""
        return True

    def columns(self, arguments: Names, keys: Names) -> Names:
        """Name the keys, then what is shown."""
        return (*keys, *self.shown)


@dataclass(frozen=True, slots=True)
class Single(Construct):
    """The row of a scalar subquery for every key: its columns, and how many rows there are, `n`."""

    label = "scalar"

    def columns(self, arguments: Names, keys: Names) -> Names:
        """Name the keys, the columns and the number of rows."""
        return (*arguments, "n")


@dataclass(frozen=True, slots=True)
class Folded(Construct):
    """A sum of blocks as one leaf: d(R + S) = dR + dS. A `net` one shows no row that another block takes away."""

    net: bool = False
    label = "rows"

    @property
    def linear(self) -> bool:
        """A sum is linear."""
        return True

    @property
    def consolidated(self) -> bool:
        """Whether weights are added up before anything is computed from the rows."""
        return self.net

    def columns(self, arguments: Names, keys: Names) -> Names:
        """Name all columns."""
        return arguments

    def entries(self, arguments: Names, keys: Names) -> Names:
        """Name all columns."""
        return arguments

    def depends_on_order(self, exact: bool) -> bool:
        """It shows every row."""
        return False
