"""Tables on a screen: columns without lines."""

from rich.table import Table


def columns(*names: str) -> Table:
    """Return an empty table with these columns, which fold what is too long for them."""
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    for name in names:
        table.add_column(name, overflow="fold")
    return table
