"""Members of the groups, makers of stream tables, and those who create in public: each may do its own, and no more."""

from __future__ import annotations

import pytest

from pytrickle.catalog import install as migrate
from pytrickle.errors import PytrickleError
from tests.equivalence.local_engine import local_client
from tests.repeats import first
from tests.security.attempts import catalog, stopped
from tests.security.roles import House, Session, ask


def creator(home: House) -> Session:
    """Return a session of a role that creates in public, and nothing else."""
    mallory = home.session("mallory")
    home.db.execute("GRANT CREATE ON SCHEMA public TO mallory")
    return mallory


OPERATOR = {
    "another query": "SELECT pgtrickle.alter_stream_table('totals', query => 'SELECT 1 AS id, 2 AS amount')",
    "a new stream table": "SELECT pgtrickle.create_stream_table('mine', 'SELECT id FROM orders')",
    "a stream table dropped": "SELECT pgtrickle.drop_stream_table('totals')",
    "capture repaired": "SELECT pgtrickle.repair_capture('orders')",
    "an event time declared": "SELECT pgtrickle.set_event_time('orders', 'at')",
    "a group of watermarks": "SELECT pgtrickle.create_watermark_group('g', ARRAY['orders'])",
    "a group of refreshes": "SELECT pgtrickle.create_refresh_group('g', ARRAY['totals'])",
    "a watermark forgotten": "SELECT pgtrickle.reset_watermark('orders')",
    "a history trimmed": "SELECT pgtrickle.trim_history('0')",
    "grants settled": "SELECT pgtrickle.settle_grants()",
    "an alert invented": "SELECT pgtrickle.alert('stale', 'orders', true, 'x')",
    "a limit set": "SELECT pgtrickle.set_source_limits('orders', '1 second')",
    "another cluster adopted": "SELECT pgtrickle.adopt_cluster()",
    "a loader appointed": "SELECT pgtrickle.grant_loader('orders', 'mallory')",
}


@pytest.mark.parametrize("attack", OPERATOR)
@pytest.mark.parametrize("who", first(1, ("a stranger", "a loader of the source", "a reader of the stream table")))
def test_nobody_but_the_owner_defines_drops_or_settles(home: House, attack: str, who: str) -> None:
    mallory = home.session("mallory")
    if who != "a stranger":
        home.db.execute(f"GRANT {'INSERT ON orders' if 'loader' in who else 'SELECT ON totals'} TO mallory")
    before = catalog(home.db)
    assert stopped(mallory, OPERATOR[attack]) in ("42501", "42883")
    assert catalog(home.db) == before


HOSTILE = (
    'x"; DROP TABLE public.orders; --',
    "x'; DROP TABLE public.orders; --",
    "$$; DROP TABLE public.orders; $$",
    "%s %I {0}",
    "a\nb",
    "\U0001f4a3" * 15,
    "x" * 63,
    "pgtrickle.pgt_stream_tables",
    "-- ",
)


