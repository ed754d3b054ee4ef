"""Functions that a defining query calls find what they name by its creator's search_path; nothing around them does."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

import pytrickle
from tests.conftest import Database
from tests.equivalence.local_engine import local_client

TOOLS = (
    "CREATE SCHEMA tools",
    "CREATE FUNCTION tools.twice(n integer) RETURNS integer IMMUTABLE LANGUAGE sql AS 'SELECT n * 2'",
    "CREATE FUNCTION tools.twice(n text) RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT n || n'",
    "CREATE FUNCTION tools.found(n integer) RETURNS integer IMMUTABLE STRICT LANGUAGE plpgsql"
    " AS 'BEGIN RETURN twice(n); END'",
    "CREATE FUNCTION tools.found(n text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN twice(n); END'",
    "CREATE FUNCTION tools.every(n integer) RETURNS SETOF integer IMMUTABLE LANGUAGE plpgsql"
    " AS 'BEGIN RETURN NEXT twice(n); END'",
    'CREATE FUNCTION tools."Any ""one"""(n integer) RETURNS integer IMMUTABLE LANGUAGE plpgsql'
    " AS 'BEGIN RETURN twice(n); END'",
    "CREATE OPERATOR tools.|*| (FUNCTION = tools.found, RIGHTARG = integer)",
    "CREATE TYPE tools.pair AS (a integer, b integer)",
    "CREATE FUNCTION tools.alike(tools.pair, tools.pair) RETURNS boolean IMMUTABLE LANGUAGE sql RETURN ($1).a = ($2).a",
    "CREATE OPERATOR tools.= (FUNCTION = tools.alike, LEFTARG = tools.pair, RIGHTARG = tools.pair)",
    'CREATE SCHEMA "More tools"',
    'CREATE FUNCTION "More tools".third(n integer) RETURNS integer IMMUTABLE LANGUAGE plpgsql'
    " AS 'BEGIN RETURN twice(n) + n; END'",
    "CREATE TABLE items (id integer, name text)",
    "INSERT INTO items VALUES (1, 'a'), (2, 'b'), (NULL, 'c')",
    "CREATE VIEW doubled AS SELECT id, tools.found(id) AS n, 'tools.found(' AS \"tools.found\" FROM items",
)
WRAPPED = {
    "called": "SELECT id, found(id) AS n, found(name) AS t FROM items",
    "called_in_a_view": 'SELECT n, "tools.found" AS t, count(*) AS rows FROM doubled GROUP BY 1, 2',
    "called_in_groups": "SELECT found(id) AS n, sum(found(id)) AS s FROM items GROUP BY 1 HAVING found(3) > 5",
    "called_by_a_strange_name": 'SELECT "Any ""one"""(id) AS n FROM items WHERE found(name) > \'aa\'',
    "called_in_another_schema": 'SELECT id, "More tools".third(id) AS n FROM items',
    "called_in_a_subquery": "SELECT id FROM items AS i WHERE found(i.id) IN (SELECT found(o.id) FROM items AS o)",
}
WHOLE = {
    "by_an_operator": ("SELECT |*| id AS n FROM items", r"tools\.found"),
    "as_a_set": ("SELECT id, n FROM items, every(id) AS e (n)", r"tools\.every"),
    "by_an_operator_that_is_not_named": (
        "SELECT id, NULLIF(ROW(id / 2, id)::tools.pair, ROW(id / 2, 7)::tools.pair) AS p FROM items",
        "an operator that its text does not name",
    ),
}


@pytest.fixture
def tools(db: Database) -> Iterator[tuple[Database, pytrickle.Client]]:
    for statement in TOOLS:
        db.execute(statement)
    with local_client(f"{db.dsn}?options=-csearch_path%3Dpublic,tools") as (client, _):
        yield db, client


def _shown(db: Database, relation: str) -> list[str]:
    with db.connect() as connection:
        connection.execute("SET search_path = public, tools")
        return sorted(row for (row,) in connection.execute(f"SELECT q::text FROM {relation} AS q".encode()))


def _change(db: Database) -> None:
    db.execute("INSERT INTO items VALUES (4, 'd'), (1, 'a'); DELETE FROM items WHERE id = 2")


def test_a_function_that_finds_another_by_the_path_is_called_for_changes_too(
    tools: tuple[Database, pytrickle.Client],
) -> None:
    db, client = tools
    for name, query in WRAPPED.items():
        client.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
    for action in ("FULL", "DIFFERENTIAL"):
        assert {(result.action, result.error) for result in client.tick()} == {(action, None)}
        for name, query in WRAPPED.items():
            assert _shown(db, name) == _shown(db, f"({query})")
            assert client.verify(name).matches
        _change(db)
    for name in WRAPPED:
        client.drop_stream_table(name)
    db.execute("DROP VIEW doubled")
    db.execute('DROP FUNCTION tools.found(text), tools."Any ""one"""(integer)')
    assert db.value("SELECT count(*) FROM pg_proc WHERE pronamespace = 'pgtrickle_state'::regnamespace") == 0


def test_what_no_wrapper_can_stand_for_is_read_as_a_whole_by_the_hidden_view(
    tools: tuple[Database, pytrickle.Client],
) -> None:
    db, client = tools
    for name, (query, reason) in WHOLE.items():
        with pytest.raises(pytrickle.errors.NotDifferentiable, match=reason):
            client.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
        client.create_stream_table(name, query)
    for _ in range(2):
        assert {(result.action, result.error) for result in client.tick()} == {("FULL", None)}
        for name, (query, _) in WHOLE.items():
            assert _shown(db, name) == _shown(db, f"({query})")
            assert client.verify(name).matches
        _change(db)


