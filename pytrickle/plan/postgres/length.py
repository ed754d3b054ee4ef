"""How long the SQL of a delta may be."""

from pytrickle.errors import NotDifferentiable

# To plan a delta of as many characters PostgreSQL takes seconds, and half a gigabyte of memory. Subqueries that are
# each compared with a changed total, or tied to others by NOT EXISTS, multiply where they are joined.
MOST_CHARACTERS = 500_000
TOO_LONG = f"the SQL of its delta would have more than {MOST_CHARACTERS} characters"


class DeltaTooLong(NotDifferentiable):
    """A delta would take PostgreSQL longer to plan than the whole query takes to run."""

    def __init__(self) -> None:
        super().__init__(TOO_LONG)


def refuse_length(characters: int) -> None:
    """Raise DeltaTooLong for more characters than a delta may have."""
    if characters > MOST_CHARACTERS:
        raise DeltaTooLong
