"""The TPC-H tables of one size: filled, changed and tidied inside PostgreSQL."""

from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql

HERE = Path(__file__).parent
# The tables and queries that the tests compare, too.
SHARED = HERE.parents[1] / "tests" / "tpch"
CHANGED_TABLES = ("lineitem", "orders", "partsupp", "part", "customer", "supplier", "nation")
# What autovacuum would vacuum or analyze, by its settings.
DUE = """
SELECT s.relid::regclass::text
FROM pg_stat_user_tables AS s JOIN pg_class AS c ON c.oid = s.relid
WHERE (c.relnamespace = to_regnamespace('pgtrickle_changes')
        OR (c.relname = ANY (%s) AND c.relnamespace = 'public'::regnamespace)) AND (
    s.n_dead_tup > current_setting('autovacuum_vacuum_threshold')::int
        + current_setting('autovacuum_vacuum_scale_factor')::float8 * c.reltuples
    OR s.n_mod_since_analyze > current_setting('autovacuum_analyze_threshold')::int
        + current_setting('autovacuum_analyze_scale_factor')::float8 * c.reltuples)
"""


@dataclass(frozen=True, slots=True)
class Database:
    """A TPC-H database with so many orders, and the specification's proportions (4.2.5.1)."""

    connection: psycopg.Connection
    orders: int

    def create(self) -> None:
        """Create, fill and index the tables, which this session then finds by their names."""
        self.connection.execute("SET search_path TO DEFAULT")
        parameters = {
            "orders": self.orders,
            "customers": max(self.orders // 10, 30),
            "parts": max(self.orders * 2 // 15, 40),
            "suppliers": max(self.orders // 150, 20),
        }
        for script in (SHARED / "schema.sql", HERE / "generator.sql", HERE / "fill.sql", SHARED / "keys.sql"):
            self._run(script, **parameters)
        self.connection.execute("VACUUM (ANALYZE)")

    def sizes(self) -> dict[str, int]:
        """Count the rows of the tables that are changed."""
        return {table: self._count(f"SELECT count(*) FROM {table}") for table in CHANGED_TABLES}

    def change(self, percent: float) -> int:
        """Change so many percent of the rows in one transaction; return how many that were."""
        with self.connection.transaction():
            counted = self._run(HERE / "changes.sql", percent=percent)
        return counted + self._count("SELECT coalesce(sum(1 + lines), 0) FROM placed")

    def tidy(self) -> None:
        """Do at once what autovacuum and the checkpointer would do some time, so that they do not disturb a figure.

        Autovacuum leaves a table alone until a share of its rows has changed, so that plans of statements that are
        prepared last until then. Whoever reads changed rows first notes on their pages that they are committed: a read
        of all tables does that here, for neither way shall pay for the other.
        """
        self.connection.execute("SELECT pg_stat_force_next_flush()")
        for (table,) in self.connection.execute(DUE, [list(CHANGED_TABLES)]).fetchall():
            self.connection.execute(f"VACUUM (ANALYZE) {table}")
        for table in CHANGED_TABLES:
            self._count(f"SELECT count(*) FROM {table}")
        self.connection.execute("CHECKPOINT")

    def _run(self, script: Path, **parameters: float) -> int:
        """Run the statements of a file; return how many rows they updated, deleted and inserted."""
        literals = {name: sql.Literal(value) for name, value in parameters.items()}
        cursor, changed = self.connection.execute(sql.SQL(script.read_text()).format(**literals)), 0
        while True:
            verb, _, count = (cursor.statusmessage or "").partition(" ")
            if verb in ("INSERT", "UPDATE", "DELETE"):
                changed += int(count.split()[-1])
            if not cursor.nextset():
                return changed

    def _count(self, query: str) -> int:
        row = self.connection.execute(query).fetchone()
        return int(row[0]) if row else 0
