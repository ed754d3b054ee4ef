"""What the catalog says of a stream table's query and sources, as values that the planner reads."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

from pytrickle.cut import Cut, GivenCut
from pytrickle.sql_name import sql_name

# Of more changes it takes longer to find out which cancel each other than it mostly saves.
MOST_NETTED = 1_000


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column of a source: its name and types, whether equality is bytewise, and whether it may be NULL."""

    name: str
    type_name: str
    base_type: str
    deterministic: bool
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Source:
    """A relation that a defining query reads.

    `indexed` are the leading columns of its valid btree indexes, `unique` the columns of each unique one of them.
    `keys` are columns in which no two rows had the same values at any moment that a refresh may read.
    """

    relid: int
    schema: str
    name: str
    kind: str
    columns: tuple[SourceColumn, ...]
    used: tuple[str, ...]
    buffer: str | None
    indexed: frozenset[str]
    pages: int = field(compare=False)
    estimated_rows: int = field(compare=False)
    unique: frozenset[frozenset[str]] = frozenset()
    keys: frozenset[frozenset[str]] = frozenset()

    @property
    def captured(self) -> bool:
        """Whether changes of this source are logged in a change buffer."""
        return self.buffer is not None

    def column(self, name: str) -> SourceColumn | None:
        """Find a column by name."""
        return next((column for column in self.columns if column.name == name), None)


@dataclass(frozen=True, slots=True)
class View:
    """An ordinary view below the defining query, with its canonical text, or a stream table that is read as one.

    What a stream table has `stored` is not what its text says of a past moment, even where no source has changed since.
    """

    schema: str
    name: str
    text: str
    stored: bool = False


@dataclass(frozen=True, slots=True)
class Definition:
    """The defining query of one stream table, as PostgreSQL prints it, and all that it depends on.

    - `columns`: those of the stream table, as (name, type) pairs.
    - `aggregates`: the names of all aggregate functions in the query and its views.
    - `set_returning`: the names of all functions there that return sets, with their schema unless that is PostgreSQL's.
    - `full_reason`: why the database already knows that only FULL is possible.
    - `bytewise_query`: whether no collation that the query names, or a type in it, holds different texts for equal.
    - `search_path`: that of its creator, as quoted schemas.
    - `plain_names`: whether all names in the query are PostgreSQL's own.
    - `wrapped`: whether the texts call functions by wrappers that set the path.
    - `needs_path`: why the rows are only right where the path is set around everything, or why the text means another
      query. Then no text is used, but the hidden view, in which every name is settled.
    - `hidden_view`: the view that keeps the query as PostgreSQL understood it when it was created, as quoted names.
    """

    pgt_id: int
    schema: str
    name: str
    text: str
    views: tuple[View, ...]
    sources: tuple[Source, ...]
    columns: tuple[tuple[str, str], ...]
    aggregates: frozenset[str]
    set_returning: frozenset[str]
    full_reason: str | None
    bytewise_query: bool = True
    search_path: str = "pg_catalog"
    wrapped: bool = False
    plain_names: bool = False
    needs_path: str | None = None
    hidden_view: str = ""

    @property
    def qualified_name(self) -> str:
        """The stream table's name as users write it."""
        return sql_name(self.schema, self.name)

    @property
    def bytewise(self) -> bool:
        """Whether no collation in use holds different texts for equal."""
        return self.bytewise_query and all(column.deterministic for source in self.sources for column in source.columns)

    def source(self, relid: int) -> Source:
        """Find a source by its identifier."""
        return next(source for source in self.sources if source.relid == relid)


@dataclass(frozen=True, slots=True)
class Came:
    """When the oldest and the newest of some changes came: by their commits, or when they were captured before that."""

    oldest: datetime
    newest: datetime
    by_commit: bool

    @classmethod
    def together(cls, parts: Iterable["Came | None"]) -> "Came | None":
        """Return when the changes of all parts came that is known; None where nothing is."""
        known = [part for part in parts if part is not None]
        if not known:
            return None
        oldest, newest = min(part.oldest for part in known), max(part.newest for part in known)
        return cls(oldest, newest, all(part.by_commit for part in known))


