"""Values that are equal but not the same: a condition on the rows around a subquery may tell them apart.

Both texts of a pair below are one value to GROUP BY and DISTINCT; every query compares what they look like.
"""

import pytest

from tests.conftest import Database
from tests.engines import double_under
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences
from tests.equivalence.runs import disable_jit
from tests.repeats import only
from tests.servers import NEWEST

PAIRS = {
    "interval": ("1 mon", "30 days"),
    "numeric": ("1", "1.00"),
    "double precision": ("0", "-0"),
    "jsonb": ("1", "1.0"),
    "bpchar": ("x", "x  "),
    "text COLLATE nocase": ("A", "a"),
    "citext": ("A", "a"),
    "numeric[]": ("{1,2}", "{1,2.0}"),
    "text[] COLLATE nocase": ("{A,b}", "{a,b}"),
    "numrange": ("[1,2)", "[1.0,2)"),
    "nummultirange": ("{[1,2)}", "{[1.0,2)}"),
    "priced": ("(1,x)", "(1.0,x)"),
    "exotic.amount": ("2", "2.0"),
    "date_and_more.amount": ("2", "2.0"),
}
PREAMBLE = (
    "CREATE EXTENSION citext",
    "CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
    "CREATE TYPE priced AS (price numeric, label text)",
    "CREATE SCHEMA exotic; CREATE DOMAIN exotic.amount AS numeric",
    "CREATE SCHEMA date_and_more; CREATE DOMAIN date_and_more.amount AS numeric",
    'CREATE TABLE r (id int, k int, s text COLLATE "C")',
)
LOOKS = "r.s >= (format('%s', p.v) COLLATE \"C\")"
QUERIES = {
    "found": f"SELECT p.id FROM p WHERE EXISTS (SELECT FROM r WHERE {LOOKS})",
    "missing": f"SELECT p.id FROM p WHERE NOT EXISTS (SELECT FROM r WHERE {LOOKS})",
    "counted": f"SELECT p.id, (SELECT count(*) FROM r WHERE {LOOKS}) AS n FROM p",
    "single": f"SELECT p.id, (SELECT r.id FROM r WHERE {LOOKS} ORDER BY r.id LIMIT 1) AS n FROM p",
    "listed": f"SELECT p.id, ARRAY(SELECT r.id FROM r WHERE {LOOKS} ORDER BY r.id) AS n FROM p",
    "greatest": f"SELECT p.id, x.n FROM p CROSS JOIN LATERAL (SELECT max(r.id) AS n FROM r WHERE {LOOKS}) AS x",
    "first": f"SELECT p.id, x.id AS n FROM p, LATERAL (SELECT r.id FROM r WHERE {LOOKS} ORDER BY r.id LIMIT 1) AS x",
    "optional": f"SELECT p.id, r.id AS n FROM p LEFT JOIN r ON {LOOKS}",
    "either": f"SELECT p.id, r.id AS n FROM p FULL JOIN r ON r.k = p.k AND {LOOKS}",
    "compared": "SELECT p.id FROM p WHERE format('%s', p.v) COLLATE \"C\" < ANY (SELECT r.s FROM r)",
    "among": f"SELECT p.id FROM p WHERE p.k IN (SELECT r.k FROM r WHERE {LOOKS})",
    "unrolled": "SELECT p.id FROM p WHERE EXISTS"
    " (SELECT FROM r, generate_series(1, length(format('%s', p.v))) AS g (i)"
    f" WHERE g.i = r.id AND {LOOKS})",
}


# A base type and a collation; then one that pads, a domain, an extension's type, and what is made of a base type.
KINDS = {"numeric", "text COLLATE nocase"}
FURTHER_KINDS = {"bpchar", "exotic.amount", "citext", "priced"}


@pytest.mark.parametrize("type_name", only(KINDS, PAIRS, then=FURTHER_KINDS))
def test_subqueries_see_each_of_two_equal_values(db: Database, type_name: str) -> None:
    _play(db, type_name)


@pytest.mark.parametrize("type_name", only((), ("interval", "text COLLATE nocase"), then={"interval"}))
def test_subqueries_see_each_of_two_equal_values_where_the_engine_joins(db: Database, type_name: str) -> None:
    _play(db, type_name, small_delta_rows=0, direct_delta_rows=0)


