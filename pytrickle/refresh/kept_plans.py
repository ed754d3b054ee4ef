"""Which statements PostgreSQL keeps a plan of, so that planning one for the first time is not taken for reading.

Without a plan that is kept it has to be told of many changes before it joins them.
"""

from dataclasses import dataclass, field
from time import monotonic
from weakref import WeakKeyDictionary

import psycopg

from pytrickle.apply.few_rows import answered, ask_few
from pytrickle.catalog.buffer_statistics import WORTH_ANALYZING
from pytrickle.database import pipelined
from pytrickle.plan.refresh_plan import FEW_CHANGES, FewRead

# A kept plan takes up to a hundred bytes of the server's memory for each character of its statement.
MOST_CHARACTERS = 1_000_000
# To plan a statement of so many characters takes longer than to begin a refresh anew.
LONG = 8_000


@dataclass(slots=True)
class KeptPlans:
    """The lengths of the statements that were planned on each connection, which live as long as that."""

    lengths: WeakKeyDictionary[psycopg.Connection, dict[str, int]] = field(default_factory=WeakKeyDictionary)

    def make(self, connection: psycopg.Connection, few: FewRead) -> float:
        """Have PostgreSQL plan a long statement whose plan it keeps, unless it has; return the seconds that this took.

        Nothing is read. Where the plans would take too much memory, all that were kept are dropped.
        """
        known = self.lengths.setdefault(connection, {})
        if not few.keeps_plan or few.length < LONG or few.rows in known:
            return 0.0
        began = monotonic()
        if known and sum(known.values()) + few.length > MOST_CHARACTERS:
            connection.execute("DEALLOCATE ALL")
            known.clear()
        with pipelined(connection):
            answered(few, ask_few(connection, few, most_changes=0))
        known[few.rows] = few.length
        return monotonic() - began


def too_many_untold(few: FewRead | None) -> int:
    """Return from how many changes on PostgreSQL has to be told of them before it joins them."""
    return FEW_CHANGES + 1 if few is not None and few.keeps_plan else WORTH_ANALYZING