HELD = {
    **WHOLE,
    "by_a_function_in_a_view": ("SELECT id, n FROM listed", r"tools\.every"),
    "by_current_schema": ("SELECT id, CURRENT_SCHEMA AS s FROM items", "CURRENT_SCHEMA"),
    "by_both": ("SELECT found(id) AS n FROM items WHERE |*| id > 1", r"tools\.found"),
}


def test_what_only_the_hidden_view_reads_cannot_be_held_back(tools: tuple[Database, pytrickle.Client]) -> None:
    db, client = tools
    db.execute("CREATE VIEW listed AS SELECT i.id, e.n FROM items AS i, tools.every(i.id) AS e (n)")
    db.execute("SELECT pgtrickle.create_watermark_group('g', ARRAY['items'])")
    for name, (query, reason) in HELD.items():
        with pytest.raises(pytrickle.errors.QueryRefused, match=reason) as refusal:
            client.create_stream_table(name, query, watermark_gating="hold_back")
        assert refusal.value.hint == "Use watermark_gating => 'gate' or 'none' for this stream table."
        client.create_stream_table(name, query)
        with pytest.raises(pytrickle.errors.QueryRefused, match=reason):
            client.alter_stream_table(name, watermark_gating="hold_back")
        client.drop_stream_table(name)
    for name, query in WRAPPED.items():
        client.create_stream_table(name, query, watermark_gating="hold_back")
    expected = {name: _shown(db, f"({query})") for name, query in WRAPPED.items()}
    db.execute("SELECT pgtrickle.advance_watermark('items', '2024-01-01Z')")
    _change(db)
    assert {(result.action, result.error) for result in client.tick()} == {("FULL", None)}
    assert {name: _shown(db, name) for name in WRAPPED} == expected


def test_a_catalog_alone_refuses_to_hold_back_by_the_path(tools: tuple[Database, pytrickle.Client]) -> None:
    db, _ = tools
    with db.connect() as connection:
        connection.execute("SET search_path = public, tools")
        with pytest.raises(psycopg.errors.FeatureNotSupported, match=r"cannot hold back: .* tools\.every"):
            connection.execute(
                "SELECT pgtrickle.create_stream_table('s', 'SELECT n FROM items, every(id) AS e (n)', "
                "watermark_gating => 'hold_back')"
            )


def test_the_equality_of_an_extension_is_dropped_with_the_last_stream_table_that_compares_by_it(
    tools: tuple[Database, pytrickle.Client],
) -> None:
    db, client = tools
    db.execute("CREATE EXTENSION citext SCHEMA tools")
    db.execute("CREATE TABLE codes (code tools.citext)")
    db.execute("INSERT INTO codes VALUES ('A'), ('a'), ('b')")
    query = "SELECT NULLIF(code, 'B') AS code, code IS DISTINCT FROM 'a'::tools.citext AS other FROM codes"
    client.create_stream_table("kept", query, refresh_mode="DIFFERENTIAL")
    client.tick()
    db.execute("INSERT INTO codes VALUES ('B'); DELETE FROM codes WHERE code::text = 'A'")
    (result,) = client.tick()
    assert (result.action, _shown(db, "kept")) == ("DIFFERENTIAL", ["(,t)", "(,t)", "(a,f)"])
    client.drop_stream_table("kept")
    db.execute("DROP TABLE codes")
    db.execute("DROP EXTENSION citext")


def test_a_domain_whose_check_finds_names_by_the_path_is_refused_until_it_has_one(
    tools: tuple[Database, pytrickle.Client],
) -> None:
    db, client = tools
    db.execute(
        "CREATE FUNCTION tools.small(n integer) RETURNS boolean IMMUTABLE LANGUAGE plpgsql"
        " AS 'BEGIN RETURN twice(n) < 20; END'"
    )
    db.execute("CREATE DOMAIN tools.amount AS integer CHECK (tools.small(VALUE))")
    db.execute("SET search_path = public, tools; ALTER TABLE items ADD amount amount DEFAULT 5")
    db.execute("CREATE TYPE tools.priced AS (n tools.amount)")
    row, array = "ROW(id)::tools.priced", "ARRAY[id::amount]"
    queries = {name: f"SELECT id, {shown} AS a FROM items" for name, shown in (("row", row), ("nested", array))}
    for query in queries.values():
        with pytest.raises(pytrickle.errors.PytrickleError, match=r"a domain that is checked by tools\.small") as error:
            client.create_stream_table("kept", query)
        assert "ALTER FUNCTION tools.small(integer) SET search_path" in str(error.value.hint)
    for shown in ("id::amount + 1", "amount"):
        client.create_stream_table("shown", f"SELECT id, {shown} AS n FROM items")
        assert [(result.action, result.error) for result in client.tick()] == [("FULL", None)]
        _change(db)
        assert [(result.action, result.error) for result in client.tick()] == [("FULL", None)]
        assert client.verify("shown").matches
        client.drop_stream_table("shown")
    db.execute("ALTER FUNCTION tools.small(integer) SET search_path = tools")
    for name, query in queries.items():
        client.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
    client.tick()
    _change(db)
    assert {result.action for result in client.tick()} == {"DIFFERENTIAL"}