@pytest.mark.parametrize("name", first(4, HOSTILE))
def test_a_hostile_name_of_a_source_its_columns_and_its_stream_table_is_a_name(home: House, name: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    home.db.execute(f"CREATE SCHEMA {quoted} AUTHORIZATION steward")
    home.etl.execute(f"CREATE TABLE {quoted}.{quoted} ({quoted} integer PRIMARY KEY, at timestamptz)".encode())
    source = home.db.value("SELECT c.oid::regclass::text FROM pg_class AS c WHERE relname = %s AND relkind = 'r'", name)
    home.etl.execute(
        "SELECT pgtrickle.create_stream_table(%s, %s)",
        (f"public.{quoted}", f"SELECT {quoted}, count(*) AS {quoted[:-1]}z\" FROM {quoted}.{quoted} GROUP BY 1"
         if len(name.encode()) < 60 else f"SELECT {quoted} FROM {quoted}.{quoted}"),
    )  # fmt: skip
    home.etl.execute("SELECT pgtrickle.set_event_time(%s, 'at', too_late => '1 hour')", (source,))
    home.etl.execute("SELECT pgtrickle.create_watermark_group(%s, ARRAY[%s])", (name, source))
    home.etl.execute("SELECT pgtrickle.advance_watermark(%s::regclass, '2026-03-01 12:00Z')", (source,))
    home.etl.execute("SELECT pgtrickle.gate_source(%s::regclass, %s)", (source, name))
    home.etl.execute("SELECT pgtrickle.ungate_source(%s::regclass)", (source,))
    ask(home.etl, "SELECT pgtrickle.create_sink_staging(%s::regclass, %s, ARRAY[%s])", source, name, name)
    with local_client(home.refresher) as (client, _):
        client.tick()
        for number in (1, 2):
            home.etl.execute(f"INSERT INTO {quoted}.{quoted} VALUES ({number}, '2026-03-01 12:00Z')".encode())
        home.etl.execute(f"INSERT INTO {quoted}.{quoted} VALUES (3, '2026-03-01 08:00Z')".encode())
        results = {result.stream_table: str(result.action) for result in client.tick()}
        assert results.pop(f"public.{quoted}" if quoted != name else name, None) == "DIFFERENTIAL" or (
            "DIFFERENTIAL" in results.values()
        )
    assert ask(home.etl, f"SELECT {quoted} FROM public.{quoted} ORDER BY 1") == [(1,), (2,)]
    assert ask(home.etl, "SELECT status FROM pgtrickle.late_rows()") == [("kept_out",)]
    assert home.db.value("SELECT to_regclass('public.orders') IS NOT NULL")


QUERIES = {
    "a change buffer": "SELECT 1 AS a FROM pgtrickle_changes.change_pos",
    "itself": "SELECT id, amount FROM totals UNION ALL SELECT id, amount FROM mine",
    "a temporary table": "SELECT id FROM fleeting",
    "a statement that writes": "WITH w AS (DELETE FROM orders RETURNING id) SELECT id FROM w",
    "rows that it would lock": "SELECT id FROM orders FOR UPDATE",
    "two statements": "SELECT id FROM orders; DROP TABLE orders",
    "no statement": "",
    "a table created": "SELECT id INTO other FROM orders",
    "copy": "COPY orders TO STDOUT",
    "a parameter": "SELECT id FROM orders WHERE id = $1",
}


@pytest.mark.parametrize("attack", QUERIES)
def test_a_defining_query_reads_tables_of_its_maker_and_does_nothing_else(home: House, attack: str) -> None:
    home.etl.execute("CREATE TEMPORARY TABLE fleeting (id integer)")
    home.etl.execute("INSERT INTO orders VALUES (1, 1)")
    before = catalog(home.db)
    code = stopped(home.etl, "SELECT pgtrickle.create_stream_table('mine', %s)", QUERIES[attack])
    assert code[:2] in ("0A", "42", "22"), code
    assert catalog(home.db) == before
    assert ask(home.etl, "SELECT id FROM orders") == [(1,)]
    assert home.db.value("SELECT to_regclass('mine') IS NULL AND to_regclass('other') IS NULL")


TAKEN = {
    "a table": "CREATE TABLE public.mine (id integer, amount integer)",
    "a view": "CREATE VIEW public.mine AS SELECT 1 AS id",
    "a sequence": "CREATE SEQUENCE public.mine",
    "a type": "CREATE TYPE public.mine AS (id integer)",
    "a materialized view": "CREATE MATERIALIZED VIEW public.mine AS SELECT 1 AS id",
}


@pytest.mark.parametrize("kind", TAKEN)
def test_a_name_that_a_stranger_took_first_is_refused_and_never_filled_with_our_rows(home: House, kind: str) -> None:
    mallory = creator(home)
    mallory.execute(TAKEN[kind].encode())
    before = catalog(home.db)
    assert stopped(home.etl, "SELECT pgtrickle.create_stream_table('mine', 'SELECT id FROM orders')")[:2] == "42"
    assert catalog(home.db) == before


def test_a_stream_table_that_was_swapped_behind_our_back_is_not_written(home: House) -> None:
    """Its owner alone can drop it; what stands there under its name then belongs to whoever was quicker."""
    home.etl.execute("INSERT INTO orders VALUES (1, 10)")
    with local_client(home.refresher) as (client, _):
        assert [str(result.action) for result in client.tick()] == ["FULL"]
        home.etl.execute("DROP TABLE totals")
        mallory = creator(home)
        mallory.execute("CREATE TABLE public.totals (id integer, amount integer)")
        mallory.execute("GRANT ALL ON public.totals TO steward")
        home.etl.execute("INSERT INTO orders VALUES (2, 20)")
        assert client.tick() == ()
        with pytest.raises(PytrickleError, match="no stream table"):
            client.refresh("public.totals")
    assert ask(mallory, "SELECT * FROM public.totals") == []


def test_a_stream_table_is_changed_by_nobody_whatever_was_granted_on_it(home: House) -> None:
    home.etl.execute("INSERT INTO orders VALUES (1, 10)")
    with local_client(home.refresher) as (client, _):
        client.tick()
    mallory = home.session("mallory", "ALL ON totals")
    before = ask(home.etl, "SELECT * FROM totals")
    for attack in ("INSERT INTO totals VALUES (2, 2)", "UPDATE totals SET amount = 0", "DELETE FROM totals",
                   "TRUNCATE totals",
                   "MERGE INTO totals AS t USING (VALUES (1)) AS v(id) ON t.id = v.id WHEN MATCHED THEN DELETE",
                   "SET pgtrickle.refresh_xid = '1'; DELETE FROM totals",
                   "COPY totals FROM PROGRAM 'echo 9'"):  # fmt: skip
        assert stopped(mallory, attack) in ("42501", "55000"), attack
    assert ask(home.etl, "SELECT * FROM totals") == before == [(1, 10)]


def test_a_reader_hangs_no_trigger_rule_or_policy_on_a_stream_table(home: House) -> None:
    reader = home.session("reader", "SELECT ON totals")
    reader.execute("CREATE FUNCTION reader.f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$")
    for attack in (
        "CREATE TRIGGER t AFTER INSERT ON public.totals FOR EACH ROW EXECUTE FUNCTION reader.f()",
        "CREATE RULE r AS ON INSERT TO public.totals DO ALSO NOTHING",
        "CREATE POLICY p ON public.totals",
        "CREATE TABLE reader.child () INHERITS (public.totals)",
        "ALTER TABLE public.totals DISABLE TRIGGER ALL",
        "CREATE INDEX ON public.totals (id)",
    ):
        assert stopped(reader, attack) == "42501", attack
    home.etl.execute("INSERT INTO orders VALUES (1, 10)")
    with local_client(home.refresher) as (client, _):
        assert [str(result.action) for result in client.tick()] == ["FULL"]


def test_what_a_role_that_created_in_public_left_behind_is_never_taken_for_part_of_the_catalog(home: House) -> None:
    mallory = creator(home)
    for statement in (
        "CREATE TABLE public.pgt_stream_tables (pgt_id integer, pgt_name text)",
        "CREATE TABLE public.pgt_calls (call text)",
        "CREATE FUNCTION public.advance_watermark(regclass, timestamptz) RETURNS void LANGUAGE sql AS 'SELECT'",
        "CREATE FUNCTION public.current_cut() RETURNS integer RETURN 1",
        "CREATE FUNCTION public.catalog_owner() RETURNS name RETURN 'mallory'::name",
        "CREATE TYPE public.progress AS (watermark text, batch text)",
        "CREATE TYPE public.cut AS (x integer)",
        "CREATE FUNCTION public.reads_all(name, regclass) RETURNS boolean RETURN true",
    ):
        mallory.execute(statement.encode())
    home.etl.execute("SET search_path = public, pgtrickle")
    home.etl.execute("SELECT pgtrickle.advance_watermark('orders', '2026-03-01 12:00Z')")
    assert home.db.execute("SELECT source, advanced_by FROM pgtrickle.watermarks()") == [("public.orders", "steward")]
    home.db.execute("UPDATE pgtrickle.pgt_schema_version SET checksum = 'earlier' WHERE version = 0")
    assert migrate.install(home.etl) == ("functions",)
    with local_client(home.refresher) as (client, _):
        home.etl.execute("INSERT INTO orders VALUES (1, 10)")
        assert [str(result.action) for result in client.tick()] == ["FULL"]
    assert ask(mallory, "SELECT * FROM public.pgt_calls") == []
    assert stopped(mallory, "SELECT * FROM pgtrickle.pgt_late_rows") == "42501"


def test_temporary_objects_of_a_session_shadow_nothing_of_ours(home: House) -> None:
    mallory = home.session("mallory", "INSERT ON orders")
    for statement in (
        "CREATE TEMPORARY TABLE pgt_watermarks (source_relid regclass, watermark timestamptz)",
        "CREATE TEMPORARY TABLE pgt_loaders (source_relid regclass, loader text)",
        "CREATE TEMPORARY TABLE pg_class (oid oid, relowner oid)",
        "CREATE TEMPORARY TABLE orders (id integer)",
        "CREATE FUNCTION pg_temp.check_loader(name, regclass, text) RETURNS void LANGUAGE sql AS 'SELECT'",
        "CREATE FUNCTION pg_temp.has_table_privilege(name, regclass, text) RETURNS boolean RETURN true",
        "INSERT INTO public.orders VALUES (7, 70)",
    ):
        mallory.execute(statement.encode())
    assert stopped(mallory, "SELECT pgtrickle.advance_watermark('orders', '2026-03-01')") == "42809"
    mallory.execute("SELECT pgtrickle.advance_watermark('public.orders', '2026-03-01 12:00Z')")
    home.db.execute("REVOKE INSERT ON orders FROM mallory")
    assert stopped(mallory, "SELECT pgtrickle.advance_watermark('public.orders', '2026-03-02')") == "42501"
    assert home.db.execute("SELECT source, advanced_by FROM pgtrickle.watermarks()") == [("public.orders", "mallory")]
    with local_client(home.refresher) as (client, _):
        client.tick()
    assert ask(home.etl, "SELECT id FROM public.totals") == [(7,)]


def test_a_right_that_is_taken_back_within_a_transaction_is_gone_at_the_next_call(home: House) -> None:
    loader = home.session("loader", "INSERT ON orders", autocommit=False)
    loader.execute("SELECT pgtrickle.advance_watermark('public.orders', '2026-03-01')")
    home.db.execute("REVOKE INSERT ON orders FROM loader")
    assert stopped(loader, "SELECT pgtrickle.gate_source('public.orders')") == "42501"
    assert home.db.execute("SELECT source FROM pgtrickle.watermarks()") == [], "the whole transaction is undone"


def test_a_role_of_a_group_that_was_made_a_member_of_the_owner_for_a_moment_leaves_nothing_of_its_own(
    home: House,
) -> None:
    alice = home.session("alice")
    home.db.execute("GRANT steward TO alice; GRANT CREATE ON SCHEMA public TO alice")
    alice.execute("SELECT pgtrickle.create_stream_table('public.hers', 'SELECT id FROM public.orders')")
    home.db.execute("REVOKE steward FROM alice")
    owned = home.db.value(
        "SELECT count(*) FROM pg_shdepend AS d JOIN pg_roles AS r ON r.oid = d.refobjid"
        " WHERE r.rolname = 'alice' AND d.deptype = 'o' AND d.classid = 'pg_class'::regclass"
    )
    assert owned == 0
    assert stopped(alice, "SELECT pgtrickle.drop_stream_table('public.hers')") == "42501"
    with local_client(home.refresher) as (client, _):
        assert {str(result.action) for result in client.tick()} == {"FULL"}
