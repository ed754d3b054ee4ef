"""The keys that a delta touches, as one more table that each block of an operation's input is joined with."""

from dataclasses import dataclass, replace

from pytrickle.plan.algebra.relation import Predicate, Project

ALIAS = "k"
RESTRICTED = """\
{joined}
UNION ALL
SELECT n.* FROM {keys}, LATERAL (SELECT * FROM (
{rows}
) AS n WHERE {same} OFFSET 0) AS n WHERE {some_null}"""


@dataclass(frozen=True, slots=True)
class Touched:
    """A common table expression of distinct keys, whose columns are named like the key columns of the blocks.

    Joined within a block, the keys can be looked up through an index, or hashed where there is none, before anything
    else of the block is computed.
    """

    name: str
    keys: tuple[str, ...]

    @property
    def item(self) -> str:
        """Write the keys for a FROM clause."""
        return f"{self.name} AS {ALIAS}"

    def predicates(self, block: Project) -> tuple[Predicate, ...]:
        """Equate a block's key columns with the keys."""
        return tuple(
            Predicate(
                replace(expr, sql=f"({expr.sql}) = {ALIAS}.{name}", tables=expr.tables | {ALIAS}, shown=None),
                fixed=expr.column,
            )
            for name, expr in block.columns
            if name in self.keys
        )

    def restricted(self, joined: str, rows: str) -> str:
        """Restrict rows to the keys: those `joined` with them by equality, and those of NULL keys one by one."""
        same = " AND ".join(f"n.{key} IS NOT DISTINCT FROM {ALIAS}.{key}" for key in self.keys)
        # A composite value IS NULL already when all of its columns are, but is joined by equality.
        some_null = " OR ".join(f"{ALIAS}.{key} IS NOT DISTINCT FROM NULL" for key in self.keys)
        return RESTRICTED.format(joined=joined, keys=self.item, rows=rows, same=same, some_null=some_null)
