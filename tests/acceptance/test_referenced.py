"""A foreign key may name a stream table: a row that a refresh replaces is never missing."""

import psycopg
import pytest

from tests.acceptance.conftest import Shop

FEW, MANY = "id < 10", "true"


@pytest.fixture
def referenced(local_shop: Shop) -> Shop:
    """A stream table with a primary key, of which another table names a row."""
    local_shop.db.execute("INSERT INTO orders SELECT n, 1, n FROM generate_series(1, 5000) AS n")
    local_shop.pt.create_stream_table('"Shown"', "SELECT id, amount FROM orders")
    local_shop.tick()
    local_shop.db.execute('ALTER TABLE "Shown" ADD PRIMARY KEY (id)')
    local_shop.db.execute('CREATE TABLE notes (id int REFERENCES "Shown", note text)')
    local_shop.db.execute("INSERT INTO notes VALUES (7, 'seven')")
    return local_shop


@pytest.mark.parametrize("which", [FEW, MANY], ids=["few", "many"])
@pytest.mark.parametrize("mode", ["AUTO", "FULL"])
def test_a_row_that_is_named_can_be_replaced(referenced: Shop, which: str, mode: str) -> None:
    referenced.pt.alter_stream_table('"Shown"', refresh_mode=mode)
    for _ in range(2):
        referenced.db.execute(f"UPDATE orders SET amount = amount + 1 WHERE {which}")
        (result,) = referenced.pt.tick()
        changed = 9 if which == FEW else 5000
        assert (result.error, result.rows_inserted, result.rows_deleted) == (None, changed, changed)
        assert referenced.rows('"Shown"') == set(referenced.db.execute("SELECT id, amount FROM orders"))


def test_a_row_that_is_named_cannot_go(referenced: Shop) -> None:
    referenced.db.execute("DELETE FROM orders WHERE id > 5")
    (result,) = referenced.pt.tick()
    assert result.action == "FAILED" and result.error and "foreign key" in result.error
    referenced.db.execute("DELETE FROM notes")
    assert referenced.pt.refresh('"Shown"').rows_deleted == 4995
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        referenced.db.execute("INSERT INTO notes VALUES (7, 'seven')")
