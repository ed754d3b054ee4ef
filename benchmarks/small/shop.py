"""A small shop: orders of customers, for the steps that are measured alone."""

import psycopg

from benchmarks.data import Orders

SHOP = Orders("shop", orders=20_000, customers=1_000, regions=20)
FILTER = "SELECT id, customer_id, amount FROM shop.orders WHERE amount > 500"
GROUPING = "SELECT customer_id, count(*) AS orders, sum(amount) AS revenue FROM shop.orders GROUP BY customer_id"


def open_shop(connection: psycopg.Connection) -> Orders:
    """Create and fill the tables, once in a database."""
    row = connection.execute("SELECT to_regclass('shop.orders') IS NULL").fetchone()
    if row == (True,):
        SHOP.create(connection)
    return SHOP
