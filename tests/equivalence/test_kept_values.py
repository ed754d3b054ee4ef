"""Equal values of which a group keeps one: nothing above it may show which, nor mistake the others for that one.

PostgreSQL moves a condition on what groups have in common to the rows below them, of which not all look alike.
"""

from typing import Any

import pytest

from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences
from tests.equivalence.runs import disable_jit
from tests.repeats import first

GROUPS = {
    "grouped": "(SELECT x, count(*) AS n FROM t GROUP BY x) AS q",
    "distinct": "(SELECT DISTINCT x, 1 AS n FROM t) AS q",
    "united": "(SELECT x, 1 AS n FROM t UNION SELECT x, 1 FROM t) AS q",
    "common": "(SELECT x, k AS n FROM t INTERSECT SELECT x, k FROM t) AS q",
    "common copies": "(SELECT x, k AS n FROM t INTERSECT ALL SELECT x, k FROM t) AS q",
    "remaining": "(SELECT x, k AS n FROM t EXCEPT SELECT x, k FROM t WHERE k > 5) AS q",
    "first": "(SELECT DISTINCT ON (x) x, id AS n FROM t ORDER BY x, id) AS q",
    "windowed": "(SELECT x, count(*) OVER (PARTITION BY x) AS n FROM t) AS q",
    "greatest": "(SELECT max(x) AS x, count(*) AS n FROM t GROUP BY k) AS q",
    "by a view": "w AS q",
    "by sets": "(SELECT x, count(*) AS n FROM t GROUP BY GROUPING SETS ((x), ())) AS q",
    "groups of groups": "(SELECT y.x, sum(y.n) AS n FROM (SELECT x, k, count(*) AS n FROM t GROUP BY x, k) AS y"
    " GROUP BY y.x) AS q",
}
TELLING = {
    "text": "q.x::text = '1'",
    "length": "length(q.x::text) = 1",
    "scale": "scale(q.x) = 0",
    "format": "format('%s', q.x) = '1'",
    "join": "EXISTS (SELECT FROM r WHERE r.s = q.x::text)",
    "case": "CASE WHEN q.n > 0 THEN q.x::text ELSE '' END = '1'",
    "row": "(q.*)::text LIKE '(1,%'",
}
SHOWING = {
    "shown": "SELECT q.x::text AS s, q.n FROM {} WHERE q.n > 0",
    "digits": "SELECT min_scale(q.x) + scale(q.x) AS s, q.n FROM {}",
    "json": "SELECT to_jsonb(q.x) ->> 0 AS s, q.n FROM {}",
    "divided": "SELECT q.x / 3 AS s, q.n FROM {}",
    "counted": "SELECT sum(length(q.x::text)) AS s FROM {}",
    "listed": "SELECT string_agg(q.x::text, ',' ORDER BY q.n, q.x::text) AS s FROM {}",
    "averaged": "SELECT avg(q.x) AS s FROM {}",
    "numbered": "SELECT row_number() OVER (ORDER BY q.x::text, q.n) AS s FROM {}",
    "first": "SELECT q.n FROM {} ORDER BY q.x::text, q.n LIMIT 1",
    "first below": "SELECT y.n FROM (SELECT q.n FROM {} ORDER BY q.x::text, q.n LIMIT 1) AS y",
    "lateral": "SELECT l.s, q.n FROM {}, LATERAL (SELECT q.x::text AS s) AS l",
    "correlated": "SELECT (SELECT count(*) FROM r WHERE r.s >= q.x::text) AS s, q.n FROM {}",
}
EQUAL = {
    "compared": "SELECT q.x, q.n FROM {} WHERE q.x = 1 AND q.x + 1 > 1 AND q.x IS NOT NULL AND q.x IN (1, 2)",
    "joined": "SELECT q.n, t.id FROM {} JOIN t ON t.x = q.x",
    "changed": "SELECT abs(q.x) + 1 AS x, coalesce(q.x, 0) AS y, q.x::double precision AS z, q.n FROM {}",
    "grouped": "SELECT q.x, count(*) AS n FROM {} GROUP BY q.x HAVING q.x < 5 AND max(q.x) < 6",
    "exists": "SELECT t.id FROM t WHERE EXISTS (SELECT FROM {} WHERE q.x >= t.x)",
    "rows": "SELECT q.x, q.n FROM {} WHERE (q.x, q.n) >= (1, 1)",
    "running": "SELECT q.n, sum(q.x) OVER (PARTITION BY q.x ORDER BY q.n, q.x) AS s FROM {}",
    "filtered": "SELECT count(DISTINCT q.n) FILTER (WHERE q.x > 1) AS c FROM {}",
    "whole": "SELECT count(q.*) AS c, count(DISTINCT q.*) AS d FROM {}",
}
BATCHES = (
    "INSERT INTO t VALUES (4, 1, 1.0), (5, 2, 2.00), (6, 6, 7)",
    "DELETE FROM t WHERE id = 1",
    "INSERT INTO t VALUES (7, 1, 1), (8, 2, 1.000); DELETE FROM r",
    "DELETE FROM t WHERE id IN (2, 5)",
)


