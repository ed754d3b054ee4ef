"""A role that may connect, and create in a schema of its own, lays hands on what belongs to the catalog."""

import subprocess
from pathlib import Path

import psycopg
import pytest

from pytrickle.catalog import install as migrate
from pytrickle.errors import InsufficientPrivilege
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.security.attempts import catalog, stopped
from tests.security.roles import House, ask
from tests.servers import binaries

CALLS = "pgtrickle.pgt_calls"
VERSIONS = "pgtrickle.pgt_schema_version"
# What a stranger may see of the catalog at all, he may only see.
GRASPS = {
    "a trigger on what it may insert into": (
        f"CREATE TRIGGER t BEFORE INSERT ON {CALLS} FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()"
    ),
    "a rule on what it may insert into": f"CREATE RULE r AS ON INSERT TO {CALLS} DO INSTEAD NOTHING",
    "a policy": f"CREATE POLICY p ON {CALLS}",
    "a child": f"CREATE TABLE mallory.child () INHERITS ({VERSIONS})",
    "a foreign key": f"CREATE TABLE mallory.fk (version integer REFERENCES {VERSIONS})",
    "an index": f"CREATE INDEX ON {VERSIONS} ((version / 0))",
    "statistics": f"CREATE STATISTICS mallory.s ON version, name FROM {VERSIONS}",
    "a publication": f"CREATE PUBLICATION p FOR TABLE {VERSIONS}",
    "a comment": f"COMMENT ON TABLE {VERSIONS} IS 'x'",
    "a comment on a function": "COMMENT ON FUNCTION pgtrickle.watermarks() IS 'x'",
    "a new owner": "ALTER FUNCTION pgtrickle.watermarks() OWNER TO mallory",
    "a new body": (
        "CREATE OR REPLACE FUNCTION pgtrickle_private.catalog_owner() RETURNS name"
        " LANGUAGE sql AS $$ SELECT 'mallory'::name $$"
    ),
    "another path": "ALTER FUNCTION pgtrickle_private.reads_all(name, regclass) SET search_path = mallory",
    "an overloaded function beside it": (
        "CREATE FUNCTION pgtrickle_private.reads_all(text, oid) RETURNS boolean RETURN true"
    ),
    "a table of the name of a sink's": "CREATE TABLE pgtrickle_sinks.sink_1_ff (id integer)",
    "a schema taken away": "DROP SCHEMA pgtrickle_sinks CASCADE",
    "a schema renamed": "ALTER SCHEMA pgtrickle RENAME TO mine",
    "what the owner owned, as one's own": "REASSIGN OWNED BY steward TO mallory",
    "what the owner owns, dropped": "DROP OWNED BY steward",
    "the owner's role": "SET ROLE steward",
    "the owner's session": "SET SESSION AUTHORIZATION steward",
    "the owner's settings": "ALTER ROLE steward SET search_path = mallory",
    "the database's settings": "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = mallory', "
        "current_database()); END $$",
    "triggers that fire for nobody": "SET session_replication_role = replica",
    "a read of the change buffers": "SELECT * FROM pgtrickle_changes.change_pos",
    "the state of aggregates": "CREATE VIEW mallory.v AS SELECT * FROM pgtrickle_state.query_1",
    "rows locked that it may read": f"SELECT * FROM {VERSIONS} FOR KEY SHARE",
    "rows locked through a view": "SELECT * FROM pgtrickle.pgt_readable_errors FOR UPDATE",
    "rows written through a view": "DELETE FROM pgtrickle.pgt_readable_late_rows",
    "the calls of others": f"SELECT caller FROM {CALLS}",
    "calls emptied": f"TRUNCATE {CALLS}",
    "a call forged by an update": f"UPDATE {CALLS} SET caller = 'steward'",
    "a file written from the catalog": f"COPY {VERSIONS} TO PROGRAM 'true'",
}  # fmt: skip


@pytest.mark.parametrize("grasp", GRASPS)
def test_nothing_of_the_catalog_is_within_the_grasp_of_a_stranger(home: House, grasp: str) -> None:
    mallory, before = home.session("mallory"), catalog(home.db)
    functions = "SELECT string_agg(p::text, '' ORDER BY oid) FROM pg_proc AS p WHERE pronamespace = %s::regnamespace"
    bodies = home.db.value(functions, "pgtrickle")
    assert stopped(mallory, GRASPS[grasp]) in ("42501", "55000")
    assert catalog(home.db) == before
    assert home.db.value(functions, "pgtrickle") == bodies


