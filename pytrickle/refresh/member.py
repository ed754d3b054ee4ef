"""One stream table among others that are refreshed with it or not at all: its goal, what was done, and blame."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from pytrickle.apply.commitment import Committed
from pytrickle.catalog.stream_table import StreamTable
from pytrickle.database import translate_errors
from pytrickle.defects import defect
from pytrickle.errors import PytrickleError
from pytrickle.refresh.values import Goal, RefreshResult

Done = tuple[RefreshResult, Committed | None]
GoalOf = Callable[[StreamTable, Mapping[int, str]], Goal]


class MemberFailed(Exception):
    """One member of a unit could not be refreshed, so none was."""

    def __init__(self, table: StreamTable, error: PytrickleError) -> None:
        super().__init__(str(error))
        self.table = table
        self.error = error


@contextmanager
def blamed_on(table: StreamTable) -> Iterator[None]:
    """Raise what makes a refresh fail as MemberFailed."""
    try:
        with translate_errors():
            yield
    except MemberFailed:
        raise
    except PytrickleError as error:
        raise MemberFailed(table, error) from error
    except Exception as error:
        raise MemberFailed(table, defect(f"refreshing {table.name}", error)) from error
