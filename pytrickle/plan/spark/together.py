"""Small reads as one: the rows of several frames side by side, each with a mark in the column of its frame.

Spark asks for the columns of every read, opens a connection, and plans and schedules it, which takes longer than a few
thousand rows.
"""

from collections.abc import Mapping

from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.spark.leaves import Computed, Frame

# A larger table is read by a connection of its own, beside the others.
SMALL_ROWS = 20_000
# PostgreSQL's limit is 1,664.
MOST_COLUMNS = 1_000

ONE = "(SELECT {items} FROM (\n{sql}\n) AS r) AS r{number}"
# No row of one frame finds one of the next, so that each comes by itself, and PostgreSQL types what the others lack.
BESIDE = "\nFULL JOIN {one} ON FALSE"
PART = "(SELECT {items} FROM {{{name}}} WHERE {mark} = 1)"
MARK = "r{number}"

Parts = dict[Frame | Computed, str]


def read_together(frames: Mapping[Frame, tuple[str, ...]], name: str) -> tuple[Frame, Parts] | None:
    """Write one read for all small ones among some frames, given with their columns; None if that would be no gain.

    Return beside it how Spark takes the rows of each frame from that of this name.
    """
    small = {frame: _columns(frame, columns) for frame, columns in frames.items() if _is_small(frame)}
    if len(small) < 2 or sum(map(len, small.values())) + len(small) > MOST_COLUMNS:
        return None
    ones = [_one(i, frame, columns) for i, (frame, columns) in enumerate(small.items())]
    joined = ones[0] + "".join(BESIDE.format(one=one) for one in ones[1:])
    rows = sum(frame.rows or 0 for frame in small)
    parts: Parts = {frame: _part(i, columns, name) for i, (frame, columns) in enumerate(small.items())}
    return Frame(f"SELECT * FROM {joined}", rows=rows), parts


def _columns(frame: Frame, columns: tuple[str, ...]) -> tuple[str, ...]:
    """List the columns of a frame, the weight with them if it has one."""
    return (*columns, WEIGHT) if frame.weighted else columns


def _is_small(frame: Frame) -> bool:
    """Whether it is read without parts and without an index of its own, and has few rows."""
    return frame.rows is not None and frame.rows <= SMALL_ROWS and frame.parts <= 1 and not frame.looked_up


def _one(number: int, frame: Frame, columns: tuple[str, ...]) -> str:
    mark = MARK.format(number=number)
    items = ", ".join([f"1 AS {mark}", *(f"r.{column} AS {mark}_{column}" for column in columns)])
    return ONE.format(items=items, sql=frame.sql, number=number)


def _part(number: int, columns: tuple[str, ...], name: str) -> str:
    mark = MARK.format(number=number)
    items = ", ".join(f"{mark}_{column} AS {column}" for column in columns) or "1"
    return PART.format(items=items, name=name, mark=mark)
