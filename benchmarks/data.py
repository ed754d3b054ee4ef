"""The measured tables: orders of customers in regions, in one schema for each size."""

from dataclasses import dataclass

import psycopg
from psycopg import sql

QUERY = """
SELECT c.region, count(*) AS orders, sum(o.amount) AS revenue, avg(o.amount) AS average
FROM {schema}.orders o
JOIN {schema}.customers c ON c.id = o.customer_id
GROUP BY c.region
"""

TABLES = """
CREATE SCHEMA {schema};
CREATE TABLE {schema}.customers (id integer PRIMARY KEY, region text NOT NULL);
CREATE TABLE {schema}.orders (
    id bigint PRIMARY KEY,
    customer_id integer NOT NULL,
    amount numeric(12, 2) NOT NULL,
    placed_at timestamptz NOT NULL
);
SELECT setseed(0.5);
INSERT INTO {schema}.customers
SELECT id, 'region ' || (id % {regions}) FROM generate_series(1, {customers}) AS id;
INSERT INTO {schema}.orders
SELECT id, 1 + floor(random() * {customers}), round((random() * 1000)::numeric, 2),
       timestamptz '2026-01-01 00:00+00' + id * interval '1 second'
FROM generate_series(1, {orders}) AS id;
CREATE INDEX ON {schema}.orders (customer_id);
CREATE SEQUENCE {schema}.order_ids START {next_id};
"""

# Half of the changes are updates, a quarter deletes and a quarter inserts, so the table keeps its size. The ids in
# `picked` are spread over the whole table.
PICK = """
CREATE TEMPORARY TABLE picked AS
SELECT id, row_number() OVER (ORDER BY id) AS nth
FROM (SELECT id FROM {schema}.orders TABLESAMPLE BERNOULLI ({percent}) ORDER BY random() LIMIT {picks}) AS sample
"""
CHANGES = (
    "UPDATE {schema}.orders o SET amount = o.amount + 1 FROM picked p WHERE p.id = o.id AND p.nth % 3 <> 0",
    "DELETE FROM {schema}.orders o USING picked p WHERE p.id = o.id AND p.nth % 3 = 0",
    "INSERT INTO {schema}.orders SELECT nextval('{schema}.order_ids'), 1 + floor(random() * {customers}),"
    " round((random() * 1000)::numeric, 2), now() FROM picked WHERE nth % 3 = 0",
)


@dataclass(frozen=True, slots=True)
class Orders:
    """One set of tables: its schema and its sizes."""

    schema: str
    orders: int
    customers: int
    regions: int

    @property
    def query(self) -> str:
        """Return the measured query: a join grouped by region."""
        return QUERY.format(schema=self.schema)

    def create(self, connection: psycopg.Connection) -> None:
        """Create and fill the tables."""
        with connection.transaction():
            connection.execute(self._sql(TABLES, orders=self.orders, regions=self.regions, next_id=self.orders + 1))
        self.tidy(connection)

    def tidy(self, connection: psycopg.Connection) -> None:
        """Do at once what autovacuum and the checkpointer would do some time, so that they do not disturb a figure."""
        for table in ("customers", "orders"):
            connection.execute(sql.SQL("VACUUM (ANALYZE) {}").format(sql.Identifier(self.schema, table)))
        connection.execute("CHECKPOINT")

    def change(self, connection: psycopg.Connection, rows: int) -> int:
        """Change about `rows` orders in one transaction, and return how many changed."""
        picks = round(rows * 3 / 4)
        percent = min(100.0, 130.0 * picks / self.orders + 0.01)
        with connection.transaction():
            connection.execute(self._sql(PICK, percent=percent, picks=picks))
            changed = sum(connection.execute(self._sql(change)).rowcount for change in CHANGES)
            connection.execute("DROP TABLE picked")
        return changed

    def _sql(self, template: str, **values: float) -> sql.Composed:
        # The values are the benchmark's own numbers, spelled as literals because utility statements take no parameters.
        literals = {name: sql.Literal(value) for name, value in {"customers": self.customers, **values}.items()}
        return sql.SQL(template).format(schema=sql.SQL(self.schema), **literals)