def test_no_sequence_of_the_catalog_is_drawn_from_or_set_by_a_stranger(home: House) -> None:
    mallory = home.session("mallory")
    found = home.db.execute(
        "SELECT c.oid::regclass::text FROM pg_class AS c WHERE c.relkind = 'S' AND "
        "c.relnamespace::regnamespace::text ~ '^pgtrickle'"
    )
    assert len(found) > 5
    for (sequence,) in found:
        before = home.db.execute(f"SELECT last_value, is_called FROM {sequence}")
        for attack in (f"SELECT nextval('{sequence}')", f"SELECT setval('{sequence}', 1)", f"SELECT * FROM {sequence}",
                       f"ALTER SEQUENCE {sequence} RESTART", f"CREATE TABLE mallory.n (n bigint DEFAULT "
                           f"nextval('{sequence}')); "
                       "INSERT INTO mallory.n DEFAULT VALUES"):  # fmt: skip
            assert stopped(mallory, attack) == "42501", attack
        assert home.db.execute(f"SELECT last_value, is_called FROM {sequence}") == before


def test_no_trigger_function_of_the_catalog_works_on_a_table_of_a_stranger(home: House) -> None:
    mallory = home.session("mallory")
    mallory.execute("CREATE TABLE mallory.mine (id integer)")
    ask(home.etl, "SELECT pgtrickle.set_event_time('orders', 'at')")
    found = home.db.execute(
        "SELECT p.oid::regproc::text FROM pg_proc AS p WHERE p.prorettype = 'trigger'::regtype AND "
        "p.pronamespace::regnamespace::text ~ '^pgtrickle'"
    )
    assert len(found) > 6
    for (function,) in found:
        attack = f"CREATE TRIGGER t AFTER INSERT ON mallory.mine FOR EACH ROW EXECUTE FUNCTION {function}()"
        assert stopped(mallory, attack) == "42501", function


@pytest.mark.parametrize("mode", ["ACCESS SHARE", "ROW SHARE", "ROW EXCLUSIVE", "SHARE", "ACCESS EXCLUSIVE"])
def test_no_table_or_view_of_the_catalog_is_locked_by_a_stranger_but_those_he_reads(home: House, mode: str) -> None:
    """What may be read may be locked against being dropped: no refresh ever wants that."""
    mallory = home.session("mallory", autocommit=False)
    found = home.db.execute(
        "SELECT c.oid::regclass::text, c.oid::regclass IN (SELECT pgtrickle_private.public_relations())"
        " FROM pg_class AS c"
        " WHERE c.relkind IN ('r', 'v') AND c.relnamespace::regnamespace::text ~ '^pgtrickle'"
    )
    assert len(found) > 25
    for name, readable in found:
        if not (readable and mode == "ACCESS SHARE"):
            assert stopped(mallory, f"LOCK TABLE {name} IN {mode} MODE") == "42501", name


TYPES = {
    "a column of the row type of a table": "CREATE TABLE mallory.t (c pgtrickle.pgt_stream_tables)",
    "a column of a composite type": "CREATE TABLE mallory.t (c pgtrickle.progress)",
    "an array of a composite type": "CREATE TABLE mallory.t (c pgtrickle.cut[])",
    "a typed table": "CREATE TABLE mallory.t OF pgtrickle.progress",
    "a domain over a type": "CREATE DOMAIN mallory.d AS pgtrickle.distance",
    "a composite type with a type in it": "CREATE TYPE mallory.c AS (c pgtrickle.pgt_watermarks)",
    "a function of a type": "CREATE FUNCTION mallory.f(pgtrickle.pgt_event_times) RETURNS int RETURN 1",
    "a temporary column": "CREATE TEMPORARY TABLE t (c pgtrickle.pgt_refresh_history)",
}


@pytest.mark.parametrize("use", TYPES)
def test_no_type_of_the_catalog_is_used_by_a_stranger_to_keep_a_table_from_being_altered(home: House, use: str) -> None:
    mallory = home.session("mallory")
    assert stopped(mallory, TYPES[use]) == "42501"
    own = "SELECT bool_and(has_type_privilege('steward', t.oid, 'USAGE')), count(*) > 30 FROM pg_type AS t"
    assert home.db.execute(f"{own} WHERE t.typnamespace = 'pgtrickle'::regnamespace AND t.typelem = 0") == [
        (True, True)
    ]


