"""What the text of a query names may be found elsewhere later: by an overload, a cast, another search configuration."""

import pytest

from tests.conftest import Database
from tests.equivalence.local_engine import local_client

FUNCTION = "LANGUAGE sql IMMUTABLE SET search_path = pg_catalog AS"
STATE = "CREATE TYPE state AS ENUM ('a', 'b'); CREATE TABLE x (id int, e state); INSERT INTO x VALUES (1, 'a')"
CAST = f"CREATE FUNCTION shout(state) RETURNS text {FUNCTION} 'SELECT ''cast''::text'; CREATE CAST (state AS text) WITH"
TEXTS = "CREATE TABLE x (id int, s text); INSERT INTO x VALUES (1, 'the dogs')"
RUNS = "CREATE FUNCTION f(int) RETURNS text LANGUAGE sql IMMUTABLE SECURITY DEFINER SET search_path = pg_catalog AS"
# What there is, the query, what is altered, and a row that is added then.
CASES = {
    "a cast": (STATE, "SELECT id FROM x WHERE e::text = 'a'", f"{CAST} FUNCTION shout(state)", "2, 'a'"),
    "a cast that goes": (
        f"{STATE}; {CAST} FUNCTION shout(state)",
        "SELECT id FROM x WHERE e::text = 'cast'",
        "DROP CAST (state AS text)",
        "2, 'a'",
    ),
    "an overload": (
        f"{TEXTS}; CREATE FUNCTION f(anyelement) RETURNS boolean {FUNCTION} 'SELECT $1 IS NOT NULL'",
        "SELECT id FROM x WHERE f(s)",
        f"CREATE FUNCTION f(text) RETURNS boolean {FUNCTION} 'SELECT false'",
        "2, 'a'",
    ),
    "an operator": (
        f"CREATE TABLE x (id int, k int); INSERT INTO x VALUES (1, 1);"
        f" CREATE FUNCTION f(bigint, bigint) RETURNS boolean {FUNCTION} 'SELECT $1 = $2';"
        " CREATE OPERATOR === (leftarg = bigint, rightarg = bigint, function = f)",
        "SELECT id FROM x WHERE k === 1",
        f"CREATE FUNCTION g(int, int) RETURNS boolean {FUNCTION} 'SELECT $1 <> $2';"
        " CREATE OPERATOR === (leftarg = int, rightarg = int, function = g)",
        "2, 1",
    ),
    "a configuration": (
        f"{TEXTS}; CREATE TEXT SEARCH CONFIGURATION c (COPY = simple)",
        "SELECT id, to_tsvector('c', s) AS v FROM x",
        "ALTER TEXT SEARCH CONFIGURATION c RENAME TO old; CREATE TEXT SEARCH CONFIGURATION c (COPY = english)",
        "2, 'the dogs'",
    ),
    "a mapping": (
        f"{TEXTS}; CREATE TEXT SEARCH CONFIGURATION c (COPY = simple)",
        "SELECT id, to_tsvector('c', s) AS v FROM x",
        "ALTER TEXT SEARCH CONFIGURATION c ALTER MAPPING FOR asciiword WITH english_stem",
        "2, 'the dogs'",
    ),
    "a dictionary": (
        f"{TEXTS}; CREATE TEXT SEARCH DICTIONARY d (TEMPLATE = simple)",
        "SELECT id, ts_lexize('d', s) AS v FROM x",
        "ALTER TEXT SEARCH DICTIONARY d (stopwords = english)",
        "2, 'the'",
    ),
    "an owner": (
        f"CREATE TABLE x (id int); INSERT INTO x VALUES (1); {RUNS} 'SELECT current_user::text';"
        " CREATE ROLE former_owner; CREATE ROLE later_owner; ALTER FUNCTION f OWNER TO former_owner",
        "SELECT id, f(id) AS v FROM x",
        "ALTER FUNCTION f OWNER TO later_owner",
        "2",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_a_name_is_found_to_be_is_noticed(db: Database, case: str) -> None:
    tables, query, altered, row = CASES[case]
    db.execute(tables)
    try:
        with local_client(db.dsn) as (client, _):
            client.create_stream_table("result", query)
            client.tick()
            db.execute(f"{altered}; INSERT INTO x VALUES ({row})")
            (result,) = client.tick()
            assert (result.error, result.action) == (None, "REINITIALIZE")
            assert client.verify("result").matches
            db.execute("INSERT INTO x SELECT * FROM x")
            client.tick()
            assert client.verify("result").matches
            assert client.tick()[0].action == "NO_DATA"
    finally:
        if case == "an owner":
            db.execute("DROP FUNCTION IF EXISTS f CASCADE; DROP ROLE IF EXISTS former_owner, later_owner")


def test_a_function_of_another_name_has_nothing_computed_anew(db: Database) -> None:
    db.execute(TEXTS)
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("result", "SELECT id, upper(s) AS u FROM x")
        client.tick()
        db.execute(f"CREATE FUNCTION f(text) RETURNS boolean {FUNCTION} 'SELECT false'; INSERT INTO x VALUES (2, 'b')")
        (result,) = client.tick()
        assert result.action == "DIFFERENTIAL" and client.verify("result").matches
