"""Everything that is generated belongs to the catalog's owner; a missing right fails one stream table alone."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from psycopg.conninfo import make_conninfo

import pytrickle
from pytrickle.catalog import install as migrate
from pytrickle.errors import InsufficientPrivilege
from tests.equivalence.local_engine import local_client
from tests.security.roles import House, Session, ask
from tests.sql.checks import refused

CREATE = "SELECT pgtrickle.create_stream_table('totals', 'SELECT id, amount FROM public.orders')"
OWNERS = """
SELECT DISTINCT pg_get_userbyid(owner) FROM (
    SELECT relowner AS owner FROM pg_class
    WHERE oid = 'totals'::regclass OR relnamespace::regnamespace::text ~ '^pgtrickle'
    UNION ALL SELECT proowner FROM pg_proc WHERE pronamespace::regnamespace::text ~ '^pgtrickle'
) AS o
"""


def member(house: House, *grants: str) -> Session:
    return house.session("alice", "etl", *grants)


@contextmanager
def local(dsn: str, user: str) -> Iterator[pytrickle.Client]:
    with local_client(make_conninfo(dsn, user=user)) as (client, _):
        yield client


def test_what_a_member_creates_belongs_to_the_owner_and_outlives_the_membership(house: House) -> None:
    alice = member(house)
    alice.execute("SET search_path = public")
    alice.execute(CREATE)
    alice.execute("SELECT pgtrickle.create_stream_table('sums', 'SELECT amount, sum(id) FROM orders GROUP BY amount')")
    loader = house.session("loader", "INSERT ON orders")
    loader.execute("INSERT INTO orders VALUES (1, 10)")
    with local(house.db.dsn, "alice") as client:
        assert {result.action for result in client.tick()} == {"FULL"}
    assert house.db.execute(OWNERS) == [("etl",)]
    house.db.execute("REVOKE etl FROM alice")
    loader.execute("INSERT INTO orders VALUES (2, 20)")
    with local(house.db.dsn, "etl") as client:
        assert {result.action for result in client.tick()} == {"DIFFERENTIAL"}
    assert ask(house.etl, "SELECT id, amount FROM totals ORDER BY id") == [(1, 10), (2, 20)]


def test_a_schema_in_which_the_owner_may_not_create_is_refused_with_the_grant(house: House) -> None:
    alice = member(house)
    with refused("42501", "GRANT USAGE, CREATE ON SCHEMA alice TO etl"):
        alice.execute("SELECT pgtrickle.create_stream_table('alice.totals', 'SELECT id FROM public.orders')")
    assert house.db.value("SELECT count(*) FROM pgtrickle.pgt_stream_tables") == 0


def test_a_missing_right_on_a_source_fails_that_table_alone_and_says_what_to_grant(house: House) -> None:
    house.etl.execute(CREATE)
    house.etl.execute("CREATE TABLE other (id integer)")
    house.etl.execute("SELECT pgtrickle.create_stream_table('others', 'SELECT id FROM other')")
    with local(house.db.dsn, "etl") as client:
        client.tick()
        house.db.execute("CREATE ROLE keeper")
        house.db.execute("ALTER TABLE orders OWNER TO keeper")
        house.db.execute("INSERT INTO orders VALUES (1, 1)")
        house.etl.execute("INSERT INTO other VALUES (1)")
        results = {result.stream_table: result for result in client.tick()}
        assert results["public.others"].action == "DIFFERENTIAL"
        assert results["public.totals"].action == "FAILED"
        assert "permission denied for public.orders" in str(results["public.totals"].error)
        with pytest.raises(InsufficientPrivilege) as denied:
            client.refresh("totals")
        assert denied.value.hint == "GRANT SELECT ON public.orders TO etl;"
        house.db.execute("GRANT SELECT ON orders TO etl")
        client.refresh("totals")
    assert ask(house.etl, "SELECT id FROM totals") == [(1,)]
    house.db.execute("DROP OWNED BY keeper CASCADE")
    house.db.execute("DROP ROLE keeper")


def test_a_buffer_that_belongs_to_another_role_fails_its_readers_alone(house: House) -> None:
    house.etl.execute(CREATE)
    house.etl.execute("CREATE TABLE other (id integer)")
    house.etl.execute("SELECT pgtrickle.create_stream_table('others', 'SELECT id FROM other')")
    house.session("alice")
    with local(house.db.dsn, "etl") as client:
        client.tick()
        buffer = house.db.value(
            "SELECT buffer FROM pgtrickle.pgt_change_tracking WHERE source_relid = 'orders'::regclass"
        )
        house.db.execute(f"ALTER TABLE {buffer} OWNER TO alice")
        house.etl.execute("INSERT INTO other VALUES (1)")
        results = {result.stream_table: result for result in client.tick()}
        assert (results["public.others"].action, results["public.totals"].action) == ("DIFFERENTIAL", "FAILED")
        assert "belongs to alice" in str(results["public.totals"].error)
        house.db.execute(f"ALTER TABLE {buffer} OWNER TO etl")
        house.db.execute("SELECT pgtrickle.resume_stream_table('totals')")
        assert all(result.action != "FAILED" for result in client.tick())


def test_default_privileges_of_whoever_creates_do_not_reach_what_is_generated(house: House) -> None:
    house.session("mallory")
    for role in ("etl", "postgres"):
        for kind in ("TABLES", "SEQUENCES", "FUNCTIONS", "SCHEMAS"):
            house.db.execute(f"ALTER DEFAULT PRIVILEGES FOR ROLE {role} GRANT ALL ON {kind} TO mallory, PUBLIC")
    alice = member(house)
    for kind in ("TABLES", "FUNCTIONS"):
        alice.execute(f"ALTER DEFAULT PRIVILEGES GRANT ALL ON {kind} TO mallory".encode())
    migrate.uninstall(house.etl)
    migrate.install(house.etl)
    alice.execute("SET search_path = public")
    alice.execute("SELECT pgtrickle.create_stream_table('s', 'SELECT amount, count(*) FROM orders GROUP BY amount')")
    alice.execute("SELECT pgtrickle.set_event_time('orders', 'at')")
    house.etl.execute("INSERT INTO orders VALUES (1, 1)")
    with local(house.db.dsn, "alice") as client:
        client.tick()
    assert house.db.execute("SELECT pgtrickle_private.foreign_grants()") == []
    house.db.execute("GRANT SELECT ON pgtrickle.pgt_late_rows TO mallory")
    house.db.execute("GRANT EXECUTE ON FUNCTION pgtrickle.trim_history(interval) TO PUBLIC")
    assert house.db.execute("SELECT pgtrickle_private.foreign_grants()") == [
        ("EXECUTE on trim_history(interval) to PUBLIC",),
        ("SELECT on pgt_late_rows to mallory",),
    ]
    house.etl.execute("SELECT pgtrickle.settle_grants()")
    assert house.db.execute("SELECT pgtrickle_private.foreign_grants()") == []
    for role in ("etl", "postgres"):
        for kind in ("TABLES", "SEQUENCES", "FUNCTIONS", "SCHEMAS"):
            house.db.execute(f"ALTER DEFAULT PRIVILEGES FOR ROLE {role} REVOKE ALL ON {kind} FROM mallory, PUBLIC")
