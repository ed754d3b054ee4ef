"""The SQL/JSON constructors, which the planner passes on to PostgreSQL, and query functions, which it refuses."""

import pytest

from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences
from tests.servers import NEWEST

TABLES = """
CREATE TABLE docs (id int PRIMARY KEY, g int, j jsonb, t text);
CREATE TABLE limits (g int PRIMARY KEY, least int);
INSERT INTO limits VALUES (0, 2), (1, NULL);
"""
CONSTRUCTED = {
    "objects": """SELECT id,
        json_object('a : b': g, t || 'x': CASE WHEN g > 1 THEN t ELSE NULL END ABSENT ON NULL) AS o,
        json_object('in': json_array(g, NULL, ARRAY[id, g] NULL ON NULL RETURNING jsonb), 'RETURNING': 1 WITH UNIQUE
        RETURNING jsonb) AS u, json_object() AS e, json_array(t FORMAT JSON, id RETURNING varchar(40)) AS a
        FROM docs WHERE t IS NULL OR t IS JSON""",
    "written": "SELECT json_serialize(j RETURNING text) AS s, json_scalar(g) AS c FROM docs",
    "joined": """SELECT d.id, json_object('id': d.id, 'least': l.least, 'or': x.v RETURNING jsonb) AS o
        FROM docs AS d, LATERAL (SELECT json_array(d.t, d.g RETURNING jsonb) AS v) AS x
        LEFT JOIN limits AS l ON l.least::text <> x.v ->> 1""",
    "grouped": "SELECT json_array(g RETURNING jsonb) AS k, count(*) AS n FROM docs GROUP BY 1",
}
QUERIED = {
    "JSON_VALUE": "SELECT id, json_value(j, '$.n' RETURNING int DEFAULT 7 ON ERROR) AS v FROM docs",
    "JSON_QUERY": "SELECT id, json_query(j, '$.n' RETURNING int DEFAULT 7 ON ERROR) AS v FROM docs",
    "JSON_EXISTS": "SELECT id FROM docs WHERE json_exists(j, 'strict $.n.m' TRUE ON ERROR)",
    "JSON_TABLE": "SELECT d.id, x.v FROM docs AS d, json_table(j, '$' COLUMNS (v jsonb PATH '$.n')) AS x",
}
CHANGES = (
    """INSERT INTO docs VALUES (1, 0, '{"n": 1.5, "tags": [1, 5], "s": "x"}', '1'), (2, 1, '{"tags": [4]}', '"n"'),
    (3, 2, '{"n": "no", "s": [1]}', NULL), (4, NULL, NULL, 'no JSON'), (5, 2, '[]', 'null')""",
    "UPDATE docs SET j = j || '{\"tags\": [2, 3, 9]}' WHERE id < 3; INSERT INTO limits VALUES (2, 8)",
    "UPDATE docs SET g = g + 1, t = '[' || id || ']'; UPDATE limits SET least = 3 WHERE g = 1",
    "DELETE FROM docs WHERE id IN (1, 4); DELETE FROM limits WHERE g = 2",
)


@pytest.mark.parametrize("every_db", [NEWEST], indirect=True, ids="pg{}".format)
def test_json_of_the_standard_refreshes_differentially(every_db: Database) -> None:
    db, shown = every_db, set[str]()
    db.execute(TABLES)
    with local_client(db.dsn) as (client, _), db.connect() as connection:
        for name, query in CONSTRUCTED.items():
            client.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
        client.tick()
        for change in CHANGES:
            db.execute(change)
            assert {(result.action, result.error) for result in client.tick()} == {("DIFFERENTIAL", None)}
            for name, query in CONSTRUCTED.items():
                assert not differences(connection, name, query, True), (name, change)
                shown |= {name} if db.execute(f"SELECT FROM {name}") else set()
    assert shown == CONSTRUCTED.keys()


@pytest.mark.parametrize("every_db", [NEWEST], indirect=True, ids="pg{}".format)
def test_json_that_may_depend_on_an_earlier_row_is_computed_as_a_whole(every_db: Database) -> None:
    every_db.execute(TABLES + CHANGES[0])
    with local_client(every_db.dsn) as (client, _):
        for name, query in QUERIED.items():
            client.create_stream_table(name.lower(), query)
            reason = client.explain(name.lower()).data["full_reason"]
            assert reason == f"{name}, whose answer may depend on the row that was read before"
        assert {(result.action, result.error) for result in client.tick()} == {("FULL", None)}
    # The reason for the reason: the second row has no value, and so NULL is what the standard asks for.
    rows = "(VALUES (1, '\"no\"'::jsonb), (2, NULL)) AS r (id, j)"
    asked = f"SELECT id, json_value(j, '$' RETURNING int DEFAULT 7 ON ERROR) FROM {rows} WHERE id > %s ORDER BY id"
    assert every_db.execute(asked, 0) == [(1, 7), (2, 7)] and every_db.execute(asked, 1) == [(2, None)]
