"""Expressions over the row of which a unique key is grouped by, where equal values may look different."""

from random import Random

import pytest

from pytrickle.errors import NotDifferentiable
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.played import batches, follow
from tests.servers import NEWEST

TABLES = """
    CREATE TABLE owner (id int PRIMARY KEY, tags jsonb, rate numeric, lasts interval, code int, name text);
    CREATE TABLE item (id int PRIMARY KEY, owner int, price numeric, part int);
    INSERT INTO owner VALUES (1, '{"a": 1.0}', 1.0, '1 mon', 1, 'x'), (2, '{"a": 1}', 3, '30 days', 1, 'y'),
        (3, NULL, NULL, NULL, NULL, NULL), (4, '{"a": 2, "b": []}', 0.50, '1 day', 2, 'x');
    INSERT INTO item SELECT i, nullif(i % 5, 0), (i % 4)::numeric(9, 1), i % 3 FROM generate_series(1, 20) AS i;
"""
QUERIES = {
    "tagged": "SELECT o.id, o.tags ->> 'a' AS a, count(*) AS n"
    " FROM owner o JOIN item i ON i.owner = o.id GROUP BY o.id",
    "divided": "SELECT o.id, o.rate, o.rate / 3 AS third, sum(i.price) * o.rate AS n"
    " FROM owner o JOIN item i ON i.owner = o.id GROUP BY o.id",
    "alone": "SELECT id, rate::text || '!' AS shown, extract(epoch FROM lasts) AS s FROM owner GROUP BY id",
    "all_listed": "SELECT o.id, o.tags ->> 'a' AS a, max(i.part) AS p"
    " FROM owner o JOIN item i ON i.owner = o.id GROUP BY o.id, o.tags",
    "optional": "SELECT i.part, o.id, coalesce(o.rate::text, 'none') AS shown, count(*) AS n"
    " FROM item i LEFT JOIN owner o ON o.id = i.owner GROUP BY i.part, o.id, o.rate",
    "either": "SELECT o.id, o.tags -> 'a' AS a, o.lasts::text AS l, count(i.id) AS n"
    " FROM owner o FULL JOIN item i ON i.owner = o.id AND i.part = 1 GROUP BY o.id, o.tags, o.lasts",
    "of_both": "SELECT o.id, i.id AS item, (o.rate * i.price)::text AS shown, count(*) AS n"
    " FROM owner o JOIN item i ON i.owner = o.id GROUP BY o.id, i.id",
    "kept": "SELECT o.id, o.rate::text AS shown, count(*) AS n"
    " FROM owner o JOIN item i ON i.owner = o.id GROUP BY o.id HAVING count(*) > 2",
    "kept_by_tag": "SELECT o.id, count(*) AS n FROM owner o JOIN item i ON i.owner = o.id GROUP BY o.id"
    " HAVING o.tags ->> 'a' <> '1.0'",
    "below": "SELECT x.a, count(*) AS n FROM (SELECT o.id, o.tags ->> 'a' AS a, max(i.part) AS p"
    " FROM owner o JOIN item i ON i.owner = o.id GROUP BY o.id) AS x WHERE x.p > 1 GROUP BY x.a",
    "chosen": "SELECT o.id, o.rate::text AS shown, array_agg(i.id ORDER BY i.id) AS ids"
    " FROM owner o JOIN item i ON i.owner = o.id GROUP BY o.id ORDER BY o.id LIMIT 3",
}


def _change(random: Random) -> str:
    owner, rate = random.randrange(1, 7), random.choice(("1", "1.0", "1.00", "3", "0.5", "NULL"))
    tags = random.choice(("1", "1.0", "1.00", "2", "null"))
    return random.choice(
        (
            f"UPDATE owner SET rate = {rate} WHERE id = {owner}",
            f"UPDATE owner SET tags = '{{\"a\": {tags}}}' WHERE id % 2 = {owner % 2}",
            f"UPDATE owner SET lasts = '{random.choice(('1 mon', '30 days', '720:00'))}' WHERE id % 3 = {owner % 3}",
            f"DELETE FROM owner WHERE id = {owner}",
            f"INSERT INTO owner VALUES ({owner}, '{{\"a\": {tags}}}', {rate}, '1 mon') ON CONFLICT DO NOTHING",
            f"UPDATE item SET owner = {owner} WHERE id % 7 = {random.randrange(7)}",
            f"UPDATE item SET price = price + {random.choice(('0.00', '1'))} WHERE id % 5 = {random.randrange(5)}",
            f"DELETE FROM item WHERE id = {random.randrange(20)}",
            f"INSERT INTO item VALUES ({random.randrange(30)}, {owner}, {rate}, 1) ON CONFLICT DO NOTHING",
        )
    )


@pytest.mark.parametrize("every_db", (NEWEST,), indirect=True, ids="pg{}".format)
def test_groups_by_a_unique_key_show_what_is_computed_from_its_row(every_db: Database) -> None:
    every_db.execute(TABLES)
    follow(every_db, QUERIES, batches(11, _change, 12, range(2, 6)))


@pytest.mark.parametrize(
    "query",
    (
        # Several rows may have no code, and several have one part.
        "SELECT code, name, rate, rate::text AS shown FROM owner GROUP BY code, name, rate",
        "SELECT o.id, (o.rate * i.price)::text AS n FROM owner o JOIN item i ON i.owner = o.id GROUP BY o.id, i.price",
        "SELECT i.part, o.rate::text AS shown FROM owner o JOIN item i ON i.owner = o.id GROUP BY i.part, o.rate",
        "SELECT i.id, o.rate::text AS shown FROM item i CROSS JOIN owner o GROUP BY i.id, o.rate",
        # HAVING could spare what divides by zero.
        "SELECT o.id, o.tags, 1 / (o.rate - 1) AS n FROM owner o JOIN item i ON i.owner = o.id"
        " GROUP BY o.id, o.rate HAVING o.rate <> 1",
    ),
)
def test_what_a_group_has_several_rows_of_is_refused(db: Database, query: str) -> None:
    db.execute(f"{TABLES} CREATE UNIQUE INDEX ON owner (code, name)")
    with local_client(db.dsn) as (client, _), pytest.raises(NotDifferentiable, match="one of several equal values"):
        client.create_stream_table("refused", query, refresh_mode="DIFFERENTIAL")


@pytest.mark.parametrize(("column", "kind"), (("meta", "json"), ("spot", "point")))
def test_what_a_delta_cannot_compare_is_named(db: Database, column: str, kind: str) -> None:
    db.execute(f"{TABLES} ALTER TABLE owner ADD meta json, ADD spot point")
    query = f"SELECT o.id, o.{column}, count(*) AS n FROM owner o JOIN item i ON i.owner = o.id GROUP BY o.id"
    with local_client(db.dsn) as (client, _), pytest.raises(NotDifferentiable, match=f"{kind}, which have no order"):
        client.create_stream_table("refused", query, refresh_mode="DIFFERENTIAL")
