"""What a delta will take that was never computed: by the length of its SQL, and by PostgreSQL's own estimates."""

from dataclasses import dataclass

# Measured defaults, in seconds: per character of the SQL, for writing and planning it; and per unit of what PostgreSQL
# says a query costs. It takes the touched keys of a delta for many more than they are, so that a unit is worth less.
PER_CHARACTER = 1e-6
PER_UNIT_OF_DELTA = 1e-6
PER_UNIT_OF_WHOLE = 3e-6
# How far a measured whole refresh may move these units in either direction.
TRUSTED = 4.0


@dataclass(frozen=True, slots=True)
class Quote:
    """The length of a delta's SQL, and what PostgreSQL's planner says that it and the whole query cost, if asked.

    It may be longer where it is `at_least` as long: then it was not compiled. Its plan may be `kept`.
    """

    length: int = 0
    delta: float | None = None
    whole: float | None = None
    at_least: bool = False
    kept: bool = False

    @property
    def asked(self) -> bool:
        """Whether the planner was asked about the delta."""
        return self.delta is not None

    @property
    def planning(self) -> float:
        """Return the seconds that it takes to plan the delta, or to ask what it costs."""
        return PER_CHARACTER * self.length

    def of_whole(self) -> float | None:
        """Return the seconds in which the whole query is expected to be read."""
        return None if self.whole is None else PER_UNIT_OF_WHOLE * self.whole

    def of_delta(self, whole: float) -> float:
        """Return the seconds in which the delta is expected to be read, if the whole query is read in `whole` seconds.

        What planning it takes comes beside them; they are 0 where the planner was not asked.

        >>> Quote(length=10_000).of_delta(1.0)
        0.0
        >>> round(Quote(10_000, delta=5_000, whole=10_000).of_delta(0.03), 3)
        0.005
        >>> round(Quote(10_000, delta=5_000, whole=10_000).of_delta(0.06), 3)
        0.01
        """
        if self.delta is None:
            return 0.0
        expected = self.of_whole()
        slower = whole / expected if expected else 1.0
        return PER_UNIT_OF_DELTA * self.delta * min(max(slower, 1 / TRUSTED), TRUSTED)
