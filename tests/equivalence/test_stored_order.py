"""Aggregates that take rows as they come: differential, in the order in which tables store their rows."""

import pytest

from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences
from tests.repeats import first

TABLES = """
    CREATE TABLE t (id int, k int, x text, v numeric, note text);
    CREATE TABLE s (k int, y text);
    CREATE AGGREGATE glued(text) (sfunc = textcat, stype = text, initcond = '');
    CREATE SCHEMA "My Tools"; CREATE AGGREGATE "My Tools"."Glued ""Texts"(text) (sfunc = textcat, stype = text);
    INSERT INTO t SELECT i, nullif(i % 4, 0), chr(64 + i), i / 10.0, '' FROM generate_series(1, 12) AS i;
    INSERT INTO s SELECT i, i::text FROM generate_series(1, 4) AS i"""
CHANGES = (
    "DELETE FROM t WHERE id IN (2, 5, 8)",
    "INSERT INTO t VALUES (20, 1, 'b', 1.0), (21, 2, 'a', 1.00), (22, NULL, NULL, NULL), (23, 9, 'z', 1)",
    "UPDATE t SET x = x || '!' WHERE id IN (1, 20, 4)",
    "DELETE FROM t WHERE k = 9; UPDATE t SET k = 3 WHERE id = 6",
    "INSERT INTO t VALUES (24, 1, 'b', 1.0); DELETE FROM t WHERE id = 20",
)
DIFFERENTIAL = {
    "text": "SELECT k, string_agg(x, ', ') AS s FROM t GROUP BY k",
    "everything": "SELECT string_agg(x, '') AS s, count(*) AS n FROM t",
    "array": "SELECT array_agg(x) AS s, array_agg(v) AS w, k, sum(v) AS v, min(x) AS x, max(id) AS m FROM t GROUP BY k",
    "json": "SELECT k, json_agg(x) AS s, jsonb_agg(v) AS vs, json_object_agg(id, v) AS o FROM t GROUP BY k",
    "xml": "SELECT k, xmlagg(xmlelement(name x, v, x)) AS s FROM t GROUP BY k",
    "own": "SELECT k, glued(x) AS s, bool_and(x > 'B') AS b, count(v) AS n FROM t GROUP BY k",
    "quoted": 'SELECT k, "My Tools"."Glued ""Texts"(x) FILTER (WHERE id > 2) AS s FROM t GROUP BY k',
    "quoted and sorted": 'SELECT k, "My Tools"."Glued ""Texts"(x ORDER BY id) AS s FROM t GROUP BY k',
    "filtered": "SELECT k, string_agg(x, ',') FILTER (WHERE v > 0.3) AS s FROM t WHERE id <> 3 GROUP BY k",
    "rows": "SELECT k, json_agg(t.*) AS s, array_agg(ROW(x, v)::text) AS r FROM t GROUP BY k",
    "around": "SELECT coalesce(json_agg(x), '[]') AS s, array_to_string(array_agg(x), '+') AS a FROM t GROUP BY k",
    "by an expression": "SELECT k + 1 AS k, string_agg(x || k, ',') AS s FROM t GROUP BY k + 1 HAVING count(*) > 1",
    "first": "SELECT k, string_agg(x, ',') AS s FROM t GROUP BY k ORDER BY k LIMIT 3",
    "through a view": "SELECT q.k, string_agg(q.x, ',') AS s FROM (SELECT * FROM t WHERE id < 23) AS q GROUP BY q.k",
}
# Over the rows of several tables, or beside DISTINCT, PostgreSQL's plan decides the order: only elements are compared.
JOINED = {
    "inner": "SELECT s.k, string_agg(t.x, ',') AS s, array_agg(t.id) AS ids FROM s JOIN t USING (k) GROUP BY s.k",
    "outer": "SELECT s.y, json_agg(json_build_object('x', t.x, 'v', t.v)) AS s FROM s LEFT JOIN t USING (k) GROUP BY 1",
    "no numbers": "SELECT s.k, json_agg(t.x) AS s FROM s LEFT JOIN t USING (k) GROUP BY s.k",
    "chosen": "SELECT k, array_agg(x) AS s FROM t WHERE k NOT IN (SELECT k FROM s WHERE y > '2') GROUP BY k",
    "of groups": "SELECT q.n, array_agg(q.k) AS s FROM (SELECT k, count(*) AS n FROM t GROUP BY k) AS q GROUP BY q.n",
    "distinct": "SELECT s.y, jsonb_agg(q.x) AS s FROM s JOIN (SELECT DISTINCT k, x FROM t) AS q USING (k) GROUP BY 1",
    "everything": "SELECT jsonb_agg(t.x) AS s, count(*) AS n FROM t FULL JOIN s USING (k)",
    "counted": "SELECT k, array_agg(x) AS s, count(DISTINCT v) AS n, stddev(v) AS d, "
    "count(DISTINCT x) FILTER (WHERE v > 1) AS f FROM t GROUP BY k",
}
JOINED_CHANGES = (
    *CHANGES,
    "UPDATE s SET k = 1 WHERE k = 3",
    "INSERT INTO s VALUES (2, '9'); DELETE FROM t WHERE k = 1",
)
FULL = {
    "own of joined": ("SELECT s.k, glued(t.x) AS s FROM t JOIN s USING (k) GROUP BY s.k", "those of one table"),
    "arms": (
        "SELECT string_agg(q.x, ',') AS s FROM (SELECT x FROM t UNION ALL SELECT y FROM s) AS q",
        "without ORDER BY over UNION ALL",
    ),
    "elements": (
        "SELECT t.id, array_agg(e) AS s FROM t CROSS JOIN unnest(ARRAY[x, 'a']) AS e GROUP BY t.id",
        "over the rows of a function",
    ),
    "numbered": (
        "SELECT q.r, array_agg(q.x) AS s FROM (SELECT x, rank() OVER (ORDER BY v) AS r FROM t) AS q GROUP BY q.r",
        "something below sorts",
    ),
    "changed": ("SELECT k, left(string_agg(x, ','), 3) AS s FROM t GROUP BY k", "without ORDER BY"),
    "last value": ("SELECT k, jsonb_object_agg('a', x) AS s FROM t GROUP BY k", "without ORDER BY"),
    "decides": ("SELECT k FROM t GROUP BY k HAVING string_agg(x, '') > 'C'", "without ORDER BY"),
    "sorts": ("SELECT k, string_agg(x, '') AS s FROM t GROUP BY k ORDER BY s LIMIT 2", "without ORDER BY"),
    "sorted below": (
        "SELECT string_agg(q.x, '') AS s FROM (SELECT x FROM t ORDER BY v) AS q, s",
        "something below sorts",
    ),
    "half sorted": (
        "SELECT k, string_agg(x, ',' ORDER BY id) AS s, string_agg(x, ',') AS u FROM t GROUP BY k",
        "string_agg() beside",
    ),
    "distinct": ("SELECT sum(DISTINCT v) AS n, string_agg(x, ',') AS u FROM t", "sum() beside"),
    "range": (
        "SELECT range_agg(numrange(v, v + 1)) AS r, array_agg(x) AS u FROM t",
        "range_agg() beside",
    ),
    "middle": (
        "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY v) AS m, array_agg(x) AS u FROM t",
        "without ORDER BY",
    ),
    "rounded": ("SELECT stddev(v::float8) AS d, array_agg(x) AS u FROM t", "stddev() over double precision"),
    "grouped twice": (
        "SELECT count(*) AS n FROM (SELECT string_agg(x, '') AS s FROM t GROUP BY k) AS q",
        "without ORDER",
    ),
}


