"""The roles of an attack: who owns the catalog, who is a member, who loads, and who is a stranger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from pytrickle.catalog import install as migrate
from tests.conftest import Database

Session = psycopg.Connection[Any]
ORDERS = "CREATE TABLE orders (id integer PRIMARY KEY, amount integer, at timestamptz)"


def owner_of_a_catalog(db: Database, name: str) -> Session:
    """Install the catalog anew as a role that is nothing else, and return a session of it."""
    db.create_role(name)
    migrate.uninstall(db.connect())
    db.execute(f"GRANT ALL ON SCHEMA public TO {name}")
    database = sql.Identifier(db.value("SELECT current_database()"))
    db.execute(sql.SQL("GRANT CREATE ON DATABASE {} TO {}").format(database, sql.Identifier(name)).as_string())
    session = db.connect(user=name)
    migrate.install(session)
    return session


@dataclass
class House:
    """A database whose catalog and table `orders` belong to `etl`; others are strangers but for what is granted.

    `etl` is a session of the owner, `owner` is its name.
    """

    db: Database
    etl: Session
    owner: str = "etl"

    @property
    def refresher(self) -> str:
        """Where the owner connects, who does not wait longer than it takes to be sure that somebody holds him."""
        return make_conninfo(self.db.dsn, user=self.owner, options="-c lock_timeout=5s")

    def session(self, role: str, *grants: str, **options: Any) -> Session:
        """Create a role if it is new, grant it something, and open a session of it."""
        if not self.db.value("SELECT to_regrole(%s) IS NOT NULL", role):
            self.db.create_role(role)
            self.db.execute(f"CREATE SCHEMA {role} AUTHORIZATION {role}")
        for grant in grants:
            self.db.execute(f"GRANT {grant} TO {role}")
        return self.db.connect(user=role, **options)


def ask(session: Session, query: str, *parameters: Any) -> list[tuple[Any, ...]]:
    """Run a statement; return its rows, or nothing where it has none."""
    cursor = session.execute(query.encode(), parameters or None)
    return cursor.fetchall() if cursor.description else []
