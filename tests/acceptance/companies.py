"""Who controls which company, directly or through others: the cycle that the tests of cycles play with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytrickle
from tests.acceptance.conftest import advance
from tests.conftest import Database
from tests.equivalence.local_engine import LocalEngine, local_client
from tests.equivalence.runs import disable_jit

SCHEMA = """
CREATE TABLE owners (company int NOT NULL, person int NOT NULL);
CREATE TABLE holdings (parent int NOT NULL, child int NOT NULL);
INSERT INTO owners VALUES (1, 100);
INSERT INTO holdings VALUES (1, 2), (2, 3), (3, 2);
"""
CONTROL = "SELECT company, person FROM owners UNION SELECT company, person FROM inherited"
INHERITED = "SELECT h.child AS company, c.person FROM holdings AS h JOIN control AS c ON c.company = h.parent"
EXPECTED = (
    "WITH RECURSIVE c AS (SELECT company, person FROM owners UNION"
    " SELECT h.child, c.person FROM holdings AS h JOIN c ON c.company = h.parent) SELECT * FROM c"
)


@dataclass(frozen=True)
class Group:
    """Who controls which company, directly or through others, as two stream tables that read each other."""

    db: Database
    pt: pytrickle.Client
    engine: LocalEngine

    def tick(self) -> dict[str, str]:
        return {r.stream_table.partition(".")[2]: r.action for r in self.pt.tick()}

    def rows(self, name: str = "control") -> set[tuple[Any, ...]]:
        rows = self.db.execute(f"TABLE {name}")
        assert len(set(rows)) == len(rows)
        return set(rows)

    def load(self, clock: str, *statements: str) -> None:
        """Run each statement and advance the source that it names, in one transaction."""
        with self.db.connect() as loader, loader.transaction():
            for statement in statements:
                loader.execute(statement.encode())
                advance(loader, statement.split()[2], clock)

    def complete_through(self, *names: str) -> set[str]:
        """Return the effective watermarks of the cycle, or of some of its stream tables."""
        query = "SELECT effective_watermark FROM pgtrickle.pgt_stream_tables WHERE pgt_name = ANY (%s)"
        return {f"{moment:%H:%M}" for (moment,) in self.db.execute(query, list(names or ("control", "inherited")))}

    def state(self) -> list[tuple[Any, ...]]:
        """Return all that a refresh which did nothing visible must leave as it was."""
        shown = "frontier_version, effective_watermark, data_timestamp"
        return [
            *self.db.execute(f"SELECT pgt_id, {shown} FROM pgtrickle.pgt_stream_tables ORDER BY 1"),
            *self.db.execute(
                "SELECT pgt_id, source_relid, frontier::text FROM pgtrickle.pgt_dependencies ORDER BY 1, 2"
            ),
            *self.db.execute("SELECT ctid::text, xmin::text, c::text FROM control AS c ORDER BY 1"),
            *self.db.execute("SELECT ctid::text, xmin::text, i::text FROM inherited AS i ORDER BY 1"),
        ]


def create(group: Group, **options: Any) -> None:
    group.pt.create_stream_table(
        "control", "SELECT DISTINCT company, person FROM owners", allow_circular=True, **options
    )
    group.pt.create_stream_table("inherited", INHERITED, allow_circular=True, **options)
    group.pt.alter_stream_table("control", query=CONTROL)


@contextmanager
def companies(db: Database) -> Iterator[Group]:
    """Create the tables, without stream tables."""
    disable_jit(db)
    with db.connect() as connection:
        connection.execute(SCHEMA)
    with local_client(db.dsn) as (client, engine):
        yield Group(db, client, engine)
