"""A partition on its way out: the table shows it no more, and writers at REPEATABLE READ still write to it."""

import psycopg
import pytest

from tests.acceptance.conftest import Shop

QUERIES = {"shown": "SELECT k, v FROM parts", "counted": "SELECT k, count(*) AS n FROM parts GROUP BY k"}


@pytest.fixture
def parts(local_shop: Shop) -> Shop:
    local_shop.db.execute("CREATE TABLE parts (k int, v int) PARTITION BY LIST (k)")
    for number in (1, 2):
        local_shop.db.execute(f"CREATE TABLE parts_{number} PARTITION OF parts FOR VALUES IN ({number})")
    local_shop.db.execute("INSERT INTO parts VALUES (1, 10), (2, 20), (2, 21)")
    for name, query in QUERIES.items():
        local_shop.pt.create_stream_table(name, query)
    local_shop.tick()
    return local_shop


def begin_to_detach(shop: Shop) -> None:
    """Leave what a statement leaves that waits for a reader: it has committed that the partition is to go."""
    with shop.db.connect() as reader, shop.db.connect() as owner:
        reader.autocommit, owner.autocommit = False, True
        reader.execute("SELECT FROM parts")
        owner.execute("SET lock_timeout = '10ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            owner.execute("ALTER TABLE parts DETACH PARTITION parts_2 CONCURRENTLY")
        reader.rollback()
    assert shop.db.execute("TABLE parts") == [(1, 10)]


def assert_equal(shop: Shop) -> None:
    shop.tick()
    for name, query in QUERIES.items():
        assert shop.rows(name) == set(shop.db.execute(query)), name


def test_a_partition_that_is_about_to_be_detached_is_gone_already(parts: Shop) -> None:
    begin_to_detach(parts)
    assert_equal(parts)
    assert "public.parts_2 that is being detached" in str(parts.pt.explain("shown").data["full_reason"])
    parts.db.execute("ALTER TABLE parts DETACH PARTITION parts_2 FINALIZE")
    parts.db.execute("INSERT INTO parts VALUES (1, 11)")
    assert_equal(parts)
    parts.db.execute("INSERT INTO parts VALUES (1, 12)")
    assert {result.action for result in parts.tick().values()} == {"DIFFERENTIAL"}
    assert parts.rows("shown") == {(1, 10), (1, 11), (1, 12)}
    parts.assert_verified()


@pytest.mark.parametrize("older", [False, True], ids=["a later snapshot", "an older snapshot"])
def test_what_is_still_written_to_it_changes_nothing(parts: Shop, older: bool) -> None:
    with parts.db.connect(autocommit=False) as writer:
        writer.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        if older:
            writer.execute("SELECT 1")
        begin_to_detach(parts)
        assert_equal(parts)
        writer.execute("INSERT INTO parts VALUES (2, 22), (1, 13)")
        if older:
            assert writer.execute("DELETE FROM parts WHERE v = 20").rowcount == 1
        writer.commit()
    assert parts.db.execute("SELECT count(*) > 0 FROM parts_2 WHERE v = 22") == [(True,)]
    assert_equal(parts)
    parts.db.execute("ALTER TABLE parts DETACH PARTITION parts_2 FINALIZE")
    assert_equal(parts)
    parts.assert_verified()
