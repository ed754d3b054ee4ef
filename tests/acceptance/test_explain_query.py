"""A query explained before a stream table is made of it: what is told is what comes true, and nothing is left."""

from __future__ import annotations

import json

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

import pytrickle
from pytrickle.errors import InsufficientPrivilege, InvalidArgument, PytrickleError, QueryRefused
from tests.commands import commands
from tests.conftest import Database
from tests.security.roles import owner_of_a_catalog

TABLES = (
    "CREATE TABLE orders (id bigint PRIMARY KEY, customer bigint, amount numeric)",
    "CREATE TABLE customers (id bigint, name text)",
    "INSERT INTO orders SELECT i, i % 100, i FROM generate_series(1, 5000) AS i",
    "INSERT INTO customers SELECT i, 'c' || i FROM generate_series(0, 99) AS i",
    "ANALYZE orders, customers",
)
JOIN = "SELECT c.name, sum(o.amount) AS total FROM orders AS o JOIN customers AS c ON c.id = o.customer GROUP BY 1"
LEFT = (
    "SELECT (SELECT count(*) FROM pg_class), (SELECT count(*) FROM pg_trigger), (SELECT count(*) FROM pg_proc),"
    " (SELECT count(*) FROM pgtrickle.pgt_stream_tables), (SELECT count(*) FROM pgtrickle.pgt_change_tracking)"
)


@pytest.fixture
def shop(db: Database) -> Database:
    for statement in TABLES:
        db.execute(statement)
    return db


def test_a_query_is_explained_as_its_stream_table_will_be_and_nothing_is_left(shop: Database) -> None:
    before = shop.execute(LEFT)
    with pytrickle.connect(shop.dsn, engine="postgres") as pt:
        told = pt.explain(query=JOIN).data
        assert shop.execute(LEFT) == before
        pt.create_stream_table("totals", JOIN, initialize=True)
        shop.execute("UPDATE orders SET amount = 2 WHERE id = 1")
        shop.execute("UPDATE customers SET name = 'x' WHERE id = 1")
        comes_true = pt.explain("totals").data
        assert pt.refresh("totals").action == told["action"] == "DIFFERENTIAL"
    for fact in ("differential", "full_reason", "terms", "place", "stage", "missing_indexes", "engine"):
        assert told[fact] == comes_true[fact], fact
    assert sorted(told["missing_indexes"]) == [
        'CREATE INDEX ON "public"."customers" ("id")',
        'CREATE INDEX ON "public"."orders" ("customer")',
    ]
    assert [each["action"] for each in told["after"]] == ["DIFFERENTIAL", "DIFFERENTIAL", "FULL"]
    assert told["cost"]["whole"] > 10 and told["cost"]["delta"] > 0


def test_a_query_without_sources_has_a_first_load_and_nothing_after_it(shop: Database) -> None:
    with pytrickle.connect(shop.dsn, engine="postgres") as pt:
        told = pt.explain(query="SELECT 1 AS one")
    assert [each["changes"] for each in told.data["after"]] == [None]
    assert told.text.count("first load:") == 1


def test_an_index_that_is_named_as_missing_lowers_the_cost_that_is_expected(shop: Database) -> None:
    with pytrickle.connect(shop.dsn, engine="postgres") as pt:
        slow = pt.explain(query=JOIN).data
        for statement in slow["missing_indexes"]:
            shop.execute(statement)
        fast = pt.explain(query=JOIN).data
    assert not fast["missing_indexes"]
    assert fast["cost"]["delta"] < slow["cost"]["delta"] / 2


def test_an_aggregate_of_all_rows_within_a_query_is_named_and_is_not_as_a_table_of_its_own(shop: Database) -> None:
    above = "SELECT id, amount FROM orders WHERE amount > (SELECT avg(amount) FROM orders)"
    with pytrickle.connect(shop.dsn, engine="postgres") as pt:
        told = pt.explain(query=above)
        assert told.data["whole_aggregates"] == [["public.orders"]]
        assert "inner aggregate: computed from all rows of public.orders each time;" in told.text
        pt.create_stream_table("average", "SELECT avg(amount) AS amount FROM orders", initialize=True)
        apart = "SELECT o.id, o.amount FROM orders AS o JOIN average AS a ON o.amount > a.amount"
        for query in (apart, "SELECT id, max(amount) AS most FROM orders GROUP BY id", "SELECT count(*) FROM orders"):
            assert pt.explain(query=query).data["whole_aggregates"] == []


def test_no_writer_of_a_source_waits_for_an_explanation(shop: Database) -> None:
    with shop.connect(autocommit=False) as writer:
        writer.execute("UPDATE orders SET amount = 3 WHERE id = 1")
        with pytrickle.connect(shop.dsn, engine="postgres") as pt:
            shop.execute("SELECT pgtrickle.create_stream_table('c', 'SELECT id FROM customers')")
            assert pt.explain(query=JOIN).data["differential"]
            found = dict(shop.execute("SELECT property, value FROM pgtrickle.preview(%s)", JOIN))
            assert found["differential"].startswith("yes")