def size_class(delta_rows: int) -> int:
    """Return the class of a number of changes: each is four times as wide as the one before.

    >>> [size_class(rows) for rows in (0, 1, 3, 4, 15, 16, 1_000_000)]
    [0, 0, 0, 1, 1, 2, 9]
    """
    return (max(delta_rows, 1).bit_length() - 1) // 2


@dataclass(frozen=True, slots=True)
class ChangeRange:
    """How far one source is read: from the frontier `old` (None before the first load) to `new`.

    `new` is None when everything that the snapshot shows is read. `delta_rows` and `future_rows` count the buffered
    changes between the frontiers and beyond the new one, `pages` are those of the change buffer, `came` says when the
    changes between the frontiers did. `idle_in` are the columns in which those are known to cancel each other, all of
    them; None where that is not known.
    """

    relid: int
    old: Cut | None
    new: Cut | None
    delta_rows: int = 0
    future_rows: int = 0
    pages: int = 0
    came: Came | None = None
    idle_in: tuple[str, ...] | None = None

    @property
    def changed(self) -> bool:
        """Whether anything comes of the changes between the frontiers, as far as is known."""
        return self.delta_rows > 0 and self.idle_in is None

    @property
    def past_rows(self) -> int:
        """Buffered changes that the old frontier does not cover; none where they are known to cancel each other."""
        idle = self.idle_in is not None and not self.future_rows
        return 0 if idle else self.delta_rows + self.future_rows

    @property
    def past_class(self) -> int:
        """The class of their number: about as many changes, from one refresh to the next, are of one."""
        return size_class(self.past_rows)

    def read_with(self, columns: tuple[str, ...]) -> "ChangeRange":
        """Return the range for a reader of some columns: that changes cancel each other in others tells it nothing."""
        return self if self.idle_in in {None, columns} else replace(self, idle_in=None)

    @property
    def given_old(self) -> GivenCut:
        """The old frontier as a statement is given it."""
        return GivenCut(f"c{self.relid}_old")

    @property
    def given_new(self) -> GivenCut:
        """The new frontier as a statement is given it."""
        return GivenCut(f"c{self.relid}_new")

    def given(self) -> dict[str, str | None]:
        """Return the parameters for the frontiers that there are."""
        old = self.given_old.given(self.old) if self.old else {}
        return old | self.given_new.given(self.new) if self.new else old


# What was given up is taken to last so many times longer than was waited: longer than the refresh that set the limit.
GIVEN_UP = 10


@dataclass(frozen=True, slots=True)
class PastRefresh:
    """A completed refresh: whether it computed the whole table, how many seconds it took, and whether on Spark.

    One with a `limit` was given up after so many seconds; `seconds` is what it would have taken at least, as a guess.
    """

    whole: bool
    delta_rows: int
    seconds: float
    spark: bool = False
    limit: float | None = None

    @classmethod
    def given_up(cls, whole: bool, delta_rows: int, limit: float) -> "PastRefresh":
        """Return what is known of one that was given up after so many seconds."""
        return cls(whole, delta_rows, GIVEN_UP * limit, limit=limit)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of a stream table's size and past; `refreshes` are newest first.

    The sizes are PostgreSQL's estimates, by the size of the files where a table was never analyzed. `first_load` are
    the seconds of the newest refresh that began from nothing, which Spark may have `loaded_by_spark`; in `reading` of
    them the query was read, None where one statement read and stored it. `quick` are the seconds that the quickest
    tenth of the refreshes of any stream table took lately, None where too few are known. `kept_rows` are those of the
    largest table that its refreshes maintain, shown or hidden. Of each kind of refreshes that was not completed since,
    `given_up` has the newest that took too long, or what it would have taken, and `made_since` says how many were made
    after the newest of all these.
    """

    source_rows: int
    stored_rows: int
    refreshes: tuple[PastRefresh, ...] = ()
    first_load: float | None = None
    loaded_by_spark: bool = True
    quick: float | None = None
    kept_rows: int = 0
    reading: float | None = None
    given_up: tuple[PastRefresh, ...] = ()
    made_since: int = 0

    @property
    def largest_rows(self) -> int:
        """The rows of the largest table that a whole refresh compares."""
        return max(self.stored_rows, self.kept_rows)