def test_types_that_were_for_everybody_are_taken_back_by_an_install_and_reported_before(home: House) -> None:
    home.etl.execute("GRANT USAGE ON TYPE pgtrickle.progress TO PUBLIC")
    assert migrate.grants(home.etl) == ("USAGE on TYPE progress to PUBLIC",)
    home.etl.execute("SELECT pgtrickle.settle_grants()")
    assert migrate.grants(home.etl) == ()
    assert stopped(home.session("mallory"), TYPES["a column of a composite type"]) == "42501"


def test_what_a_stranger_builds_on_the_public_functions_keeps_neither_an_install_nor_an_uninstall(home: House) -> None:
    mallory = home.session("mallory")
    for statement in (
        "CREATE VIEW mallory.v AS SELECT * FROM pgtrickle.late_rows()",
        "CREATE VIEW mallory.w AS SELECT * FROM pgtrickle.pgt_readable_errors",
        "CREATE TABLE mallory.t (owner name DEFAULT pgtrickle_private.catalog_owner())",
        "CREATE FUNCTION mallory.f() RETURNS name LANGUAGE sql"
        " BEGIN ATOMIC SELECT pgtrickle_private.catalog_owner(); END",
    ):
        mallory.execute(statement.encode())
    home.db.execute("UPDATE pgtrickle.pgt_schema_version SET checksum = 'earlier' WHERE version = 0")
    assert migrate.install(home.etl) == ("functions",)
    assert len(ask(mallory, "SELECT * FROM mallory.v")) == 0
    migrate.uninstall(home.etl)
    assert home.db.execute("SELECT relname FROM pg_class WHERE relnamespace = 'mallory'::regnamespace") == [("t",)]


def test_a_restored_dump_gives_a_stranger_nothing_and_reads_everything_anew(home: House, tmp_path: Path) -> None:
    """Numbers of relations are others in a restored database: nothing may be believed of them."""
    mallory = home.session("mallory")
    mallory.execute("CREATE TABLE mallory.mine (id integer)")
    mallory.execute("SELECT pgtrickle.advance_watermark('mallory.mine', '2026-03-01')")
    dump = tmp_path / "dump"
    programs = Path(binaries(home.db.version))
    subprocess.run([programs / "pg_dump", "-Fc", "-f", dump, home.db.dsn], check=True, capture_output=True)
    home.db.execute("DROP SCHEMA mallory CASCADE")
    migrate.uninstall(home.etl)
    home.db.execute("DROP TABLE IF EXISTS totals, orders CASCADE")
    subprocess.run([programs / "pg_restore", "-d", home.db.dsn, dump], check=False, capture_output=True)
    assert home.db.value("SELECT count(*) FROM pgtrickle.pgt_watermarks") == 1
    restored = home.db.connect(user="mallory")
    for grasp in ("a trigger on what it may insert into", "a new body", "rows locked that it may read"):
        assert stopped(restored, GRASPS[grasp]) == "42501"
    assert stopped(restored, "SELECT pgtrickle.gate_source('public.orders')") == "42501"
    # A dump does not say who may use the row type of a table.
    steward = home.db.connect(user="steward")
    assert all(grant.startswith("USAGE on TYPE ") for grant in migrate.grants(steward))
    ask(steward, "SELECT pgtrickle.settle_grants()")
    for use in TYPES.values():
        assert stopped(restored, use) == "42501"
    assert migrate.grants(steward) == ()


