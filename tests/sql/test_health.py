"""Ticks look into definitions and capture only when the system catalogs changed since all was well."""

from __future__ import annotations

import pytest

from pytrickle.schedule.mending import Mending
from tests.conftest import Database
from tests.equivalence.local_engine import local_client

CHANGES = {
    "trigger disabled": "ALTER TABLE t DISABLE TRIGGER USER",
    "trigger enabled again": "ALTER TABLE t DISABLE TRIGGER USER; ALTER TABLE t ENABLE TRIGGER USER",
    "column renamed": "ALTER TABLE t RENAME COLUMN b TO c",
    "child attached": "CREATE TABLE child () INHERITS (t)",
    "view replaced": "CREATE OR REPLACE VIEW v AS SELECT a + 1 AS a FROM t",
    "function replaced": "CREATE OR REPLACE FUNCTION f(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1 + 1'",
    "gap noted": "INSERT INTO pgtrickle.pgt_capture_gaps VALUES ('t', 't', 'it was told so')",
    "source moved": "CREATE SCHEMA elsewhere; ALTER TABLE t SET SCHEMA elsewhere",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_what_could_void_a_frontier_is_looked_into_and_nothing_else_is(
    every_db: Database, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    apply = Mending.apply
    monkeypatch.setattr(Mending, "apply", lambda *given, **named: looked.append(given[2]) or apply(*given, **named))
    every_db.execute("CREATE TABLE t (a int, b int)")
    every_db.execute("CREATE FUNCTION f(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1'")
    every_db.execute("CREATE VIEW v AS SELECT a FROM t")
    with local_client(every_db.dsn) as (client, _):
        client.create_stream_table("s", "SELECT f(a) AS a FROM v")
        client.tick()
        client.tick()
        looked.clear()
        for _ in range(2):
            every_db.execute("INSERT INTO t VALUES (1, 2)")
            every_db.execute("CREATE TEMP TABLE IF NOT EXISTS unrelated (a int)")
            every_db.execute("ANALYZE t")
            client.tick()
        assert looked == []
        every_db.execute(change)
        client.tick()
        assert looked != []
