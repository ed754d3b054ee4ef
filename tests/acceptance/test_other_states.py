"""Hidden tables of groups that another version of pytrickle has laid out: they are made anew, not misread."""

from tests.acceptance.conftest import Shop
from tests.conftest import Database
from tests.equivalence.local_engine import local_client

TABLES = "CREATE TABLE sales (id int PRIMARY KEY, kind int, price numeric(9, 2), n int, cost numeric)"
ROWS = "INSERT INTO sales SELECT i, i % 5, i, i % 3, i / 8.0 FROM generate_series(1, 200) AS i"
SUMS = "SELECT kind, sum(price * n) AS turnover, avg(cost) AS cost FROM sales GROUP BY kind"
# As versions laid it out that counted the scales of every product.
OTHERWISE = "ALTER TABLE pgtrickle_state.state_{} ADD COLUMN a0_scales jsonb"


def test_a_state_with_other_columns_is_made_anew(db: Database) -> None:
    db.execute(TABLES)
    db.execute(ROWS)
    with local_client(db.dsn, max_concurrent_refreshes=1) as (client, _):
        client.create_stream_table("sums", SUMS, refresh_mode="DIFFERENTIAL")
        client.tick()
    db.execute(OTHERWISE.format(db.value("SELECT pgt_id FROM pgtrickle.pgt_stream_tables")))
    db.execute("UPDATE sales SET price = price + 1 WHERE id < 20")
    with local_client(db.dsn, max_concurrent_refreshes=1) as (client, _):
        shop = Shop(db, client)
        (result,) = client.tick()
        assert (result.action, "laid out by another version" in result.reason) == ("REINITIALIZE", True)
        db.execute("UPDATE sales SET price = price + 1 WHERE id < 20")
        (result,) = client.tick()
        assert result.action == "DIFFERENTIAL"
        shop.assert_verified()


def test_a_state_that_changed_under_a_refresher_is_noticed(db: Database) -> None:
    db.execute(TABLES)
    db.execute(ROWS)
    with local_client(db.dsn, max_concurrent_refreshes=1) as (client, _):
        client.create_stream_table("sums", SUMS)
        for number in range(4):
            db.execute("UPDATE sales SET price = price + 1 WHERE id = 1")
            client.tick()
            if number == 2:
                db.execute(OTHERWISE.format(db.value("SELECT pgt_id FROM pgtrickle.pgt_stream_tables")))
        db.execute("UPDATE sales SET price = price + 1 WHERE id = 1")
        (result,) = client.tick()
        assert result.action != "FAILED"
        Shop(db, client).assert_verified()