def test_touched_groups_are_computed_anew_in_the_order_that_postgresql_reads(db: Database) -> None:
    db.execute(TABLES)
    with local_client(db.dsn) as (client, _):
        for name, query in DIFFERENTIAL.items():
            client.create_stream_table(f'"{name}"', query, refresh_mode="DIFFERENTIAL")
        assert {result.action for result in client.tick()} == {"FULL"}
        for change in CHANGES:
            db.execute(change)
            results = client.tick()
            assert [
                (each.stream_table, each.action, each.error) for each in results if each.action != "DIFFERENTIAL"
            ] == []
            for name, query in DIFFERENTIAL.items():
                assert not differences(db.connect(), f'"{name}"', query, True), name
        assert all(result.matches for result in client.verify())


def test_touched_groups_of_joined_rows_have_the_same_elements(every_db: Database) -> None:
    every_db.execute(TABLES)
    with local_client(every_db.dsn) as (client, _):
        for name, query in JOINED.items():
            client.create_stream_table(f'"{name}"', query, refresh_mode="DIFFERENTIAL")
        client.tick()
        for change in JOINED_CHANGES:
            every_db.execute(change)
            actions = {result.stream_table: (result.action, result.error) for result in client.tick()}
            assert set(actions.values()) <= {("DIFFERENTIAL", None), ("NO_DATA", None)}
            assert ("DIFFERENTIAL", None) in actions.values() and all(each.matches for each in client.verify())
    assert every_db.value("SELECT count(*) FROM \"inner\" WHERE s LIKE '%,%'"), "groups of several rows"


