"""Many changes at once: PostgreSQL is told of them before it plans how to join them."""

import pytest

import pytrickle
import pytrickle.plan.placement
from pytrickle.catalog.buffer_statistics import ALIKE, FINE
from pytrickle.plan.apply_plan import Action
from pytrickle.plan.auto import Choice
from tests.conftest import Database
from tests.equivalence.local_engine import local_client

OUTER = "SELECT l.id, r.v FROM l LEFT JOIN r ON r.k = l.k"
INNER = "SELECT l.id, r.v FROM l JOIN r ON r.k = l.k"


@pytest.mark.parametrize("query", [OUTER, INNER], ids=["outer", "inner"])
@pytest.mark.parametrize(("changes", "told"), [(999, False), (1_000, True)])
def test_many_changes_are_analyzed_before_they_are_joined(db: Database, query: str, changes: int, told: bool) -> None:
    db.execute("CREATE TABLE l (id int PRIMARY KEY, k int)")
    db.execute("CREATE TABLE r (k int PRIMARY KEY, v int)")
    db.execute("INSERT INTO r SELECT n, n FROM generate_series(1, 100) AS n")
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("joined", query, refresh_mode="DIFFERENTIAL")
        client.tick()
        buffer = db.value("SELECT buffer FROM pgtrickle.pgt_change_tracking WHERE source_relid = 'l'::regclass")
        db.execute(f"ALTER TABLE {buffer} SET (autovacuum_enabled = off)")
        db.execute(f"INSERT INTO l SELECT n, n % 200 FROM generate_series(1, {changes}) AS n")
        (result,) = client.tick()
        assert result.action == "DIFFERENTIAL" and client.verify("joined").matches
    known = "SELECT EXISTS (SELECT FROM pg_stats WHERE schemaname = 'pgtrickle_changes' AND attname = 'pgt_xid')"
    assert db.value(known) is told


@pytest.mark.parametrize(("few", "told"), [(99, ["l"]), (100, ["l", "r"])])
def test_few_changes_that_meet_many_are_analyzed_too(db: Database, few: int, told: list[str]) -> None:
    """Of changes that are new to its statistics PostgreSQL expects one, and would read the many for each of them."""
    db.execute("CREATE TABLE l (id int PRIMARY KEY, k int)")
    db.execute("CREATE TABLE r (k int PRIMARY KEY, v int)")
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("joined", INNER, refresh_mode="DIFFERENTIAL")
        client.tick()
        buffers = dict(db.execute("SELECT source_relid::regclass::text, buffer FROM pgtrickle.pgt_change_tracking"))
        for buffer in buffers.values():
            db.execute(f"ALTER TABLE {buffer} SET (autovacuum_enabled = off)")
        db.execute("INSERT INTO l SELECT n, n % 200 FROM generate_series(1, 4001) AS n")
        db.execute(f"INSERT INTO r SELECT n, n FROM generate_series(1, {few}) AS n")
        client.tick()
        assert client.verify("joined").matches
    known = "SELECT EXISTS (SELECT FROM pg_stats WHERE format('%%I.%%I', schemaname, tablename) = %s)"
    assert [source for source, buffer in sorted(buffers.items()) if db.value(known, buffer)] == told


def test_changes_that_were_analyzed_are_not_analyzed_for_the_next_stream_table(db: Database) -> None:
    db.execute("CREATE TABLE l (id int PRIMARY KEY, k int)")
    with local_client(db.dsn) as (client, _):
        for name in ("first", "second"):
            client.create_stream_table(name, "SELECT id, k FROM l", refresh_mode="DIFFERENTIAL")
        client.tick()
        buffer = db.value("SELECT buffer FROM pgtrickle.pgt_change_tracking WHERE source_relid = 'l'::regclass")
        db.execute(f"ALTER TABLE {buffer} SET (autovacuum_enabled = off)")
        analyzed = []
        for table, most in (("first", 12_000), ("second", 12_100), ("first", 30_000)):
            db.execute(f"INSERT INTO l SELECT n, n FROM generate_series((SELECT count(*) FROM l) + 1, {most}) AS n")
            client.refresh(table)
            assert client.verify(table).matches
            analyzed.append(db.value("SELECT pg_stat_get_analyze_count(%s::regclass)", buffer))
    # Of 12,100 changes 100 are new to the statistics; the 18,000 after them all are.
    assert analyzed == [1, 1, 2]


@pytest.mark.parametrize(("target", "parts"), [(100, FINE), (10, 10)])
def test_statistics_of_changes_are_as_fine_as_pays_and_as_the_server_has_them(
    db: Database, target: int, parts: int
) -> None:
    """To look at 30,000 rows, as PostgreSQL does by default, takes longer than many a delta."""
    db.execute(f"ALTER DATABASE {db.value('SELECT current_database()')} SET default_statistics_target = {target}")
    db.execute("CREATE TABLE l (id int PRIMARY KEY, k int)")
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("all_rows", "SELECT id, k FROM l", refresh_mode="DIFFERENTIAL")
        client.tick()
        buffer = str(db.value("SELECT buffer FROM pgtrickle.pgt_change_tracking"))
        db.execute(f"ALTER TABLE {buffer} SET (autovacuum_enabled = off)")
        db.execute("INSERT INTO l SELECT n, n FROM generate_series(1, 12000) AS n")
        client.tick()
        assert client.verify("all_rows").matches
    bounds = "SELECT cardinality(histogram_bounds::text::int[]) FROM pg_stats WHERE tablename = %s AND attname = 'id'"
    assert db.value(bounds, buffer.partition(".")[2]) == parts + 1


