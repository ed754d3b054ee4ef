"""The first rows of a stream table: they go straight into it, by way of no more temporary tables than they need."""

from collections.abc import Iterator

import pytest

import pytrickle
from pytrickle.apply import rows
from tests.conftest import Database

SOURCE = """
CREATE TABLE orders (id int PRIMARY KEY, customer int, amount numeric, note text);
INSERT INTO orders SELECT n, n % 7, n * 1.5, nullif('note ' || n % 5, 'note 3') FROM generate_series(1, 60) AS n;
INSERT INTO orders VALUES (61, NULL, NULL, ''), (62, 1, 'NaN', E'a,"b"\\n\\\\N');
"""
# The temporary tables that a first load makes, by query.
QUERIES = {
    "SELECT id, amount, note FROM orders WHERE id > 2": [],
    "SELECT customer FROM orders": [],
    "SELECT DISTINCT note FROM orders": ["pgt_increments"],
    "SELECT customer, count(*) AS n, sum(amount) AS total, avg(amount) AS mean FROM orders GROUP BY customer": [
        "pgt_increments"
    ],
    "SELECT count(*) AS n FROM orders": ["pgt_increments"],
    "SELECT id, note FROM orders ORDER BY id LIMIT 5": ["pgt_changes"],
    "SELECT customer, rank() OVER (PARTITION BY customer ORDER BY id) AS place FROM orders": [],
    "SELECT FROM orders": ["pgt_content"],
}


@pytest.fixture
def shop(db: Database) -> Database:
    db.execute(SOURCE)
    return db


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The temporary tables that refreshes make from now on."""
    names: list[str] = []
    create_like = rows.create_like

    def noted(connection: object, name: str, query: object) -> None:
        names.append(name)
        create_like(connection, name, query)  # type: ignore[arg-type]

    monkeypatch.setattr(rows, "create_like", noted)
    yield names


@pytest.mark.parametrize("query", QUERIES)
def test_a_first_load_makes_no_more_temporary_tables_than_it_needs(shop: Database, made: list[str], query: str) -> None:
    with pytrickle.connect(shop.dsn, engine="postgres") as client:
        client.create_stream_table("st", query)
        result = client.refresh("st")
        assert made == QUERIES[query]
        shown = shop.value("SELECT count(*) FROM st")
        assert (result.action, result.rows_inserted, result.rows_deleted) == ("FULL", shown, 0)
        assert shown > 0
        assert client.verify("st").matches
        shop.execute(
            "UPDATE orders SET note = 'other', amount = amount + 1 WHERE id < 20; DELETE FROM orders WHERE id = 30"
        )
        assert client.refresh("st").action in {"DIFFERENTIAL", "FULL"}
        assert client.verify("st").matches


def test_what_reads_a_stream_table_is_told_of_its_first_rows(shop: Database) -> None:
    with pytrickle.connect(shop.dsn, engine="postgres") as client:
        client.create_stream_table("large", "SELECT id, customer, amount FROM orders WHERE amount > 20")
        client.create_stream_table("totals", "SELECT customer, sum(amount) AS total FROM large GROUP BY customer")
        client.refresh("totals")
        assert shop.value("SELECT count(*) FROM totals") == 0
        client.tick()
        assert client.verify("large").matches
        assert client.verify("totals").matches
        assert shop.value("SELECT count(*) FROM totals") > 0


def test_a_rule_of_the_stream_table_sees_its_first_rows(shop: Database) -> None:
    """COPY passes rules by, so a table that has one is written by statements that do not."""
    with pytrickle.connect(shop.dsn, engine="postgres") as client:
        client.create_stream_table("st", "SELECT id, amount FROM orders")
        shop.execute("CREATE TABLE noted (id int)")
        shop.execute("CREATE RULE note AS ON INSERT TO st DO ALSO INSERT INTO noted VALUES (NEW.id)")
        client.refresh("st")
        assert shop.value("SELECT count(*) FROM noted") == shop.value("SELECT count(*) FROM st") > 0


def test_a_table_that_was_emptied_is_filled_the_same_way(shop: Database, made: list[str]) -> None:
    """So it is after a query that had no rows: what is computed anew meets an empty table."""
    shop.execute("CREATE TABLE wanted (customer int)")
    with pytrickle.connect(shop.dsn, engine="postgres") as client:
        query = "SELECT o.id, o.note FROM orders AS o JOIN wanted AS w USING (customer)"
        client.create_stream_table("st", query, refresh_mode="FULL")
        client.refresh("st")
        shop.execute("INSERT INTO wanted VALUES (1), (2)")
        client.refresh("st")
        assert shop.value("SELECT count(*) FROM st") > 0
        assert client.verify("st").matches
        assert made == []