# Generated SQL finds names in this schema: what fits better than PostgreSQL's own would be called there.
BETTER = {
    "a function": "CREATE FUNCTION pgtrickle_state.generate_series(integer, bigint) RETURNS bigint RETURN 1",
    "an operator": "CREATE OPERATOR pgtrickle_state.* (FUNCTION = mallory.times, LEFTARG = numeric, RIGHTARG = int)",
    "an aggregate": "CREATE AGGREGATE pgtrickle_state.sum(integer) (SFUNC = int4pl, STYPE = integer)",
    "a type": "CREATE DOMAIN pgtrickle_state.text AS pg_catalog.text",
    "a table": "CREATE TABLE pgtrickle_state.pg_class (oid oid)",
    "a collation": "CREATE COLLATION pgtrickle_state.mine FROM \"C\"",
    "a function that was elsewhere": "ALTER FUNCTION mallory.times(numeric, integer) SET SCHEMA pgtrickle_state",
    "an operator that was elsewhere": "ALTER OPERATOR mallory.* (numeric, integer) SET SCHEMA pgtrickle_state",
    "a type that was elsewhere": "ALTER TYPE mallory.mine SET SCHEMA pgtrickle_state",
    "a table that was elsewhere": "ALTER TABLE mallory.lines SET SCHEMA pgtrickle_state",
    "the schema": "ALTER SCHEMA pgtrickle_state OWNER TO mallory",
}  # fmt: skip
MALLORYS = (
    "CREATE FUNCTION mallory.times(numeric, integer) RETURNS numeric RETURN 1000000",
    "CREATE OPERATOR mallory.* (FUNCTION = mallory.times, LEFTARG = numeric, RIGHTARG = integer)",
    "CREATE DOMAIN mallory.mine AS integer",
    "CREATE TABLE mallory.lines (id integer)",
)


@pytest.mark.parametrize("way", BETTER)
def test_nobody_but_the_owner_puts_anything_where_generated_sql_finds_names(home: House, way: str) -> None:
    """Not even a loader who was allowed to use the schema, and to create schemas of his own."""
    mallory = home.session("mallory", "USAGE ON SCHEMA pgtrickle_state", "INSERT ON orders")
    home.db.execute("DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO mallory', current_database()); END $$")
    for statement in MALLORYS:
        mallory.execute(statement.encode())
    content = "SELECT classid, objid FROM pg_depend WHERE refobjid = 'pgtrickle_state'::regnamespace ORDER BY 1, 2"
    before = home.db.execute(content)
    stopped(mallory, BETTER[way])
    assert home.db.execute(content) == before


def test_a_right_to_create_where_generated_sql_finds_names_is_reported_and_taken_back(home: House) -> None:
    mallory = home.session("mallory")
    home.etl.execute("GRANT CREATE ON SCHEMA pgtrickle_state TO PUBLIC")
    assert migrate.grants(home.etl) == ("CREATE on SCHEMA pgtrickle_state to PUBLIC",)
    home.etl.execute("SELECT pgtrickle.settle_grants()")
    assert (migrate.grants(home.etl), stopped(mallory, BETTER["a function"])) == ((), "42501")


@pytest.mark.parametrize("schema, action", [("pgtrickle", "DIFFERENTIAL"), ("pgtrickle_state", "FULL")])
def test_an_extension_that_somebody_put_into_a_schema_of_ours_is_named_and_changes_no_result(
    db: Database, schema: str, action: str
) -> None:
    """PostgreSQL lets whoever may create in the database do so, if the extension is trusted.

    What its operators would take the place of is refreshed as a whole, by the view in which all names are settled.
    """
    db.execute("CREATE TABLE lines (id integer, tags integer[])")
    db.execute("INSERT INTO lines VALUES (1, '{1,2}'), (2, '{2,NULL}')")
    db.create_role("mallory")
    db.execute("DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO mallory', current_database()); END $$")
    query = "SELECT tags, count(*) AS n FROM lines WHERE tags @> '{2}' GROUP BY tags"
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("tagged", query)
        client.tick()
        try:
            db.connect(user="mallory").execute(f"CREATE EXTENSION intarray SCHEMA {schema}".encode())
        except psycopg.errors.FeatureNotSupported:
            pytest.skip("this server has no extensions")
        db.execute("INSERT INTO lines VALUES (3, '{2,NULL}'), (4, '{3}')")
        assert [(str(result.action), result.error) for result in client.tick()] == [(action, None)]
        assert client.verify("tagged").matches
        with pytest.raises(InsufficientPrivilege, match=f"the extension intarray in the schema {schema} belongs to"):
            migrate.trust(db.connect())
        db.execute("DROP EXTENSION intarray")
        db.execute("INSERT INTO lines VALUES (5, '{2}')")
        assert client.tick()[0].error is None
        assert client.verify("tagged").matches
        assert migrate.trust(db.connect()) == "postgres"
