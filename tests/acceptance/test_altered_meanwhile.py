"""What is altered after the snapshot of a tick, and put back before the next one looks, leaves no wrong row."""

from collections.abc import Iterable

import pytest

from pytrickle.catalog.change_ranges import empty_buffers
from pytrickle.schedule import pass_, tick
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences
from tests.repeats import only_on_18

FUNCTION = "CREATE OR REPLACE FUNCTION f(i int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN i + {}; END'"
ADDING = "CREATE FUNCTION adding(int, int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1 + $2'"
AGGREGATE = "CREATE OR REPLACE AGGREGATE total(int) (sfunc = adding, stype = int, initcond = '{}')"
VIRTUAL = "ALTER TABLE t ADD g int GENERATED ALWAYS AS (k * 2) VIRTUAL"
# What is there before, the query, what alters its meaning, and what puts it back.
ALTERED = {
    "function": (FUNCTION.format(0), "SELECT id, f(k) AS k FROM t", FUNCTION.format(9), FUNCTION.format(0)),
    "function of a group": (
        FUNCTION.format(0),
        "SELECT f(k) AS k, count(*) AS n FROM t GROUP BY 1",
        FUNCTION.format(9),
        FUNCTION.format(0),
    ),
    "function of a condition": (
        FUNCTION.format(0),
        "SELECT id, k FROM t WHERE f(k) < 5",
        FUNCTION.format(9),
        FUNCTION.format(0),
    ),
    "aggregate": (
        f"{ADDING}; {AGGREGATE.format(0)}",
        "SELECT k, total(id) AS n FROM t GROUP BY k",
        AGGREGATE.format(100),
        AGGREGATE.format(0),
    ),
    "enum": (
        "CREATE TYPE e AS ENUM ('a', 'b'); ALTER TABLE t ADD e e DEFAULT 'a'",
        "SELECT id, e::text AS e FROM t",
        "ALTER TYPE e RENAME VALUE 'a' TO 'x'",
        "ALTER TYPE e RENAME VALUE 'x' TO 'a'",
    ),
    "child": (
        "CREATE TABLE other (id int, k int); INSERT INTO other VALUES (70, 1)",
        "SELECT id, k FROM t",
        "ALTER TABLE other INHERIT t",
        "ALTER TABLE other NO INHERIT t",
    ),
    "virtual column": (
        VIRTUAL,
        "SELECT id, g FROM t",
        "ALTER TABLE t ALTER g SET EXPRESSION AS (k * 5)",
        "ALTER TABLE t ALTER g SET EXPRESSION AS (k * 2)",
    ),
}
# The changes of one table have these by themselves.
NOT_OF_CHANGES = {"child", "virtual column"}


def altering(db: Database, monkeypatch: pytest.MonkeyPatch, ddl: str) -> None:
    """Alter something once, right after the snapshot of the next tick was taken."""
    waiting = [ddl]

    def looking(*given: Iterable[object]) -> object:
        while waiting:
            db.execute(waiting.pop())
        return empty_buffers(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(pass_, "empty_buffers", looking)


@only_on_18
@pytest.mark.parametrize(
    ("what", "mode"),
    [*((what, "FULL") for what in ALTERED), *((what, "AUTO") for what in ALTERED if what not in NOT_OF_CHANGES)],
)
def test_rows_that_were_read_meanwhile_are_computed_anew(
    every_db: Database, monkeypatch: pytest.MonkeyPatch, what: str, mode: str
) -> None:
    before, query, altered, put_back = ALTERED[what]
    every_db.execute("CREATE TABLE t (id int, k int); INSERT INTO t SELECT n, n % 3 FROM generate_series(1, 6) AS n")
    every_db.execute(before)
    with local_client(every_db.dsn) as (client, _), every_db.connect() as connection:
        client.create_stream_table("st", query, refresh_mode=mode)
        client.create_stream_table("plain", "SELECT count(*) AS n FROM t WHERE id < 7")
        client.tick()
        every_db.execute("INSERT INTO t VALUES (7, 1), (8, 2)")
        altering(every_db, monkeypatch, altered)
        client.tick()
        every_db.execute(put_back)
        assert differences(connection, "st", query, True), "nothing was read as it was altered"
        client.tick()
        assert not differences(connection, "st", query, True)
        assert {result.action for result in client.tick()} == {"NO_DATA"}


def test_it_is_noticed_though_nothing_can_be_cleaned_up(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another session holds what the clean-up needs."""
    db.execute("CREATE TABLE t (id int, k int)")
    db.execute(FUNCTION.format(0))
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("st", "SELECT id, f(k) AS k FROM t")
        client.tick()
        db.execute("INSERT INTO t VALUES (1)")
        altering(db, monkeypatch, FUNCTION.format(9))
        monkeypatch.setattr(tick, "unless_locked", lambda *_: None)
        client.tick()
    assert db.value("SELECT reinitialize_reason IS NOT NULL FROM pgtrickle.pgt_stream_tables")


@pytest.mark.parametrize("refreshed", [True, False], ids=["refreshed", "not refreshed"])
def test_only_what_was_refreshed_meanwhile_is_computed_anew(
    db: Database, monkeypatch: pytest.MonkeyPatch, refreshed: bool
) -> None:
    db.execute("CREATE TABLE t (id int, k int); CREATE TABLE u (id int)")
    db.execute(FUNCTION.format(0))
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("st", "SELECT id, f(k) AS k FROM t")
        client.create_stream_table("plain", "SELECT id FROM u")
        client.tick()
        db.execute(f"INSERT INTO {'t' if refreshed else 'u'} VALUES (1)")
        altering(db, monkeypatch, FUNCTION.format(9))
        client.tick()
        db.execute(FUNCTION.format(0))
        reasons = db.execute("SELECT pgt_name, reinitialize_reason IS NOT NULL FROM pgtrickle.pgt_stream_tables")
    assert dict(reasons) == {"st": refreshed, "plain": False}