def test_of_changes_that_are_about_as_many_as_before_only_their_number_is_found_out(db: Database) -> None:
    db.execute("CREATE TABLE l (id int PRIMARY KEY, k int)")
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("all_rows", "SELECT id, k FROM l", refresh_mode="DIFFERENTIAL")
        client.tick()
        buffer = db.value("SELECT buffer FROM pgtrickle.pgt_change_tracking WHERE source_relid = 'l'::regclass")
        db.execute(f"ALTER TABLE {buffer} SET (autovacuum_enabled = off)")
        written = (
            "SELECT max(s.xmin::text::bigint) FROM pg_statistic AS s JOIN pg_attribute AS a"
            f" ON a.attrelid = s.starelid AND a.attnum = s.staattnum"
            f" WHERE s.starelid = '{buffer}'::regclass AND a.attname = "
        )
        seen = []
        for rows in (2_000, *[3_000] * ALIKE, 3_000, 7_000):
            db.execute(f"INSERT INTO l SELECT (SELECT count(*) FROM l) + n, n FROM generate_series(1, {rows}) AS n")
            client.tick()
            seen.append((db.value(f"{written}'pgt_xid'"), db.value(f"{written}'id'")))
        assert client.verify("all_rows").matches
    changes, content = zip(*seen, strict=True)
    assert len(set(changes)) == len(changes)
    assert [content.index(each) for each in content] == [*[0] * (1 + ALIKE), 1 + ALIKE, 2 + ALIKE]


def test_changes_that_no_delta_reads_are_not_analyzed(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pytrickle.plan.placement, "choose_action", lambda *_: Choice(Action.FULL, "told to", 10))
    db.execute("CREATE TABLE l (id int PRIMARY KEY, k int)")
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("all_rows", "SELECT id, k FROM l")
        client.tick()
        buffer = db.value("SELECT buffer FROM pgtrickle.pgt_change_tracking WHERE source_relid = 'l'::regclass")
        db.execute(f"ALTER TABLE {buffer} SET (autovacuum_enabled = off)")
        db.execute("INSERT INTO l SELECT n, n FROM generate_series(1, 20000) AS n")
        assert [result.action for result in client.tick()] == ["FULL"]
        assert client.verify("all_rows").matches
    assert _analyzed(db, buffer) is None


def test_a_state_is_analyzed_when_its_size_has_changed_and_only_then(db: Database) -> None:
    db.execute("CREATE TABLE l (id int PRIMARY KEY, k int)")
    queries = {
        "state": "SELECT k, sum(id) AS s FROM l GROUP BY k",
        "body": "SELECT k, id FROM l ORDER BY k, id LIMIT 3",
    }
    with local_client(db.dsn) as (client, _):
        kept = {}
        for kind, query in queries.items():
            client.create_stream_table(f"by_{kind}", query, refresh_mode="DIFFERENTIAL")
            client.tick()
            number = db.value("SELECT max(pgt_id) FROM pgtrickle.pgt_stream_tables")
            kept[kind] = f"pgtrickle_state.{kind}_{number}"
            db.execute(f"ALTER TABLE {kept[kind]} SET (autovacuum_enabled = off)")
        analyzed = []
        for rows in (8_000, 8_001, 8_002, 30_000, 30_001, 30_002):
            db.execute(f"INSERT INTO l SELECT n, n FROM generate_series((SELECT count(*) FROM l) + 1, {rows}) AS n")
            assert {result.action for result in client.tick()} == {"DIFFERENTIAL"}
            analyzed.append({kind: _analyzed(db, table) for kind, table in kept.items()})
        assert all(client.verify(f"by_{kind}").matches for kind in kept)
    for kind in kept:
        seen = [each[kind] for each in analyzed]
        # What a refresh fills is analyzed before the next one is planned.
        assert [found and found[0] for found in seen] == [None, 8_000, 8_000, 8_000, 30_000, 30_000], seen
        assert seen[1] == seen[2] == seen[3] and seen[4] == seen[5]


def _analyzed(db: Database, table: str) -> tuple[int, str] | None:
    """Return how many rows the statistics of a table know of, and the transaction that wrote them; None without any."""
    written = "SELECT max(xmin::text::bigint)::text FROM pg_statistic WHERE starelid = %s::regclass"
    xid = db.value(written, table)
    return (int(db.value("SELECT reltuples FROM pg_class WHERE oid = %s::regclass", table)), xid) if xid else None