def test_a_query_without_a_delta_rule_ends_the_command_with_exit_code_3(shop: Database) -> None:
    run = commands(shop.dsn)
    assert run("--json", "explain", "--query", JOIN).exit_code == 0
    shown = run("--json", "explain", "--query", "SELECT now() AS at FROM orders")
    assert shown.exit_code == 3
    told = json.loads(shown.stdout)
    assert (told["differential"], told["action"]) == (False, "FULL") and "now()" in told["full_reason"]
    assert run("explain", "--query", "SELECT random() FROM orders").exit_code == 1
    for wrong in (("explain",), ("explain", "totals", "--query", JOIN)):
        assert run(*wrong).exit_code == 2


def test_what_could_not_be_created_is_refused_before_it_is_created(shop: Database) -> None:
    with pytrickle.connect(shop.dsn, engine="postgres") as pt:
        with pytest.raises(QueryRefused, match="volatile"):
            pt.explain(query="SELECT random() FROM orders")
        with pytest.raises(PytrickleError, match="nothing"):
            pt.explain(query="SELECT * FROM nothing")
        with pytest.raises(InvalidArgument):
            pt.explain("totals", query=JOIN)  # type: ignore[call-overload]
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        shop.execute("SELECT pgtrickle.preview('SELECT random() FROM orders')")


def test_a_caret_shows_where_in_the_query_postgresql_found_the_error(steady_db: Database) -> None:
    run = commands(steady_db.dsn)
    wrong = {
        "SELECT oid\n  FORM pg_class;": "LINE 2:   FORM pg_class;\n               ^\n",
        "SELECT nothing FROM pg_class": "LINE 1: SELECT nothing FROM pg_class\n               ^\n",
        "SELECT (oid": "LINE 1: SELECT (oid\n                   ^\n",
        "SELECT nothing, ';' FROM pg_class": "LINE 1: SELECT nothing, ';' FROM pg_class\n               ^\n",
        "SELECT 1;\nDROP TABLE t": "error: the defining query is not one SELECT statement that returns rows\n",
        "\n  DELETE FROM t": "error: the defining query is not one SELECT statement that returns rows\n",
        f"SELECT {'1, ' * 40} nothing FROM pg_class": f"LINE 1: ..., {'1, ' * 9} nothing FROM pg_class\n{' ' * 41}^\n",
    }
    for query, excerpt in wrong.items():
        shown = run("explain", "--query", query)
        assert shown.exit_code == 1 and excerpt in shown.stderr, shown.stderr
    assert "LINE" not in run("explain", "--query", "SELECT random() FROM pg_class").stderr
    with pytrickle.connect(steady_db.dsn, engine="postgres") as pt:
        with pytest.raises(PytrickleError) as failure:
            pt.create_stream_table("s", "SELECT oid\n  FORM pg_class;")
        assert failure.value.excerpt == "LINE 2:   FORM pg_class;\n               ^"


def test_who_may_create_may_explain(db: Database) -> None:
    owner = owner_of_a_catalog(db, "owner")
    owner.execute("CREATE TABLE orders (id bigint PRIMARY KEY)")
    with pytrickle.connect(make_conninfo(db.dsn, user="owner"), engine="postgres") as pt:
        assert pt.explain(query="SELECT count(*) FROM orders").data["differential"]
        pt.create_stream_table("many", "SELECT count(*) FROM orders")


def test_an_explanation_needs_the_rights_of_a_creation(shop: Database) -> None:
    stranger = shop.create_role("stranger")
    with pytrickle.connect(make_conninfo(shop.dsn, user=stranger), engine="postgres") as pt:
        with pytest.raises(InsufficientPrivilege):
            pt.explain(query="SELECT 1 AS one")
        with pytest.raises(InsufficientPrivilege):
            pt.create_stream_table("one", "SELECT 1 AS one")


def test_the_database_tells_of_a_query_what_it_knows(shop: Database) -> None:
    shop.execute("SELECT pgtrickle.create_stream_table('c', 'SELECT id FROM customers')")
    before = shop.execute(LEFT)
    told = shop.execute("SELECT property, value FROM pgtrickle.preview(%s)", JOIN)
    assert shop.execute(LEFT) == before
    assert [value for name, value in told if name == "source"] == [
        "public.customers is captured already",
        "public.orders would be captured",
    ]
    assert float(dict(told)["expected cost of the first load"]) > 10
    assert dict(shop.execute("SELECT * FROM pgtrickle.preview('SELECT now() FROM orders')"))["differential"].startswith(
        "no: "
    )


def test_names_can_be_copied_into_sql(db: Database) -> None:
    db.execute('CREATE TABLE "My Orders" (id integer, "Customer" integer); CREATE TABLE "order" ("Id" integer)')
    with pytrickle.connect(db.dsn) as client:
        query = 'SELECT m.id FROM "My Orders" AS m JOIN "order" AS o ON m."Customer" = o."Id"'
        client.create_stream_table('"Paired Orders"', query)
        text = str(client.explain('"Paired Orders"'))
    assert text.startswith('public."Paired Orders": ')
    assert 'source public."My Orders": ' in text and 'source public."order": ' in text
    assert 'join on "My Orders"."Customer" = "order"."Id"' in text
