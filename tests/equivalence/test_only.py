"""ONLY: a table without its children, as long as it has none and from the tick on in which it gets one."""

from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences

QUERY = "SELECT k, count(*) AS n, sum(v) AS v FROM ONLY s GROUP BY k"


def test_a_table_read_alone_is_differential_until_it_has_a_child(db: Database) -> None:
    db.execute(
        "CREATE TABLE s (id int, k int, v int); INSERT INTO s SELECT i, i % 3, i FROM generate_series(1, 9) AS i"
    )

    def refreshed(*changes: str) -> str:
        for change in changes:
            db.execute(change)
        (result,) = client.tick()
        assert result.error is None and not differences(db.connect(), "st", QUERY, True)
        return result.action

    with local_client(db.dsn) as (client, _):
        client.create_stream_table("st", QUERY)
        assert refreshed() == "FULL"
        assert refreshed("UPDATE s SET v = v + 1 WHERE k = 1", "DELETE FROM s WHERE id = 9") == "DIFFERENTIAL"
        db.execute("CREATE TABLE child () INHERITS (s)")
        assert refreshed("INSERT INTO child VALUES (10, 1, 100)", "INSERT INTO s VALUES (11, 2, 7)") == "REINITIALIZE"
        assert refreshed("UPDATE s SET v = v + 5", "INSERT INTO child VALUES (12, 7, 1)") == "FULL"
        assert db.value("SELECT count(*) FROM st WHERE k = 7") == 0
        assert refreshed("ALTER TABLE child NO INHERIT s") == "REINITIALIZE"
        assert refreshed("INSERT INTO s VALUES (13, 7, 1)") == "DIFFERENTIAL"


def test_what_cannot_be_followed_is_read_whole_also_where_others_capture_its_source(db: Database) -> None:
    db.execute("CREATE TABLE s (id int, k int, v int); CREATE TABLE child () INHERITS (s)")
    queries = {"alone": QUERY, "placed": "SELECT tableoid AS part, k FROM s"}
    with local_client(db.dsn) as (client, _):
        for name, query in queries.items():
            client.create_stream_table(name, query)
        client.create_stream_table("captured", "SELECT k, v FROM s")
        client.tick()
        db.execute("SELECT pgtrickle.pause_stream_table(name) FROM unnest(ARRAY['alone', 'placed']) AS name")
        db.execute("INSERT INTO s VALUES (1, 1, 1)")
        assert [result.action for result in client.tick()] == ["DIFFERENTIAL"]  # and the change is cleaned up
        db.execute("SELECT pgtrickle.resume_stream_table(name) FROM unnest(ARRAY['alone', 'placed']) AS name")
        assert sorted(result.action for result in client.tick()) == ["FULL", "FULL", "NO_DATA"]
        for name, query in queries.items():
            assert not differences(db.connect(), name, query, True)


def test_what_came_to_be_read_as_a_whole_stays_at_its_watermark(db: Database) -> None:
    db.execute("CREATE TABLE s (id int, k int, v int); SELECT pgtrickle.create_watermark_group('g', ARRAY['s'])")
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("st", QUERY, watermark_gating="hold_back")

        def refreshed(day: int, *changes: str) -> tuple[str, str]:
            """Let rows be complete and others come after, and refresh."""
            db.execute(
                f"INSERT INTO s VALUES ({day}, 0, 1); SELECT pgtrickle.advance_watermark('s', '2024-01-0{day}Z')"
            )
            for change in (*changes, f"INSERT INTO s VALUES ({day}, 9, 9)"):
                db.execute(change)
            (result,) = client.tick()
            return result.action, result.reason

        assert refreshed(1)[0] == "FULL"
        assert db.execute("SELECT k, n, v FROM st ORDER BY k") == [(0, 1, 1)]
        waits = "g: public.s cannot be held back: it is read without its children (ONLY)"
        db.execute("CREATE TABLE child () INHERITS (s)")
        assert refreshed(2) == refreshed(3) == ("SKIP", waits)
        assert db.execute("SELECT k, n, v FROM st ORDER BY k") == [(0, 1, 1)]
        db.execute("ALTER TABLE child NO INHERIT s")
        assert refreshed(4)[0] == "SKIP"  # and is captured from now on
        assert refreshed(5)[0] == "REINITIALIZE"
        assert db.execute("SELECT k, n, v FROM st ORDER BY k") == [(0, 5, 5), (9, 4, 36)]
