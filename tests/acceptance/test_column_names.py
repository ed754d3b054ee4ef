"""Columns may be named as refreshes name something of their own, unless they are refused for it."""

import pytest

from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.repeats import first

QUERIES = {
    "plain": "SELECT k, {0} FROM named",
    "grouped": "SELECT {0}, count(*) AS n, max(k) AS most FROM named GROUP BY {0}",
    "summed": "SELECT k, sum({0}) AS {0} FROM named GROUP BY k",
    "joined": "SELECT t.{0}, other.v FROM named AS t JOIN other USING (k)",
    "first": "SELECT {0}, k FROM named ORDER BY {0} DESC, k LIMIT 5",
    "numbered": "SELECT {0}, row_number() OVER (PARTITION BY k ORDER BY {0}) AS r FROM named",
}


NAMES = ["pgt_rows", "copy", "e", "pgt_n", "pgt_number", "pgt_place", "counted", "c"]


@pytest.mark.parametrize("name", first(3, NAMES))
@pytest.mark.parametrize("gating", ["none", "hold_back"])
def test_a_name_of_ours_is_no_obstacle(db: Database, name: str, gating: str) -> None:
    db.execute(f"CREATE TABLE named (k int, {name} int, unread int); CREATE TABLE other (k int, v int)")
    db.execute("INSERT INTO named SELECT i % 4, i % 7, 0 FROM generate_series(1, 30) AS i")
    db.execute("INSERT INTO other SELECT i % 5, i FROM generate_series(1, 20) AS i")
    db.execute("SELECT pgtrickle.create_watermark_group('both', ARRAY['named', 'other'])")
    advance = "SELECT pgtrickle.advance_watermark(t, timestamptz '2026-01-01Z' + {0} * interval '1 h')"
    advance += " FROM unnest(ARRAY['named', 'other']) AS t"
    db.execute(advance.format(0))
    with local_client(db.dsn) as (client, _):
        for table, query in QUERIES.items():
            client.create_stream_table(table, query.format(name), watermark_gating=gating)
        for k in range(3):
            db.execute(f"INSERT INTO named VALUES ({k}, 1, 1), ({k}, 1, 1)")
            assert {result.error for result in client.tick()} == {None}
            db.execute(f"UPDATE named SET {name} = {name} + 1 WHERE k = {k}; DELETE FROM other WHERE v = {k}")
            db.execute(advance.format(k + 1))
            assert {result.error for result in client.tick()} == {None}
            assert all(result.matches for result in client.verify())


LATER = {
    "grouped": "SELECT a.k, count(*) AS n, sum(b.k) AS k_sum FROM named AS a JOIN named AS b USING (k) GROUP BY a.k",
    "left": "SELECT a.k, b.v FROM named AS a LEFT JOIN other AS b USING (k) WHERE a.k > 0",
    "counted": "SELECT count(*) AS n FROM named",
}
RESERVED = ("pgt_weight", "pgt_xid", "pgt_pos", "pgt_lsn", "pgt_at", "pgt_text", "pgt_before", "pgt_sign", "pgt_net")


@pytest.mark.parametrize("mode", ["statement", "row"])
@pytest.mark.parametrize("kind", ["bigint", "text", "place"])
def test_a_reserved_name_that_comes_later_is_no_obstacle(db: Database, mode: str, kind: str) -> None:
    db.execute("CREATE TABLE above (k int); CREATE TABLE named (k int); CREATE TABLE other (k int, v int)")
    db.execute("CREATE TYPE place AS (pos bigint, lsn text)")
    if mode == "row":
        db.execute("ALTER TABLE named INHERIT above")
    db.execute("SELECT pgtrickle.create_watermark_group('both', ARRAY['named', 'other'])")
    names = (*RESERVED, "pgt_copy", "pgt", "n", "pos", "lsn", "tg_op", "pgt_new", "pgt_old")
    with local_client(db.dsn) as (client, _):
        for table, query in LATER.items():
            client.create_stream_table(table, query)
        client.create_stream_table("held", "SELECT k FROM named", watermark_gating="hold_back")
        advance = "SELECT pgtrickle.advance_watermark(t, '2026-01-0{}Z') FROM unnest(ARRAY['named', 'other']) AS t"
        db.execute(advance.format(1))
        client.tick()
        db.execute("ALTER TABLE named " + ", ".join(f"ADD {name} {kind}" for name in names))
        value = {"bigint": "0", "text": "'x'", "place": "ROW(0, 'x')"}[kind]
        row = f"SELECT k, {', '.join([f'{value}::{kind}'] * len(names))} FROM generate_series"
        with db.connect(autocommit=False) as writer:
            writer.execute(f"INSERT INTO named {row}(0, 2) AS k")
            writer.execute("INSERT INTO other VALUES (1, 1)")
            writer.execute(advance.format(2))
            writer.execute(f"INSERT INTO named {row}(3, 4) AS k")
            writer.execute("UPDATE named SET k = k + 10 WHERE k = 4; DELETE FROM named WHERE k = 0")
        results = client.tick()
        assert {(result.action, result.error) for result in results} == {("DIFFERENTIAL", None)}
        assert all(result.matches for result in client.verify())
        assert sorted(db.execute("TABLE held")) == [(0,), (1,), (2,)]
        assert sorted(db.execute("SELECT k FROM named")) == [(1,), (2,), (3,), (14,)]