def test_joined_rows_are_taken_as_their_tables_store_them(db: Database) -> None:
    db.execute("CREATE TABLE o (id int, name text); INSERT INTO o VALUES (9, 'b'), (8, 'a'), (7, 'b')")
    db.execute("CREATE TABLE l (o int, x text); INSERT INTO l VALUES (8, 'z'), (7, 'y'), (9, 'x'), (7, 'c')")
    with local_client(db.dsn) as (client, _):
        lists = (
            "SELECT o.name, string_agg(l.x, '') AS xs, array_agg(o.id) AS ids FROM o JOIN l ON l.o = o.id GROUP BY 1"
        )
        client.create_stream_table("lists", lists, refresh_mode="DIFFERENTIAL")
        client.create_stream_table("outer_lists", lists.replace("JOIN", "LEFT JOIN"), refresh_mode="DIFFERENTIAL")
        client.tick()
        db.execute("INSERT INTO l VALUES (9, 'a'), (7, 'b'), (8, 'w')")
        assert {result.action for result in client.tick()} == {"DIFFERENTIAL"}
    assert sorted(db.execute("TABLE lists")) == [("a", "zw", [8, 8]), ("b", "xaycb", [9, 9, 7, 7, 7])]
    by_value = [("a", "wz", [8, 8]), ("b", "bcyax", [7, 7, 7, 9, 9])]
    assert sorted(db.execute("TABLE outer_lists")) == by_value, "numbers first, then texts"


def test_an_index_that_sorts_otherwise_does_not_decide_the_order(db: Database) -> None:
    """A touched group is looked up by its key: the index returns its rows sorted by what comes after the key."""
    db.execute("CREATE TABLE t (k int, x int)")
    db.execute("INSERT INTO t SELECT i % 1000, i FROM generate_series(1, 20000) AS i")
    db.execute("CREATE INDEX ON t (k, x DESC)")
    db.execute("VACUUM ANALYZE t")
    database = db.value("SELECT current_database()")
    for other_way in ("enable_bitmapscan", "enable_hashjoin", "enable_mergejoin", "enable_seqscan", "jit"):
        db.execute(f"ALTER DATABASE {database} SET {other_way} = off")
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("st", "SELECT k, array_agg(x) AS xs FROM t GROUP BY k", refresh_mode="DIFFERENTIAL")
        client.tick()
        db.execute("INSERT INTO t VALUES (7, 30000)")
        assert [result.action for result in client.tick()] == ["DIFFERENTIAL"]
    assert db.value("SELECT xs FROM st WHERE k = 7") == [*range(7, 20000, 1000), 30000]


@pytest.mark.parametrize("case", first(4, FULL))
def test_an_order_that_shows_otherwise_is_read_as_a_whole(db: Database, case: str) -> None:
    query, reason = FULL[case]
    db.execute(TABLES)
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("st", query)
        client.tick()
        for change in CHANGES[:3]:
            db.execute(change)
            (result,) = client.tick()
            assert (result.action, result.error) == ("FULL", None) and reason in result.reason
            assert not differences(db.connect(), "st", query, True)


