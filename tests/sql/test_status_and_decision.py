"""What a group's status says and what is decided for its stream tables is the same, whatever came in which order."""

from itertools import permutations
from random import Random
from typing import Any, NamedTuple

import psycopg
import pytest

from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.repeats import first

QUERY = "SELECT ''a'' AS side, id FROM a UNION ALL SELECT ''b'', id FROM b"
STEPS = {
    "table": f"SELECT pgtrickle.create_stream_table('held', '{QUERY}', watermark_gating => 'hold_back')",
    "gate": f"SELECT pgtrickle.create_stream_table('gated', '{QUERY}', watermark_gating => 'gate')",
    "group": "SELECT pgtrickle.create_watermark_group('g', ARRAY['a', 'b'])",
    "a": "SELECT pgtrickle.advance_watermark('a', '2026-01-01 12:00Z')",
    "b": "SELECT pgtrickle.advance_watermark('b', '2026-01-01 12:00Z')",
}
ORDERS = list(permutations(STEPS))
ROWS = "SELECT side, id FROM (SELECT 'a' AS side, id FROM a UNION ALL SELECT 'b', id FROM b) AS r"


class Status(NamedTuple):
    aligned: bool
    started: bool
    waiting_for: str | None
    reason: str
    agreed: Any
    effective: Any


class Decision(NamedTuple):
    decision: str
    waiting_for: str | None
    reason: str
    effective: Any
    caps: dict[str, Any]


def status(db: Database) -> Status:
    started = "sources_with_watermark = sources_total"
    columns = f"aligned, {started}, waiting_for, reason, agreed_watermark, effective_watermark"
    return Status(*db.execute(f"SELECT {columns} FROM pgtrickle.watermark_status()")[0])


def decision(db: Database, name: str) -> Decision:
    return Decision(
        *db.execute(
            "SELECT g.decision, g.waiting_for, g.reason, g.effective_watermark, g.caps FROM pgtrickle.pgt_stream_tables"
            " AS t, pgtrickle.gating_decision(t.pgt_id) AS g WHERE t.pgt_name = %s",
            name,
        )[0]
    )


def assert_agree(group: Status, held: Decision, gated: Decision) -> None:
    """Neither decision says of the group what its status denies."""
    assert gated.decision == ("run" if group.aligned else "gated")
    if not (group.aligned and group.started):
        assert gated.waiting_for == group.waiting_for and gated.reason == f"g: {group.reason.partition(';')[0]}"
    if not group.started:
        assert (held.decision, held.effective, held.caps) == ("run", None, {}) and group.agreed is None
        assert (held.waiting_for, held.reason) == (group.waiting_for, f"g: {group.reason}")
    elif held.effective is None and group.agreed is not None:
        assert held.decision == "run" and held.reason.removeprefix("g: ") in group.reason
        assert (held.caps != {}) is held.reason.startswith("g: stays where it is")
        assert group.waiting_for == held.waiting_for or not group.aligned
    else:
        assert held.effective == group.agreed and (held.caps != {}) is (group.agreed is not None)
        assert not group.aligned or group.waiting_for is None


@pytest.fixture
def sources(db: Database) -> Database:
    for name in "ab":
        db.execute(f"CREATE TABLE {name} (id integer)")
    return db


@pytest.mark.parametrize("isolation", ["READ COMMITTED", "REPEATABLE READ"])
def test_in_one_transaction_the_cut_of_a_first_advance_can_be_read(sources: Database, isolation: str) -> None:
    with sources.connect() as migration, migration.transaction():
        migration.execute(f"SET TRANSACTION ISOLATION LEVEL {isolation}".encode())
        migration.execute("INSERT INTO a VALUES (1)")
        for step in ("table", "gate", "group"):
            migration.execute(STEPS[step].encode())
        migration.execute("INSERT INTO a VALUES (2)")
        for step in "ab":
            migration.execute(STEPS[step].encode())
        migration.execute("INSERT INTO b VALUES (3)")
    held = decision(sources, "held")
    assert_agree(status(sources), held, decision(sources, "gated"))
    if isolation == "REPEATABLE READ":
        # Its snapshot may be older than the capture: nobody knows what was written in between.
        assert held.waiting_for == "public.a" and "has not advanced since its changes are captured" in held.reason
        return
    with local_client(sources.dsn) as (client, _):
        client.tick()
        assert sources.execute("TABLE held ORDER BY 1, 2") == [("a", 1), ("a", 2)]
        assert len(sources.execute("TABLE gated")) == 3
        assert client.verify("held").matches
    assert status(sources).effective == status(sources).agreed is not None


@pytest.mark.parametrize("seed", first(1, range(2), then=0))
def test_status_and_decision_agree_in_every_order_of_their_calls(sources: Database, seed: int) -> None:
    """Each order in transactions of its own choice; after every commit, and after what a tick makes of it."""
    chance = Random(seed)
    with local_client(sources.dsn) as (client, _):
        for order in chance.sample(ORDERS, 8):
            _play(sources, order, chance, client)
            _forget(sources)


def _play(db: Database, order: tuple[str, ...], chance: Random, client: Any) -> None:
    told: list[str] = []
    covered: set[tuple[str, int]] = set()
    connection = db.connect()
    left = list(order)
    while left:
        with connection.transaction():
            for step in [left.pop(0) for _ in range(min(chance.randint(1, 5), len(left)))]:
                told.append(step)
                _write(connection, chance)
                connection.execute(STEPS[step].encode())
                if step in "ab":
                    rows = connection.execute(ROWS.encode()).fetchall()
                    covered |= {row for row in rows if row[0] == step}
                _write(connection, chance)
            told.append("commit")
        if {"table", "gate", "group"} <= set(told):
            group, held = status(db), decision(db, "held")
            assert_agree(group, held, decision(db, "gated"))
            client.tick()
            assert_agree(status(db), decision(db, "held"), decision(db, "gated"))
            assert held.effective is None or set(db.execute("TABLE held")) == covered, told
            assert status(db).effective == (group.agreed if group.aligned else None)
            assert client.verify("held").matches, told
    connection.close()


def _write(connection: psycopg.Connection[Any], chance: Random) -> None:
    for side in "ab":
        if chance.random() < 0.5:
            connection.execute(f"INSERT INTO {side} VALUES ({chance.randrange(10**9)})".encode())


def _forget(db: Database) -> None:
    db.execute("SELECT pgtrickle.drop_stream_table(name) FROM (VALUES ('held'), ('gated')) AS t(name)")
    db.execute("SELECT pgtrickle.drop_watermark_group('g')")
    db.execute("SELECT pgtrickle.reset_watermark(source) FROM (VALUES ('a'::regclass), ('b')) AS s(source)")
    db.execute("TRUNCATE a, b")
