"""How long the SQL of a delta may be."""

from pytrickle.errors import DeltaTooLong

# To plan a delta of as many characters PostgreSQL takes seconds, and half a gigabyte of memory. Subqueries that are
# each compared with a changed total, or tied to others by NOT EXISTS, multiply where they are joined.
MOST_CHARACTERS = 500_000
TOO_LONG = f"the SQL of its delta would have more than {MOST_CHARACTERS} characters"


def refuse_length(characters: int) -> None:
    """Raise DeltaTooLong for more characters than a delta may have."""
    if characters > MOST_CHARACTERS:
        raise DeltaTooLong(TOO_LONG)
