"""A row as often as its weight says, in a way from which PostgreSQL expects it about once."""

COPIES = "SELECT pgt_n FROM generate_series(1, {times}) AS e (pgt_n) LIMIT {limit}"
LIMITED = "LATERAL (SELECT pgt_n FROM (SELECT pgt_n FROM ({copies}) AS e LIMIT {limit}) AS e LIMIT {limit}) AS e"


def copies(times: str) -> str:
    """Write an item of a FROM clause that gives so many rows, named e (pgt_n); none for a number below one.

    PostgreSQL expects a thousand rows of a series whose end it does not know, and would plan all that follows for as
    many; of a limit that it does not know it expects a tenth. After three of them it expects a single row.
    """
    # A limit must not be negative.
    limit = f"greatest({times}, 0)"
    return LIMITED.format(copies=COPIES.format(times=times, limit=limit), limit=limit)
