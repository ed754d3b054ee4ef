"""A stream table defined in Python, where its query is put together."""

import pytrickle

REGIONS = ("north", "south")


@pytrickle.stream_table(name="report", schedule="calculated")
def report() -> str:
    """Return a column for each region."""
    columns = ", ".join(f"sum(t.amount) FILTER (WHERE o.region = '{region}') AS {region}" for region in REGIONS)
    return f"SELECT {columns} FROM orders AS o JOIN line_totals AS t ON t.order_id = o.id"