def _play(db: Database, type_name: str, **settings: int) -> None:
    disable_jit(db)
    one, other = sorted(PAIRS[type_name])
    for statement in (*PREAMBLE, f"CREATE TABLE p (id int PRIMARY KEY, k int, v {type_name})"):
        db.execute(statement)
    db.execute(f"INSERT INTO p VALUES (1, 1, '{one}'), (2, 1, '{other}'), (3, 1, NULL)")
    db.execute("INSERT INTO r VALUES (1, 1, %s)", (one,))
    assert db.execute("SELECT count(*) FROM (SELECT DISTINCT v FROM p WHERE v IS NOT NULL) AS x") == [(1,)]
    batches = (
        "SELECT",
        f"DELETE FROM r; INSERT INTO r VALUES (1, 1, '{one}')",
        f"INSERT INTO r VALUES (2, 1, '{one}'), (3, 1, '{other}'), (NULL, 2, NULL)",
        f"INSERT INTO p VALUES (4, 1, '{other}'), (5, 1, '{one}'), (6, 2, '{other}')",
        "DELETE FROM r WHERE id = 1; DELETE FROM p WHERE id = 2",
        f"UPDATE p SET v = '{one}' WHERE id > 3",
        "TRUNCATE r",
    )
    with local_client(db.dsn, **settings) as (client, _):
        for name, query in QUERIES.items():
            client.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
        for batch in batches:
            db.execute(batch)
            wrong = [result.error for result in client.tick() if result.error]
            assert not wrong, f"{batch}: {wrong}"
            with db.connect() as connection:
                different = {name for name, query in QUERIES.items() if differences(connection, name, query, True)}
            assert different == set(), f"after: {batch}"


# Rows of p that all look the same have one answer, whichever of them a group, DISTINCT or an extreme shows.
SHOWING = {
    "single_values": "SELECT DISTINCT v FROM p",
    "grouped": "SELECT v, count(*) AS n FROM p GROUP BY v",
    "hidden": "SELECT coalesce(v, v) AS w, k, count(*) AS n FROM p GROUP BY v, k HAVING count(*) > 0",
    "present": "SELECT DISTINCT k, v FROM p WHERE k IN (SELECT q.k FROM p AS q)",
    "counted_present": "SELECT k, v, count(*) AS n FROM p WHERE k IN (SELECT q.k FROM p AS q) GROUP BY v, k",
    "united": "SELECT v FROM p UNION SELECT v FROM p AS q WHERE q.id > 2",
    "foremost": "SELECT v, count(*) AS n FROM p GROUP BY v ORDER BY n, v LIMIT 2",
    "collected": "SELECT v, array_agg(id) AS ids FROM p GROUP BY v",
}
EXTREMES = {
    "least": "SELECT k, min(v) AS v FROM p GROUP BY k",
    "greatest": "SELECT max(v) AS v FROM p",
}
WITHOUT_LEAST = {"jsonb", "numrange", "nummultirange", "priced"}


@pytest.mark.parametrize("type_name", only(KINDS, PAIRS, then=FURTHER_KINDS))
def test_what_is_shown_once_looks_as_a_row_looks_that_is_there(db: Database, type_name: str) -> None:
    disable_jit(db)
    one, other = PAIRS[type_name]
    queries = SHOWING if type_name in WITHOUT_LEAST else {**SHOWING, **EXTREMES}
    for statement in (*PREAMBLE, f"CREATE TABLE p (id int PRIMARY KEY, k int, v {type_name})"):
        db.execute(statement)
    with local_client(db.dsn) as (client, _):
        for name, query in queries.items():
            mode = "AUTO" if name == "collected" else "DIFFERENTIAL"
            client.create_stream_table(name, query, refresh_mode=mode)
        for batch in (
            f"INSERT INTO p VALUES (1, 1, '{one}'), (2, 1, '{one}'), (3, 1, NULL)",
            f"UPDATE p SET v = '{other}' WHERE id < 3",
            f"INSERT INTO p VALUES (4, 1, '{one}'); DELETE FROM p WHERE id < 3",
            f"INSERT INTO p VALUES (5, 1, '{other}'), (6, 1, '{one}')",
            "DELETE FROM p WHERE id IN (4, 6)",
        ):
            db.execute(batch)
            wrong = [result.error for result in client.tick() if result.error]
            assert not wrong, f"{batch}: {wrong}"
            ((looks,),) = db.execute("SELECT count(DISTINCT format('%s', v) COLLATE \"C\") FROM p WHERE v IS NOT NULL")
            with db.connect() as connection:
                different = {
                    name for name, query in queries.items() if differences(connection, name, query, looks == 1)
                }
            assert different == set(), f"after: {batch}"


