"""A table of people, some of them secret, with policies; and the roles that own, read and refresh it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytrickle
from tests.conftest import Database
from tests.equivalence.local_engine import local_client

# hr owns the table; clerk may read it, but the policy hides the secret ones; auditor sees them all.
WORLD = """
GRANT CREATE ON SCHEMA public TO hr, clerk, auditor;
ALTER ROLE auditor BYPASSRLS;
CREATE TABLE people (id integer, name text, secret boolean DEFAULT true);
INSERT INTO people VALUES (1, 'Ann', false), (2, 'Ben', true);
ALTER TABLE people OWNER TO hr;
GRANT SELECT ON people TO clerk, auditor;
CREATE POLICY open_ones ON people USING (NOT secret);
CREATE TABLE rooms (id integer, person integer);
INSERT INTO rooms VALUES (10, 1), (20, 2);
GRANT SELECT ON rooms TO clerk, auditor;
"""


@dataclass
class Staff:
    """The world with a client whose ticks remember what they looked at. `last` numbers the people."""

    db: Database
    client: pytrickle.Client
    last: int = 2
    errors: dict[str, str] = field(default_factory=dict)

    def view(self, name: str, owner: str, query: str, options: str = "") -> None:
        """Create a view that belongs to a role."""
        self.db.execute(f"CREATE VIEW {name} {options} AS {query}")
        self.db.execute(f"ALTER VIEW {name} OWNER TO {owner}")

    def hire(self) -> None:
        """Insert a secret person."""
        self.last += 1
        self.db.execute("INSERT INTO people (id, name) VALUES (%s, 'somebody')", self.last)

    def tick(self) -> dict[str, str]:
        """Tick, whatever was to be retried later; return the actions by unqualified name."""
        self.db.execute("UPDATE pgtrickle.pgt_stream_tables SET retry_at = NULL")
        results = {result.stream_table.rpartition(".")[2]: result for result in self.client.tick()}
        self.errors = {name: result.error for name, result in results.items() if result.error}
        return {name: str(result.action) for name, result in results.items()}

    def seen(self, role: str, query: str) -> list[tuple[object, ...]]:
        """Return what a role sees by a query."""
        connection = self.db.connect()
        connection.execute(f"SET ROLE {role}".encode())
        return sorted(connection.execute(query.encode()).fetchall())


@contextmanager
def staff(db: Database, user: str = "") -> Iterator[Staff]:
    """Build the world; its ticks and creations are those of `user`, or of the superuser."""
    for role in ("hr", "clerk", "auditor"):
        db.create_role(role)
    db.execute(WORLD)
    with local_client(f"{db.dsn}?user={user}" if user else db.dsn) as (client, _):
        yield Staff(db, client)
