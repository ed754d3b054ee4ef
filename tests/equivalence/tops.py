"""Random queries that keep some rows in an order: LIMIT and OFFSET, WITH TIES, DISTINCT ON."""

from tests.equivalence.expressions import outputs
from tests.equivalence.joins import source
from tests.equivalence.writer import Query, Writer, chosen


def limited(writer: Writer) -> Query:
    """Keep a few rows of a total order."""
    found = source(writer)
    offset = writer.rng.choice(("", "", " OFFSET 1", " OFFSET 3"))
    limit = offset if offset and writer.chance(0.2) else f" LIMIT {writer.rng.randint(1, 5)}{offset}"
    rest = f"{found.sql()} ORDER BY {writer.total_order(found.scope)}{limit}"
    return chosen(writer.select("SELECT", outputs(writer, found.scope, 3), rest))


def with_ties(writer: Writer) -> Query:
    """Keep a few rows and all that tie with the last."""
    found = source(writer)
    order = writer.ordered(writer.rng.choice(found.scope).name)
    rest = f"{found.sql()} ORDER BY {order} FETCH FIRST {writer.rng.randint(1, 3)} ROWS WITH TIES"
    return writer.select("SELECT", outputs(writer, found.scope, 3), rest)


def distinct_on(writer: Writer) -> Query:
    """Keep the first row of every group."""
    found = source(writer)
    keys = writer.rng.sample(found.scope, min(len(found.scope), writer.rng.choice((1, 1, 2))))
    listed = ", ".join(column.name for column in keys)
    order = ", ".join((*(writer.ordered(column.name) for column in keys), writer.total_order(found.scope)))
    rest = f"{found.sql()} ORDER BY {order}"
    return chosen(writer.select(f"SELECT DISTINCT ON ({listed})", outputs(writer, found.scope, 3), rest))
