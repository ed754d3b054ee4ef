"""Subqueries in calls: of aggregates tied to rows around them, with HAVING or without, and of functions in FROM."""

from random import Random

import pytest

from pytrickle.errors import NotDifferentiable
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.played import batches, follow
from tests.servers import NEWEST

TABLES = """
    CREATE TABLE buyer (id int PRIMARY KEY, name text, region int);
    CREATE TABLE sale (id int PRIMARY KEY, buyer int, day date, amount int);
    CREATE TABLE line (id int PRIMARY KEY, sale int, pieces int);
    INSERT INTO buyer SELECT i, 'n' || i % 3, i % 4 FROM generate_series(1, 8) AS i;
    INSERT INTO sale SELECT i, nullif(i % 7, 0), '2026-01-01'::date + i % 9, i % 5 FROM generate_series(1, 20) AS i;
    INSERT INTO line SELECT i, i % 18, nullif(i % 6, 0) FROM generate_series(1, 40) AS i;
"""
OWN = "FROM sale s WHERE s.buyer = b.id"
LINES = "FROM line l WHERE l.sale = s.id"
QUERIES = {
    "nested": "SELECT b.id, (SELECT json_agg(json_build_object('id', s.id, 'lines',"
    f" (SELECT json_agg(l.pieces ORDER BY l.id) {LINES})) ORDER BY s.id)::text {OWN}) AS sales FROM buyer b",
    "summed": f"SELECT b.id, (SELECT sum((SELECT sum(l.pieces) {LINES})) {OWN}) AS n FROM buyer b",
    "counted": f"SELECT b.id, (SELECT count(*) FILTER (WHERE EXISTS (SELECT {LINES})) {OWN}) AS n FROM buyer b",
    "beside": f"SELECT b.id, x.n FROM buyer b, LATERAL (SELECT max((SELECT count(*) {LINES})) AS n {OWN}) AS x",
    "uncorrelated": f"SELECT b.id, (SELECT sum(s.amount * (SELECT max(l.pieces) FROM line l)) {OWN}) AS n FROM buyer b",
    "kept": f"SELECT b.id, (SELECT sum(s.amount) {OWN} HAVING count(*) > 2) AS n FROM buyer b",
    "kept_few": f"SELECT b.id, (SELECT count(*) {OWN} HAVING count(*) < 2) AS n FROM buyer b",
    "exists_having": f"SELECT b.id FROM buyer b WHERE EXISTS (SELECT 1 {OWN} HAVING sum(s.amount) > 4)",
    "lacks_having": f"SELECT b.id FROM buyer b WHERE NOT EXISTS (SELECT 1 {OWN} HAVING sum(s.amount) > 4)",
    "flag": f"SELECT b.id, EXISTS (SELECT 1 {OWN} HAVING count(*) = 0) AS none FROM buyer b",
    "lateral_having": f"SELECT b.id, x.n FROM buyer b, LATERAL (SELECT count(*) AS n {OWN} HAVING count(*) > 2) AS x",
    "left_having": "SELECT b.id, x.n, x.m FROM buyer b LEFT JOIN LATERAL"
    f" (SELECT count(*) AS n, max(s.day) AS m {OWN} HAVING count(*) <> 2) AS x ON true",
    "nested_having": f"SELECT b.id, (SELECT sum(s.amount) {OWN} HAVING max((SELECT count(*) {LINES})) > 2) AS n"
    " FROM buyer b",
    "days": "SELECT d.day::date AS day, count(s.id) AS n FROM generate_series((SELECT min(day) FROM sale),"
    " (SELECT max(day) FROM sale), interval '1 day') AS d (day) LEFT JOIN sale s ON s.day = d.day GROUP BY d.day",
    "elements": "SELECT u.v, u.n FROM unnest(ARRAY(SELECT pieces FROM line ORDER BY id)) WITH ORDINALITY AS u (v, n)",
    "numbered": "SELECT b.id, g.i FROM buyer b, generate_series(1, (SELECT count(*) FROM sale s WHERE s.buyer = b.id))"
    " AS g (i)",
    "filled": "SELECT b.id, g.i FROM buyer b LEFT JOIN generate_series(1, (SELECT max(s.amount) FROM sale s"
    " WHERE s.buyer = b.id)) AS g (i) ON g.i > 1",
    "on_the_right": "SELECT b.id, g.i FROM generate_series(1, (SELECT max(amount) FROM sale)) AS g (i)"
    " RIGHT JOIN buyer b ON b.region = g.i",
    "numbered_within": "SELECT b.id, (SELECT count(*) FROM sale k, generate_series(1, (SELECT max(s.amount) FROM sale s"
    " WHERE s.buyer = b.id)) AS g (i) WHERE k.buyer = b.id) AS n FROM buyer b",
    "two_functions": "SELECT g.i, h.j FROM generate_series(1, (SELECT max(amount) FROM sale)) AS g (i),"
    " generate_series(g.i, (SELECT max(region) FROM buyer)) AS h (j)",
}


