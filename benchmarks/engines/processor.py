"""The processor time of a PostgreSQL server: of its first process and all that it has started, living or not."""

import os
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
USER = 11
# utime, stime, and those of the children that were waited for.
FIELDS = 4


def processor_seconds(postmaster: int) -> float:
    """Return the seconds that the server's processes have used so far; a backend that ends hands on its own."""
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    return sum(map(_used, (postmaster, *map(int, children)))) / TICKS


def _used(pid: int) -> int:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0
    return sum(map(int, stat.rpartition(")")[2].split()[USER : USER + FIELDS]))
