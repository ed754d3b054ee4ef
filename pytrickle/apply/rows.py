"""Z-set application: delete n copies of a row for weight -n, insert n for weight +n."""

from dataclasses import dataclass

import psycopg

from pytrickle.apply.staged_rows import CHANGES, create_like, index_lookups, run
from pytrickle.errors import StreamTableDrifted
from pytrickle.plan.analysis import Analysis
from pytrickle.plan.postgres.aggregate_state import row_hash
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.sql.dialect import quote


@dataclass(frozen=True, slots=True)
class Storage:
    """A stream table as the target of changes; columns and hashed columns are quoted names."""

    name: str
    table: str
    columns: tuple[str, ...]
    hashed: tuple[str, ...]

    @classmethod
    def of(cls, shape: Analysis, table: str | None = None) -> "Storage":
        """Describe a stream table's storage, or another table with the same columns."""
        definition = shape.definition
        own = f"{quote(definition.schema)}.{quote(definition.name)}"
        columns = tuple(quote(name) for name, _ in definition.columns)
        return cls(definition.qualified_name, table or own, columns, tuple(quote(name) for name in shape.hashed))

    def column_list(self, alias: str = "") -> str:
        """Write the columns, qualified by an alias if there is one."""
        prefix = f"{alias}." if alias else ""
        return ", ".join(prefix + column for column in self.columns)

    def weighted(self, weight: str, alias: str = "") -> str:
        """Write the columns, of which there may be none, and the weight."""
        return ", ".join(filter(None, (self.column_list(alias), f"{weight} AS {WEIGHT}")))

    def filled_from(self, query: str) -> str:
        """Write how the rows of a query, which has the columns, are inserted."""
        columns = f" ({self.column_list()})" if self.columns else ""
        return f"INSERT INTO {self.table}{columns}\n{query}"

    def same(self, left: str, right: str) -> str:
        """Write the condition that two aliases have the same content, led by the indexed hash."""
        images = (f"CAST(ROW({self.column_list(alias)}) AS text)" for alias in (left, right))
        tests = [" = ".join(images)]
        if self.hashed:
            tests.insert(0, f"{row_hash(left, self.hashed)} = {row_hash(right, self.hashed)}")
        return " AND ".join(tests)


def create_changes(connection: psycopg.Connection, storage: Storage) -> None:
    """Create the empty table of weighted changes for a stream table."""
    create_like(connection, CHANGES, f"SELECT {storage.weighted('CAST(NULL AS bigint)')} FROM {storage.table}")


def difference(storage: Storage, after: str, before: str) -> str:
    """Compile `after - before` as weighted rows of a stream table, netted by exact content."""
    columns = storage.column_list()
    listed = "".join(f"{column}, " for column in storage.columns)
    image = f"CAST(ROW({columns}) AS text) AS pgt_image"
    both = (
        f"SELECT {listed}1 AS pgt_sign, {image} FROM ({after}) AS a\nUNION ALL\n"
        f"SELECT {listed}-1 AS pgt_sign, {image} FROM ({before}) AS b"
    )
    return (
        f"WITH u AS MATERIALIZED (\n{both}\n), n AS MATERIALIZED "
        f"(SELECT pgt_image, sum(pgt_sign) AS {WEIGHT} FROM u GROUP BY pgt_image HAVING sum(pgt_sign) <> 0)\n"
        f"SELECT DISTINCT ON (pgt_image) {storage.weighted(f'n.{WEIGHT}', 'u')} FROM u JOIN n USING (pgt_image)"
    )


def stage_changes(connection: psycopg.Connection, storage: Storage, query: str) -> None:
    """Fill the table of changes from a query that returns the stream table's columns and the weight."""
    run(connection, f"INSERT INTO pg_temp.{CHANGES} ({', '.join([*storage.columns, WEIGHT])})\n{query}")


def apply_changes(connection: psycopg.Connection, storage: Storage) -> tuple[int, int]:
    """Apply the staged changes and return (rows inserted, rows deleted).

    Raise StreamTableDrifted when a row to delete is not there: then the stream table is not what the last refresh
    left, and nothing may be built on it.
    """
    expected = connection.execute(
        f"SELECT CAST(coalesce(sum(-{WEIGHT}), 0) AS bigint) FROM pg_temp.{CHANGES} WHERE {WEIGHT} < 0"
    ).fetchone()
    with index_lookups(connection):
        deleted = run(connection, _delete(storage)) if expected and expected[0] else 0
    if expected and deleted != expected[0]:
        raise StreamTableDrifted(
            f"{storage.name} lacks {expected[0] - deleted} of the {expected[0]} rows that should be deleted."
        )
    copies = f"FROM pg_temp.{CHANGES} AS c, generate_series(1, c.{WEIGHT}) AS e (pgt_n) WHERE c.{WEIGHT} > 0"
    return run(connection, storage.filled_from(f"SELECT {storage.column_list('c')} {copies}")), deleted


def index_rows(connection: psycopg.Connection, storage: Storage, pgt_id: int, key: tuple[str, ...]) -> None:
    """Create the index by which apply_changes finds rows by content, and a unique one on the derived key; analyze.

    The key's index is for readers; two rows of one key would be a defect, which it turns into an error.
    """
    if storage.hashed:
        row = f"CREATE INDEX IF NOT EXISTS pgt_row_{pgt_id} ON {storage.table} ({row_hash('', storage.hashed)})"
        run(connection, row)
    if key:
        columns = ", ".join(map(quote, key))
        unique = f"CREATE UNIQUE INDEX IF NOT EXISTS pgt_key_{pgt_id} ON {storage.table} ({columns})"
        run(connection, f"{unique} NULLS NOT DISTINCT")
    run(connection, f"ANALYZE {storage.table}")


def _delete(storage: Storage) -> str:
    numbered = (
        f"SELECT t.ctid AS row, -c.{WEIGHT} AS copies, row_number() OVER (PARTITION BY c.ctid) AS copy "
        f"FROM pg_temp.{CHANGES} AS c JOIN {storage.table} AS t ON {storage.same('t', 'c')} WHERE c.{WEIGHT} < 0"
    )
    return (
        f"DELETE FROM {storage.table} WHERE ctid = ANY (ARRAY(SELECT row FROM ({numbered}) AS n WHERE copy <= copies))"
    )