def _change(random: Random) -> str:
    buyer, sale, line = random.randrange(1, 12), random.randrange(1, 25), random.randrange(1, 50)
    return random.choice(
        (
            f"INSERT INTO buyer VALUES ({buyer}, 'n', {random.randrange(4)}) ON CONFLICT (id) DO UPDATE SET region = 5",
            f"DELETE FROM buyer WHERE id = {buyer}",
            f"INSERT INTO sale VALUES ({sale}, {buyer}, '2026-01-{random.randrange(1, 12)}', 3) ON CONFLICT DO NOTHING",
            f"UPDATE sale SET buyer = {buyer}, amount = amount + 1 WHERE id = {sale}",
            f"DELETE FROM sale WHERE id % 6 = {random.randrange(6)}",
            f"UPDATE sale SET day = day + 1 WHERE id % 4 = {random.randrange(4)}",
            f"INSERT INTO line VALUES ({line}, {sale}, {random.randrange(9)}) ON CONFLICT DO NOTHING",
            f"UPDATE line SET sale = {sale}, pieces = nullif({random.randrange(4)}, 0) WHERE id % 7 = {line % 7}",
            f"DELETE FROM line WHERE id = {line}",
        )
    )


@pytest.mark.parametrize("every_db", (NEWEST,), indirect=True, ids="pg{}".format)
def test_subqueries_in_calls_are_followed(every_db: Database) -> None:
    every_db.execute(TABLES)
    follow(every_db, QUERIES, batches(5, _change, 10, range(2, 6)))


@pytest.mark.parametrize("more", ("", " GROUP BY s.buyer"))
def test_a_call_over_nothing_of_its_own_query_belongs_to_the_query_around_it(db: Database, more: str) -> None:
    db.execute(TABLES)
    query = (
        "SELECT b.id, (SELECT sum((SELECT max(l.pieces) FROM line l WHERE l.sale = b.id))"
        f" FROM sale s WHERE s.id = b.id{more}) AS n FROM buyer b GROUP BY b.id"
    )
    with local_client(db.dsn) as (client, _), pytest.raises(NotDifferentiable, match="of the query around it"):
        client.create_stream_table("refused", query, refresh_mode="DIFFERENTIAL")


def test_a_function_alone_whose_argument_reads_the_rows_around_its_query_is_refused(db: Database) -> None:
    db.execute(TABLES)
    pieces = "SELECT max(l.pieces) FROM line l WHERE l.sale = b.id"
    query = f"SELECT b.id, (SELECT count(*) FROM generate_series(1, ({pieces})) AS g (i)) AS n FROM buyer b"
    with local_client(db.dsn) as (client, _), pytest.raises(NotDifferentiable, match="a subquery in this place"):
        client.create_stream_table("refused", query, refresh_mode="DIFFERENTIAL")