def _play(db: Database, queries: dict[str, str], mode: str, exact: bool) -> None:
    disable_jit(db)
    db.execute("CREATE TABLE t (id int PRIMARY KEY, k int, x numeric); CREATE TABLE r (s text)")
    db.execute("INSERT INTO t VALUES (1, 1, 1), (2, 1, 1.00), (3, 2, 2); INSERT INTO r VALUES ('1'), ('2.00')")
    db.execute("CREATE VIEW w AS SELECT x, count(*) AS n FROM t GROUP BY x")
    with local_client(db.dsn) as (client, _):
        for name, query in queries.items():
            client.create_stream_table(name, query, refresh_mode=mode)
        client.tick()
        for batch in ("SELECT", *BATCHES):
            db.execute(batch)
            results = client.tick()
            assert [result.error for result in results if result.error] == [], batch
            wanted = {"DIFFERENTIAL", "NO_DATA"} if mode == "DIFFERENTIAL" else {"FULL", "NO_DATA"}
            assert {result.action for result in results} <= wanted, [r for r in results if r.action not in wanted]
            with db.connect() as connection:
                wrong = {name for name, query in queries.items() if differences(connection, name, query, exact)}
            assert wrong == set(), f"after {batch}: {queries[wrong.pop()]}"


def _groups(*without: str) -> list[Any]:
    """List the groups; all but one are left to the longer runs."""
    return first(1, (name for name in GROUPS if name not in without), then=2)


@pytest.mark.parametrize("group", _groups())
def test_a_condition_that_sees_the_text_of_a_kept_value_is_answered_by_postgresql(db: Database, group: str) -> None:
    queries = {f"q{i}": f"SELECT q.x, q.n FROM {GROUPS[group]} WHERE {test}" for i, test in enumerate(TELLING.values())}
    _play(db, queries, "AUTO", exact=True)


@pytest.mark.parametrize("group", _groups("first", "windowed"))
def test_an_expression_that_sees_the_text_of_a_kept_value_is_answered_by_postgresql(db: Database, group: str) -> None:
    queries = {f"q{i}": query.format(GROUPS[group]) for i, query in enumerate(SHOWING.values())}
    _play(db, queries, "AUTO", exact=True)


@pytest.mark.parametrize("group", _groups())
def test_what_only_compares_kept_values_refreshes_differentially(db: Database, group: str) -> None:
    queries = {f"q{i}": query.format(GROUPS[group]) for i, query in enumerate(EQUAL.values())}
    _play(db, queries, "DIFFERENTIAL", exact=False)


def test_operations_that_show_their_rows_as_they_are_show_their_texts_differentially(db: Database) -> None:
    shown = "SELECT q.x::text AS s, length(q.x::text) AS m, q.n FROM {} WHERE q.n > 0"
    windowed = "(SELECT x, id AS n, count(*) OVER (PARTITION BY x) AS m FROM t) AS q"
    totals = "(SELECT sum(x) AS x, k AS n FROM t GROUP BY k) AS q"
    exact_keys = "(SELECT id AS x, max(k) AS n FROM t GROUP BY id) AS q"
    items = [GROUPS["first"], windowed, totals, exact_keys]
    _play(db, {f"q{i}": shown.format(item) for i, item in enumerate(items)}, "DIFFERENTIAL", exact=True)


LOOSE = {
    "numeric": ("1", "1.00"),
    "interval": ("1 mon", "30 days"),
    "double precision": ("0", "-0"),
    "jsonb": ("1", "1.0"),
    "bpchar": ("x", "x  "),
    "text COLLATE nocase": ("A", "a"),
    "citext": ("A", "a"),
    "numeric[]": ("{1}", "{1.0}"),
    "numrange": ("[1,2)", "[1.0,2)"),
    "priced": ("(1,x)", "(1.0,x)"),
    "amount": ("2", "2.0"),
}
STRICT = {
    "numeric(10,2)": ("1", "1.00"),
    "integer[]": ("{1}", "{1}"),
    "mood": ("ok", "ok"),
    "size": ("2", "2"),
    "int4range": ("[1,3)", "[1,2]"),
    "counted": ("(1,x)", "(1,x)"),
    "timestamptz": ("2024-05-01 00:00+02", "2024-04-30 22:00+00"),
    "text": ("a", "a"),
    "inet": ("10.0.0.1", "10.0.0.1/32"),
}
TYPES = (
    "CREATE EXTENSION citext",
    "CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
    "CREATE TYPE mood AS ENUM ('ok', 'glad')",
    "CREATE TYPE priced AS (price numeric, label text); CREATE TYPE counted AS (number integer, label text)",
    "CREATE DOMAIN amount AS numeric; CREATE DOMAIN size AS integer",
)


@pytest.mark.parametrize(("types", "action"), [(LOOSE, "FULL"), (STRICT, "DIFFERENTIAL")], ids=["loose", "strict"])
def test_a_text_above_groups_is_differential_where_equal_values_have_one_text(
    db: Database, types: dict[str, tuple[str, str]], action: str
) -> None:
    for statement in TYPES:
        db.execute(statement)
    queries = {}
    for number, (name, (one, other)) in enumerate(types.items()):
        db.execute(f"CREATE TABLE t{number} (v {name}); INSERT INTO t{number} VALUES ('{one}')")
        groups = f"(SELECT v, count(*) AS n FROM t{number} GROUP BY v) AS q"
        queries[f"seen{number}"] = f"SELECT q.n FROM {groups} WHERE format('%s', q.v) = format('%s', '{one}'::{name})"
        queries[f"compared{number}"] = f"SELECT q.n FROM {groups} WHERE q.v = '{other}'::{name} AND q.v IS NOT NULL"
    with local_client(db.dsn) as (client, _):
        for name, query in queries.items():
            client.create_stream_table(name, query)
        client.tick()
        for number, (_, other) in enumerate(types.values()):
            db.execute(f"INSERT INTO t{number} VALUES ('{other}')")
        actions = {result.stream_table.removeprefix("public."): result.action for result in client.tick()}
        wanted = {name: action if name.startswith("seen") else "DIFFERENTIAL" for name in queries}
        assert actions == wanted
        with db.connect() as connection:
            assert [name for name, query in queries.items() if differences(connection, name, query, True)] == []