@pytest.mark.parametrize(
    ("query", "anew"),
    {
        "SELECT extract(year FROM at) AS y, count(*) AS n FROM sold GROUP BY 1": False,
        "SELECT extract(epoch FROM at) AS e, count(*) AS n FROM sold GROUP BY 1": True,
        "SELECT price, count(*) AS n FROM sold GROUP BY price": False,
        "SELECT price * (1 - rate) AS p, count(*) AS n FROM sold GROUP BY 1": False,
        "SELECT price * open AS p, count(*) AS n FROM sold GROUP BY 1": True,
        "SELECT open, count(*) AS n FROM sold GROUP BY open": True,
        "SELECT count(*) AS n FROM sold GROUP BY open": False,
        "SELECT DISTINCT price + rate AS p FROM sold": False,
        "SELECT price AS p FROM sold UNION SELECT 2 * price FROM sold": False,
        "SELECT price AS p FROM sold UNION SELECT rate FROM sold": True,
    }.items(),
)
def test_groups_are_computed_anew_only_where_equal_keys_may_look_different(
    db: Database, query: str, anew: bool
) -> None:
    db.execute("CREATE TABLE sold (id int, at date, price numeric(9, 2), rate numeric(9, 4), open numeric)")
    db.execute("INSERT INTO sold VALUES (1, '2026-01-01', 1, 1, 1), (2, '2026-05-01', 1, 1, 1.00)")
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("shown", query, initialize=True)
        assert (client.explain("shown").data["recomputation_sql"] is not None) is anew
        for change in ("DELETE FROM sold WHERE id = 1", "UPDATE sold SET rate = 1, price = 1.0, open = 1.0"):
            db.execute(change)
            client.tick()
            with db.connect() as connection:
                # Where both of two equal values are there, PostgreSQL may show either.
                assert differences(connection, "shown", query, exact=not anew) == []


@pytest.mark.parametrize("every_db", (NEWEST,), indirect=True, ids="pg{}".format)
def test_what_two_sides_have_looks_as_on_the_left(every_db: Database) -> None:
    db = every_db
    arms = "SELECT x.a, x.f, x.i FROM x", "SELECT y.a, y.f, y.i FROM y"
    queries = {
        operation.lower().replace(" ", "_"): f"{arms[0]} {operation} {arms[1]}"
        for operation in ("INTERSECT", "INTERSECT ALL", "EXCEPT ALL")
    }
    for name in ("x", "y"):
        db.execute(f"CREATE TABLE {name} (a numeric, f double precision, i interval)")
    db.execute("INSERT INTO x VALUES (1.0, 0, '1 mon'), (1.0, 0, '1 mon'), (2, 3, '1 day')")
    db.execute("INSERT INTO y VALUES (1.00, '-0', '30 days'), (2.0, 3, '24:00')")
    with local_client(db.dsn) as (client, _), db.connect() as connection:
        for name, query in queries.items():
            client.create_stream_table(f"st_{name}", query, refresh_mode="DIFFERENTIAL")
        for batch in ("SELECT", "UPDATE x SET a = a * 1.00; UPDATE y SET a = a + 0.000", "INSERT INTO y TABLE y"):
            db.execute(batch)
            assert not [result.error for result in client.tick() if result.error]
            for name, query in queries.items():
                assert not differences(connection, f"st_{name}", query, True), f"{name} after: {batch}"


def test_a_type_of_somebody_else_is_not_taken_for_the_one_whose_name_it_has(db: Database) -> None:
    with db.connect() as connection:
        connection.execute("""
            CREATE SCHEMA app; CREATE DOMAIN app.int8 AS numeric(10,2); CREATE TABLE prices (id int, price app.int8);
            INSERT INTO prices VALUES (1, 1.2), (2, 1.4), (3, 1.4), (4, 2), (5, NULL)""")
    query = "SELECT id, rank() OVER (PARTITION BY price ORDER BY id) AS place FROM prices"
    with double_under(db.dsn) as client, db.connect() as connection:
        client.create_stream_table("places", query, refresh_mode="DIFFERENTIAL")
        client.tick()
        assert not differences(connection, "places", query, True)
        connection.execute("INSERT INTO prices VALUES (0, 1.3), (6, 2.00)")
        client.tick()
        assert not differences(connection, "places", query, True)
