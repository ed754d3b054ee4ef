"""Random queries over what keeps one of several equal values, or an order, which what is above may see."""

from tests.equivalence.joins import source
from tests.equivalence.values import BIGINT
from tests.equivalence.writer import From, Query, Writer, chosen, qualified


def told_apart(writer: Writer) -> Query:
    """Keep groups, distinct rows or partitions by what a key looks like; PostgreSQL asks the rows below them."""
    found = source(writer, (0, 0, 1))
    key = writer.rng.choice([column for column in found.scope if column.type.ambiguous] or found.scope)
    inner = writer.rng.choice((_grouped, _distinct, _united, _windowed))(writer, found, key.name)
    alias, text = writer.alias(), writer.rng.choice(key.type.texts)
    look = writer.rng.choice(("format('%s', {}) COLLATE \"C\"", 'CAST({} AS text) COLLATE "C"')).format(f"{alias}.key")
    operator = writer.rng.choice(("=", "<>", "<", ">="))
    test = writer.rng.choice((f"{look} {operator} '{text}'", f"length({look}) < 3", f"NOT {look} LIKE '%0'"))
    items = [(f"{alias}.key", key.type.chosen()), (f"{alias}.n", BIGINT)]
    return writer.select("SELECT", items, f" FROM ({inner}) AS {alias} WHERE {test}")


def _grouped(writer: Writer, found: From, key: str) -> str:
    having = writer.rng.choice(("", " HAVING count(*) > 1"))
    return f"SELECT {key} AS key, count(*) AS n{found.sql()} GROUP BY {key}{having}"


def _distinct(writer: Writer, found: From, key: str) -> str:
    return f"SELECT DISTINCT {key} AS key, 1 AS n{found.sql()}"


def _united(writer: Writer, found: From, key: str) -> str:
    arm = f"SELECT {key} AS key, 1 AS n{found.sql()}"
    return f"{arm} {writer.rng.choice(('UNION', 'INTERSECT'))} {arm}"


def _windowed(writer: Writer, found: From, key: str) -> str:
    return f"SELECT {key} AS key, count(*) OVER (PARTITION BY {key}) AS n{found.sql()}"


def ordered_below(writer: Writer) -> Query:
    """Keep the first rows of a subquery in the order that it says."""
    found, alias = source(writer, (0, 0, 1)), writer.alias()
    inner = writer.select("SELECT", [(column.name, column.type) for column in found.scope[:4]], found.sql())
    order = f" ORDER BY {writer.total_order(found.scope)}"
    bounds = f" LIMIT {writer.rng.randint(1, 4)}"
    listed = ", ".join(f"{alias}.{column.name}" for column in inner.columns)
    within, after = ((order + bounds, ""), (order, bounds), (order + bounds, " LIMIT 2"))[writer.rng.randrange(3)]
    return chosen(Query(f"SELECT {listed} FROM ({inner.sql}{within}) AS {alias}{after}", inner.columns))


def with_column_names(writer: Writer) -> Query:
    """Give the first columns of a table other names."""
    text, scope = writer.table()
    alias, _, _ = scope[0].name.partition(".")
    renamed = [f"c{i}" for i in range(writer.rng.randint(1, len(scope)))]
    names = [*renamed, *(column.name.partition(".")[2] for column in scope[len(renamed) :])]
    columns = qualified(alias, tuple(type(c)(name, c.type) for name, c in zip(names, scope, strict=True)))
    items = [(column.name, column.type) for column in writer.rng.sample(columns, min(3, len(columns)))]
    where = f" WHERE {writer.rng.choice(columns).name} IS NOT NULL" if writer.chance(0.4) else ""
    return writer.select("SELECT", items, f" FROM {text}({', '.join(renamed)}){where}")
