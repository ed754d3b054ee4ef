"""Nobody but its refresh writes a stream table, whatever else a transaction does, and whatever table it names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from tests.acceptance.conftest import Shop, opened
from tests.conftest import Database

WRITES = ("UPDATE shown SET id = 99", "INSERT INTO shown SELECT * FROM shown", "DELETE FROM shown")


@pytest.fixture
def shop(db: Database) -> Iterator[Shop]:
    """A shop with two orders."""
    with opened(db) as shop:
        shop.db.execute("INSERT INTO orders VALUES (1, 1, 10), (2, 1, 20)")
        yield shop


def assert_refused(write: Callable[[str], Any], *statements: str) -> None:
    """Each statement must be refused as a write to a stream table."""
    for statement in statements:
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="is a stream table"):
            write(statement)


@pytest.mark.parametrize("attached", ["INHERIT", "ATTACH"])
def test_it_cannot_be_written_through_its_parent(shop: Shop, attached: str) -> None:
    shop.pt.create_stream_table("shown", "SELECT id, customer FROM orders")
    shop.tick()
    if attached == "INHERIT":
        shop.db.execute("CREATE TABLE parent (id int, customer int)")
        shop.db.execute("ALTER TABLE shown INHERIT parent")
    else:
        shop.db.execute("CREATE TABLE parent (id int, customer int) PARTITION BY LIST (customer)")
        shop.db.execute("ALTER TABLE parent ATTACH PARTITION shown FOR VALUES IN (1)")
    # Until the next tick nobody has noticed: what is written is taken back then.
    shop.db.execute("DELETE FROM parent WHERE id = 1")
    assert shop.tick()["shown"].action == "REINITIALIZE"
    assert shop.rows("shown") == {(1, 1), (2, 1)}
    # What is inserted into a parent stays there.
    writes = WRITES if attached == "ATTACH" else [write for write in WRITES if "INSERT" not in write]
    through = [write.replace("shown", "parent") for write in writes]
    assert_refused(shop.db.execute, *through, *WRITES)
    shop.db.execute("INSERT INTO orders VALUES (3, 1, 30); DELETE FROM orders WHERE id = 2")
    assert shop.tick()["shown"].action == "DIFFERENTIAL"
    assert shop.rows("shown") == {(1, 1), (3, 1)}
    shop.assert_verified()


def test_a_watermark_taken_back_opens_nothing(shop: Shop) -> None:
    shop.db.execute("CREATE TABLE clicks (id int, at timestamptz)")
    shop.pt.create_watermark_group("clicks", ["clicks"])
    query = "SELECT id, at FROM clicks"
    shop.pt.create_stream_table("shown", query, output_mode="append", window_end="at", watermark_gating="gate")
    shop.db.execute("INSERT INTO clicks VALUES (1, '2026-01-01 12:00Z'), (2, '2026-01-01 12:10Z')")
    shop.db.execute("SELECT pgtrickle.advance_watermark('clicks', '2026-01-01 12:10Z')")
    shop.tick()
    with shop.db.connect() as owner:
        for write in WRITES:
            with owner.transaction(force_rollback=True):
                owner.execute("SELECT pgtrickle.reset_watermark('clicks', '2026-01-01 12:05Z')")
                assert_refused(lambda statement: owner.execute(statement.encode()), write)


def test_nor_does_a_new_stream_table_that_is_filled_at_once(shop: Shop, tmp_path: Any) -> None:
    (tmp_path / "pytrickle.toml").write_text('project = "shop"')
    (tmp_path / "shown.sql").write_text("SELECT id FROM orders")
    shop.pt.apply(tmp_path)
    shop.tick()
    (tmp_path / "shown.sql").write_text("SELECT id, customer FROM orders")
    shop.pt.apply(tmp_path)
    assert shop.db.value("SELECT refresh_xid FROM pgtrickle.pgt_stream_tables") is None
    assert_refused(shop.db.execute, *WRITES)


def test_rows_that_were_written_while_its_triggers_were_disabled_do_not_stay(shop: Shop) -> None:
    shop.pt.create_stream_table("shown", "SELECT id FROM orders")
    shop.tick()
    # As pg_restore does it, which knows of no triggers that were enabled otherwise.
    shop.db.execute("ALTER TABLE shown DISABLE TRIGGER ALL")
    shop.db.execute("INSERT INTO shown VALUES (99)")
    shop.db.execute("ALTER TABLE shown ENABLE TRIGGER ALL")
    result = shop.tick()["shown"]
    assert result.action == "REINITIALIZE" and "triggers that guard it were altered" in result.reason
    assert shop.rows("shown") == {(1,), (2,)}
    assert shop.tick()["shown"].action == "NO_DATA"
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState), shop.db.connect() as replicating:
        replicating.execute("SET session_replication_role = replica")
        replicating.execute("INSERT INTO shown VALUES (99)")


def test_its_table_cannot_stay_unlogged(shop: Shop) -> None:
    shop.pt.create_stream_table("shown", "SELECT id FROM orders")
    shop.tick()
    shop.db.execute("ALTER TABLE shown SET UNLOGGED")
    # It is as a crash would leave it.
    shop.db.execute(
        "BEGIN; ALTER TABLE shown DISABLE TRIGGER pgtrickle_guard; DELETE FROM shown;"
        " ALTER TABLE shown ENABLE ALWAYS TRIGGER pgtrickle_guard; COMMIT"
    )
    result = shop.tick()["shown"]
    assert result.action == "REINITIALIZE" and "its table was unlogged" in result.reason
    assert shop.rows("shown") == {(1,), (2,)}
    assert shop.db.value("SELECT relpersistence FROM pg_class WHERE oid = 'shown'::regclass") == "p"
    assert shop.tick()["shown"].action == "NO_DATA"


def test_nor_can_what_is_kept_of_its_groups(shop: Shop) -> None:
    shop.pt.create_stream_table("shown", "SELECT customer, count(*) AS orders FROM orders GROUP BY customer")
    shop.tick()
    ((state,),) = shop.db.execute(
        "SELECT oid::regclass::text FROM pg_class"
        " WHERE relnamespace = 'pgtrickle_state'::regnamespace AND relkind = 'r'"
    )
    # It is as a crash would leave it.
    shop.db.execute(
        f"ALTER TABLE {state} DISABLE TRIGGER pgtrickle_guard; ALTER TABLE {state} SET UNLOGGED;"
        f" TRUNCATE {state}; ALTER TABLE {state} ENABLE ALWAYS TRIGGER pgtrickle_guard"
    )
    shop.db.execute("INSERT INTO orders VALUES (8, 1, 80)")
    result = shop.tick()["shown"]
    assert result.action == "REINITIALIZE" and "unlogged" in result.reason
    shop.assert_verified()
    assert shop.db.value("SELECT relpersistence FROM pg_class WHERE oid = %s::regclass", state) == "p"


KEPT = {
    "body": "SELECT id, amount FROM orders ORDER BY amount DESC LIMIT 1",
    "state": "SELECT customer, sum(amount) AS total FROM orders GROUP BY customer",
}
HIDDEN = "SELECT relname FROM pg_class WHERE relnamespace = 'pgtrickle_state'::regnamespace AND relkind = 'r'"


@pytest.mark.parametrize("kind", KEPT)
def test_what_is_kept_beside_it_is_written_by_its_refreshes_alone(shop: Shop, kind: str) -> None:
    """Nothing compares it with anything: without its rows, the next refresh would silently be wrong."""
    shop.pt.create_stream_table("shown", KEPT[kind], refresh_mode="DIFFERENTIAL")
    for number in range(5, 12):
        shop.tick()
        shop.db.execute(f"INSERT INTO orders VALUES ({number}, 2, {number})")
    ((kept,),) = shop.db.execute(HIDDEN)
    assert kept.startswith(f"{kind}_")
    for write in (
        "TRUNCATE pgtrickle_state.{}",
        "DELETE FROM pgtrickle_state.{}",
        "UPDATE pgtrickle_state.{0} SET {1}",
    ):
        column = shop.db.value(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum = 1", f"pgtrickle_state.{kept}"
        )
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="is kept beside a stream table"):
            shop.db.execute(write.format(kept, f"{column} = {column}"))
    shop.db.execute("DELETE FROM orders WHERE id = 2")
    assert shop.tick()["shown"].action == "DIFFERENTIAL"
    shop.assert_verified()


def test_what_an_earlier_version_kept_is_guarded_by_the_upgrade(shop: Shop) -> None:
    shop.pt.create_stream_table("shown", KEPT["body"])
    shop.tick()
    shop.db.execute("DROP TRIGGER pgtrickle_guard ON pgtrickle_state.body_1")
    shop.db.execute("SELECT pgtrickle.settle_grants()")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        shop.db.execute("TRUNCATE pgtrickle_state.body_1")