def test_an_update_of_something_else_is_no_drift(db: Database) -> None:
    queries = {
        "texts": "SELECT k, string_agg(x, ',') AS s FROM t GROUP BY k",
        "arrays": "SELECT k, array_agg(x) AS s FROM t GROUP BY k",
        "joined": "SELECT t.k, json_agg(t.x) AS s FROM t JOIN s USING (k) GROUP BY t.k",
    }
    db.execute(TABLES)
    with local_client(db.dsn) as (client, _):
        for name, query in queries.items():
            client.create_stream_table(name, query)
        client.tick()
        db.execute("UPDATE t SET note = 'moved' WHERE id IN (1, 2, 3)")
        assert all(differences(db.connect(), name, query, True) for name, query in queries.items())
        client.tick()
        assert [result.matches for result in client.verify()] == [True, True, True]
        for name in queries:
            db.execute(f"ALTER TABLE {name} DISABLE TRIGGER USER")
        db.execute("UPDATE texts SET s = replace(s, 'E', 'F'); UPDATE arrays SET s = array_replace(s, 'E', 'F')")
        db.execute("UPDATE joined SET s = replace(s::text, 'E', 'F')::json")
        assert [result.matches for result in client.verify()] == [False, False, False]


def test_groups_at_a_cut_have_the_rows_within_it(db: Database) -> None:
    query = "SELECT k, array_agg(x) AS a, string_agg(x, ',') AS s, count(*) AS n FROM {} GROUP BY k"
    elements = "SELECT k, n, length(s) AS l, (SELECT array_agg(e ORDER BY e) FROM unnest(a) AS e) AS a FROM {} AS q"
    db.execute(TABLES)
    with local_client(db.dsn) as (client, _):
        client.create_watermark_group("both", ["t", "s"])
        client.create_stream_table("st", query.format("t"), watermark_gating="hold_back")
        for step, action in enumerate(("FULL", "DIFFERENTIAL", "DIFFERENTIAL")):
            db.execute(
                f"INSERT INTO t VALUES ({30 + step}, {step}, 'q', 1), (40, 9, 'q', 1); DELETE FROM t WHERE id = {step}"
            )
            for source in "ts":
                db.execute(f"SELECT pgtrickle.advance_watermark('{source}', '2024-01-0{step + 1}Z')")
            db.execute(f"CREATE TABLE seen{step} AS TABLE t")
            db.execute("DELETE FROM t WHERE id IN (1, 30); UPDATE t SET x = x || 'late' WHERE id IN (2, 5)")
            (result,) = client.tick()
            assert (result.action, result.error) == (action, None)
            expected = elements.format(f"({query.format(f'seen{step}')})")
            assert not differences(db.connect(), f"({elements.format('st')})", expected, True)
            assert [each.matches for each in client.verify()] == [True]


def test_another_order_below_the_top_of_a_query_is_no_drift(db: Database) -> None:
    texts = "SELECT k, string_agg(x, ',') AS s FROM t GROUP BY k"
    queries = {
        "derived": f"SELECT q.k, upper(q.s) AS s FROM ({texts}) AS q",
        "named": f"WITH c (a, b) AS ({texts}) SELECT b, a FROM c",
        "united": f"{texts} UNION ALL SELECT 100, 'a'",
        "viewed": "SELECT k, s FROM seen",
        "by_path": "SELECT k, string_agg('t'::text::regclass::text || x, ',') AS s FROM t GROUP BY k",
    }
    db.execute(TABLES)
    db.execute(f"CREATE VIEW seen AS {texts}")
    with local_client(db.dsn) as (client, _):
        for name, query in queries.items():
            client.create_stream_table(name, query)
        client.tick()
        db.execute("CREATE INDEX sorted ON t (x DESC); CLUSTER t USING sorted")
        assert [result.matches for result in client.verify()] == [True] * len(queries)
        db.execute("ALTER TABLE united DISABLE TRIGGER USER; UPDATE united SET s = replace(s, 'E', 'F')")
        assert [result.stream_table for result in client.verify() if not result.matches] == ["public.united"]
