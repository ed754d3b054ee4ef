"""Objects that an aggregate makes of rows: differential where a unique key tells that no two keys of one are equal."""

import pytest

from pytrickle.errors import NotDifferentiable
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences
from tests.equivalence.played import assert_differential
from tests.repeats import first

TABLES = """
    CREATE TABLE p (id int PRIMARY KEY, c text); CREATE TABLE attr (id int PRIMARY KEY, name text UNIQUE);
    CREATE TABLE v (p int, attr int, value text, n numeric, PRIMARY KEY (p, attr));
    CREATE TABLE loose (p int, name text, value text, UNIQUE (p, name));
    INSERT INTO p SELECT i, i::text FROM generate_series(1, 5) AS i; INSERT INTO loose VALUES (1, 'a', 'x');
    INSERT INTO attr SELECT i, chr(64 + i) FROM generate_series(1, 5) AS i;
    INSERT INTO v SELECT 1 + i % 5, 1 + i / 5, i::text, i FROM generate_series(0, 20) AS i"""
CHANGES = (
    "DELETE FROM v WHERE p = 1 AND attr < 3; UPDATE v SET value = 'x' WHERE p = 2",
    "INSERT INTO p VALUES (9, '1'), (10, '2'); INSERT INTO v VALUES (9, 1, 'q', 1.0)",
    "UPDATE attr SET name = name || '!' WHERE id = 2; DELETE FROM v WHERE p = 3",
    "UPDATE v SET attr = 6 WHERE attr = 4; INSERT INTO loose VALUES (NULL, 'a', '1'), (NULL, 'a', '2')",
)
DIFFERENT = {
    "one": "SELECT p, jsonb_object_agg(attr, value) AS o, sum(n) AS n FROM v GROUP BY p",
    "text": "SELECT p, coalesce(jsonb_object_agg(attr::text, n) FILTER (WHERE n > 2), '{}') AS o FROM v GROUP BY p",
    "everything": "SELECT jsonb_object_agg(id, c) AS o FROM p",
    "named": "SELECT v.p, jsonb_object_agg(a.name, v.value) AS o FROM v JOIN attr AS a ON a.id = v.attr "
    "WHERE a.name IS NOT NULL GROUP BY v.p",
    "outer": "SELECT p.id, p.c, jsonb_object_agg(v.attr, v.value) FILTER (WHERE v.attr IS NOT NULL) AS o "
    "FROM p LEFT JOIN v ON v.p = p.id GROUP BY p.id, p.c",
}
EQUAL = (
    "SELECT p, jsonb_object_agg(value, attr) AS o FROM v GROUP BY p",
    "SELECT n, jsonb_object_agg(attr, value) AS o FROM v GROUP BY n",
    "SELECT p, jsonb_object_agg(attr % 2, value) AS o FROM v GROUP BY p",
    "SELECT p, jsonb_object_agg(name, value) AS o FROM loose GROUP BY p",
    "SELECT p.c, jsonb_object_agg(v.attr, v.value) AS o FROM p JOIN v ON v.p = p.id GROUP BY p.c",
    "SELECT v.p, jsonb_object_agg(v.attr, w.value) AS o FROM v JOIN v AS w ON w.attr = v.attr GROUP BY v.p",
)


def test_objects_whose_keys_differ_are_differential(every_db: Database) -> None:
    assert_differential(every_db, TABLES, {f'"{name}"': query for name, query in DIFFERENT.items()}, CHANGES)


@pytest.mark.parametrize("nth", first(1, range(len(EQUAL))))
def test_objects_whose_keys_may_be_equal_are_read_as_a_whole(db: Database, nth: int) -> None:
    db.execute(TABLES)
    with local_client(db.dsn) as (client, _), pytest.raises(NotDifferentiable, match="several may have the same key"):
        client.create_stream_table("st", EQUAL[nth], refresh_mode="DIFFERENTIAL")


def test_a_key_that_is_gone_tells_no_rows_apart_any_more(db: Database) -> None:
    db.execute(TABLES)
    query = DIFFERENT["one"]
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("st", query)
        client.tick()
        db.execute("ALTER TABLE v DROP CONSTRAINT v_pkey; INSERT INTO v VALUES (1, 1, 'a', 1), (1, 1, 'b', 1)")
        ((action, reason),) = ((result.action, result.reason) for result in client.tick())
        assert action in {"FULL", "REINITIALIZE"}, reason
        db.execute("DELETE FROM v WHERE p = 2")
        assert [(result.action, result.error) for result in client.tick()] == [("FULL", None)]
        assert not differences(db.connect(), "st", query, True)
