"""Subqueries in FROM that refer to the rows around their query, and what is listed in the order that one sorts by."""

import pytest

from pytrickle.errors import NotDifferentiable
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.played import assert_differential
from tests.repeats import in_parts

TABLES = """
CREATE TABLE d (id int PRIMARY KEY, k int, v numeric);
CREATE TABLE u (id int PRIMARY KEY, k int, v numeric, at date);
INSERT INTO d SELECT i, i % 7, i FROM generate_series(1, 30) AS i;
INSERT INTO u SELECT i, i % 9, (i * 37) % 50, date '2026-01-01' + i FROM generate_series(1, 60) AS i;
CREATE VIEW newest AS SELECT json_agg(q.v) AS vs FROM (SELECT v FROM u ORDER BY at DESC, id LIMIT 5) AS q
"""
CHANGES = (
    "INSERT INTO u VALUES (900, 3, 1000, NULL), (901, 100, 5, NULL); INSERT INTO d VALUES (900, 100), (901, NULL)",
    "UPDATE u SET v = v + 50 WHERE id % 17 = 0",
    "UPDATE u SET k = NULL WHERE id BETWEEN 50 AND 55; DELETE FROM u WHERE k = 2",
    "UPDATE d SET k = k + 1 WHERE id < 9",
    "DELETE FROM d WHERE id > 20; INSERT INTO u SELECT i + 2000, i % 9, i FROM generate_series(1, 9) AS i",
)
OF = "FROM u WHERE u.k = d.k"
CORRELATED = {
    "highest": f"(SELECT json_agg(q.v ORDER BY q.v) FROM (SELECT u.v {OF} ORDER BY u.v DESC, u.id LIMIT 2) AS q)",
    "most": f"(SELECT max(q.n) FROM (SELECT u.v, count(*) AS n {OF} GROUP BY u.v) AS q)",
    "different": f"(SELECT count(*) FROM (SELECT DISTINCT u.v {OF}) AS q)",
    "any high": f"EXISTS (SELECT FROM (SELECT u.v {OF} ORDER BY u.v, u.id LIMIT 3) AS q WHERE q.v > 10)",
    "among": f"(d.v IN (SELECT q.v FROM (SELECT DISTINCT u.v {OF}) AS q)) IS TRUE",
    "joined": f"(SELECT count(*) FROM u AS x JOIN (SELECT DISTINCT u.v {OF}) AS q ON q.v = x.v WHERE x.k = 3)",
    "outer": f"(SELECT count(q.v) FROM u AS x LEFT JOIN (SELECT u.v, u.k {OF}) AS q ON q.k = x.k)",
    "both": f"(SELECT sum(q.v) FROM (SELECT u.v {OF} UNION ALL SELECT e.v FROM d AS e WHERE e.k = d.k) AS q)",
    "elements": f"ARRAY(SELECT q.v FROM (SELECT u.v {OF} ORDER BY u.v DESC, u.id LIMIT 2) AS q ORDER BY q.v)",
}
SORTED = {
    "objects": "SELECT d.id, (SELECT json_agg(q) FROM "
    f"(SELECT u.id, u.v {OF} ORDER BY u.v DESC, u.id LIMIT 3) AS q) AS s FROM d",
    "rows": "SELECT d.id, (SELECT coalesce(json_agg(row_to_json(q)), '[]') FROM "
    f"(SELECT u.id {OF} ORDER BY 1) AS q) AS s FROM d",
    "by another": "SELECT d.id, (SELECT string_agg(q.v::text, ',') FROM "
    f"(SELECT u.v {OF} ORDER BY u.id DESC) AS q) AS s FROM d",
    "distinct": "SELECT array_agg(k) AS ks FROM (SELECT DISTINCT k FROM u ORDER BY k DESC NULLS LAST) AS q",
    "groups": "SELECT array_agg(q.k) AS ks FROM (SELECT k, count(*) FROM u GROUP BY k ORDER BY count(*) DESC, k) AS q",
    "renamed": "SELECT array_agg(q.a) AS ks FROM (SELECT k, id FROM u ORDER BY k, id) AS q (a, b) WHERE q.b > 9",
    "lateral": f"SELECT d.id, l.s FROM d LEFT JOIN LATERAL (SELECT jsonb_agg(q.v) AS s FROM (SELECT u.v {OF} "
    "ORDER BY u.at, u.id LIMIT 2) AS q) AS l ON true",
    "view": "SELECT d.id, newest.vs FROM d CROSS JOIN newest",
}
DIFFERENT = "FROM (SELECT DISTINCT u.v FROM u WHERE u.k = min(d.id)) AS q"
OF_GROUPS = {
    "least": f"SELECT k, (SELECT max(q.v) {DIFFERENT}) AS m, count(*) AS n FROM d GROUP BY k",
    "kept": f"SELECT k, sum(v) AS v FROM d GROUP BY k HAVING EXISTS (SELECT {DIFFERENT} WHERE q.v > 3)",
    "first": "SELECT k, (SELECT sum(q.v) FROM "
    "(SELECT u.v FROM u WHERE u.k = count(d.id) ORDER BY u.v DESC, u.id LIMIT 2) AS q) AS m FROM d GROUP BY k",
}
NOT_TOLD = {
    "whole rows": "SELECT jsonb_agg(q.*) AS s FROM (SELECT k, v FROM u ORDER BY at, id LIMIT 5) AS q",
    "renamed": "SELECT array_agg(q.a) AS s FROM (SELECT v FROM u ORDER BY id) AS q (a)",
    "grouped": "SELECT q.k, array_agg(q.v) AS s FROM (SELECT k, v FROM u ORDER BY id) AS q GROUP BY q.k",
    "joined": "SELECT array_agg(q.v) AS s FROM (SELECT k, v FROM u ORDER BY id) AS q JOIN d ON d.k = q.k",
}


def play(db: Database, queries: dict[str, str]) -> None:
    assert_differential(db, TABLES, {f'"{name}"': query for name, query in queries.items()}, CHANGES)


@in_parts(3)
def test_a_subquery_in_from_sees_the_rows_around_its_query(every_db: Database, nth: int) -> None:
    names = list(CORRELATED)[nth::3]
    play(every_db, {name: f"SELECT d.id, {CORRELATED[name]} AS s FROM d" for name in names})


def test_it_sees_what_is_computed_of_a_group(every_db: Database) -> None:
    play(every_db, OF_GROUPS)


@in_parts(2)
def test_what_a_subquery_sorts_is_listed_in_its_order(every_db: Database, nth: int) -> None:
    play(every_db, {name: SORTED[name] for name in list(SORTED)[nth::2]})


@pytest.mark.parametrize("case", NOT_TOLD)
def test_an_order_that_calls_cannot_be_told_is_read_as_a_whole(db: Database, case: str) -> None:
    db.execute(TABLES)
    with local_client(db.dsn) as (client, _), pytest.raises(NotDifferentiable, match="something below sorts"):
        client.create_stream_table("st", NOT_TOLD[case], refresh_mode="DIFFERENTIAL")
