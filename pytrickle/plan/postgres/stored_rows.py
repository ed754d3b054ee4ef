"""The rows that a stream table holds, and the statements that change them: delete n copies for -n, insert n for +n."""

from dataclasses import dataclass

from pytrickle.catalog.definition import Definition
from pytrickle.plan.apply_plan import CHANGES, Replacement, Target
from pytrickle.plan.postgres.aggregate_state import row_hash
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.postgres.deletion import deletion
from pytrickle.plan.postgres.few_rows import TAKEN, apply_text
from pytrickle.plan.sql.dialect import quote, row_text
from pytrickle.plan.sql.types import MOST_INDEXED

NAMES = {"weight": WEIGHT, "staged": CHANGES}
INSERT = """\
INSERT INTO {table}{columns}
SELECT {items} FROM pg_temp.{staged} AS c, generate_series(1, c.{weight}) AS e (pgt_n) WHERE c.{weight} > 0"""
FILL = "INSERT INTO {table}{columns}\nSELECT {items} FROM ({query}) AS q"
STAGE = "INSERT INTO pg_temp.{staged} ({columns})\n{query}"
COUNT_DELETED = "SELECT CAST(coalesce(sum(-{weight}), 0) AS bigint) FROM pg_temp.{staged} WHERE {weight} < 0"
DIFFERENCE = """\
WITH u AS MATERIALIZED (
    SELECT {listed}1 AS pgt_sign, {text} AS pgt_text FROM ({after}) AS a
    UNION ALL
    SELECT {listed}-1 AS pgt_sign, {text} AS pgt_text FROM ({before}) AS b
), n AS MATERIALIZED (
    SELECT pgt_text, sum(pgt_sign) AS {weight} FROM u GROUP BY pgt_text HAVING sum(pgt_sign) <> 0
)
SELECT DISTINCT ON (pgt_text) {weighted} FROM u JOIN n USING (pgt_text)"""
ROW_INDEX = "CREATE INDEX IF NOT EXISTS pgt_row_{pgt_id} ON {table} ({content})"
KEY_INDEX = "CREATE UNIQUE INDEX IF NOT EXISTS pgt_key_{pgt_id} ON {table} ({key}) NULLS NOT DISTINCT"


def body_table(pgt_id: int) -> str:
    """Name the hidden table of all rows, of which the stream table shows a part: the first, or those of closed windows.

    >>> body_table(7)
    'pgtrickle_state.body_7'
    """
    return f"pgtrickle_state.body_{pgt_id}"


@dataclass(frozen=True, slots=True)
class Storage:
    """A stream table as the target of changes; columns and hashed columns are quoted names."""

    name: str
    table: str
    columns: tuple[str, ...]
    hashed: tuple[str, ...]

    @classmethod
    def of(cls, definition: Definition, hashable: tuple[str, ...], table: str | None = None) -> "Storage":
        """Describe a stream table's storage, or another table with the same columns."""
        own = f"{quote(definition.schema)}.{quote(definition.name)}"
        columns = tuple(quote(name) for name, _ in definition.columns)
        return cls(definition.qualified_name, table or own, columns, tuple(quote(name) for name in hashable))

    def column_list(self, alias: str = "") -> str:
        """Write the columns, qualified by an alias if there is one."""
        prefix = f"{alias}." if alias else ""
        return ", ".join(prefix + column for column in self.columns)

    def weighted(self, weight: str, alias: str = "") -> str:
        """Write the columns, of which there may be none, and the weight."""
        return ", ".join(filter(None, (self.column_list(alias), f"{weight} AS {WEIGHT}")))

    def same(self, left: str, right: str) -> str:
        """Write the condition that two aliases have the same content, led by the indexed hash."""
        texts = (row_text(tuple(f"{alias}.{column}" for column in self.columns)) for alias in (left, right))
        tests = [" = ".join(texts)]
        if self.hashed:
            tests.insert(0, f"{row_hash(left, self.hashed)} = {row_hash(right, self.hashed)}")
        return " AND ".join(tests)

    def target(self, pgt_id: int, key: tuple[str, ...], taken: str = TAKEN, indexed: bool = True) -> Target:
        """Write the statements that apply staged changes to this table; `key` are columns that determine a row.

        `taken` says how few changes are taken from the parameters that hold them. Rows are found by the index of their
        hash, unless the table is not to be `indexed`, or no column has a hash.
        """
        columns, found_by_index = f" ({self.column_list()})" if self.columns else "", indexed and bool(self.hashed)
        same = self.same("t", "c")
        return Target(
            self.name,
            self.table,
            f"SELECT {self.weighted('CAST(NULL AS bigint)')} FROM {self.table}",
            COUNT_DELETED.format(**NAMES),
            deletion(self.table, same, f"pg_temp.{CHANGES}", "ctid", found_by_index),
            INSERT.format(**NAMES, table=self.table, columns=columns, items=self.column_list("c")),
            apply_text(self.table, self.columns, deletion(self.table, same, "c", "pgt_pos", found_by_index), taken),
            self._key_index(pgt_id, key),
            self._indexes(pgt_id),
            found_by_index,
        )

    def replacement(self, after: str, straight: bool) -> Replacement:
        """Write the statements that turn the stored rows into those of a query; `straight` if they are staged so."""
        columns = self.column_list()
        fill = FILL.format(table=self.table, columns=f" ({columns})" if columns else "", items=columns, query=after)
        return Replacement(
            self.stage(self.difference(after, f"SELECT * FROM {self.table}")),
            self.stage(f"SELECT {self.weighted('1', 'q')} FROM ({after}) AS q"),
            None if straight else fill,
        )

    def stage(self, query: str) -> str:
        """Write the statement that fills the table of changes from a query that returns the columns and the weight."""
        return STAGE.format(staged=CHANGES, columns=", ".join([*self.columns, WEIGHT]), query=query)

    def difference(self, after: str, before: str) -> str:
        """Compile `after - before` as weighted rows of a stream table, consolidated by exact content."""
        return DIFFERENCE.format(
            **NAMES,
            listed="".join(f"{column}, " for column in self.columns),
            text=row_text(self.columns),
            after=after,
            before=before,
            weighted=self.weighted(f"n.{WEIGHT}", "u"),
        )

    def _key_index(self, pgt_id: int, key: tuple[str, ...]) -> str | None:
        """Index the rows uniquely by the derived key, unless it has more columns than an index can have.

        It is for readers; two rows of one key would be a defect, which it turns into an error.
        """
        columns = ", ".join(map(quote, key))
        return KEY_INDEX.format(pgt_id=pgt_id, table=self.table, key=columns) if 0 < len(key) <= MOST_INDEXED else None

    def _indexes(self, pgt_id: int) -> tuple[str, ...]:
        """Index the rows by content, then analyze them."""
        content = row_hash("", self.hashed)
        found = (ROW_INDEX.format(pgt_id=pgt_id, table=self.table, content=content),) if self.hashed else ()
        return (*found, f"ANALYZE {self.table}")
