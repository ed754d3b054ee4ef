"""A role that may only connect calls every function there is, with everything that might hurt."""

import pytest

from tests.security.attempts import catalog, outcome, stopped
from tests.security.roles import House, ask
from tests.sql.checks import refused

FUNCTIONS = """
SELECT p.oid::regprocedure::text, p.provariadic <> 0, CASE p.prokind WHEN 'p' THEN 'CALL' ELSE 'SELECT' END,
       p.oid::regprocedure IN (SELECT pgtrickle_private.public_functions()),
       ARRAY(SELECT format_type(t.type, NULL) FROM unnest(p.proargtypes) WITH ORDINALITY AS t(type, place)
             ORDER BY t.place)
FROM pg_proc AS p
WHERE p.pronamespace::regnamespace::text IN ('pgtrickle', 'pgtrickle_changes', 'pgtrickle_private')
    AND p.prorettype <> 'trigger'::regtype AND NOT p.proisstrict
ORDER BY 1
"""
# What is given for an argument of a type; for all other types, NULL.
HOSTILE = {
    "hostile names": {
        "text": "'x\"''; DROP TABLE public.orders; --'", "name": "'x\"; DROP TABLE public.orders; --'",
        "regclass": "'public.orders'", "text[]": "ARRAY['id\"; --', 'ctid']", "jsonb": "'{\"x\": \"\\u001b\"}'",
    },
    "objects of others": {
        "text": "'public.totals'", "name": "'steward'", "regclass": "'public.orders'", "text[]":
        "ARRAY['public.orders']",
        "integer": "1", "bigint": "1", "oid": "'public.orders'::regclass", "oid[]": "ARRAY['public.orders'::regclass]",
        "timestamp with time zone": "'2030-01-01'", "boolean": "true", "interval": "'0'", "bigint[]": "ARRAY[1]",
    },
    "the catalog itself": {
        "text": "'pgtrickle.pgt_stream_tables'", "regclass": "'pgtrickle.pgt_stream_tables'", "name": "'mallory'",
        "integer": "1", "bigint": "0", "timestamp with time zone": "'infinity'", "interval": "'0'",
    },
    "extremes": {
        "text": "repeat('9', 100000)", "integer": "-2147483648", "bigint": "9223372036854775807", "numeric": "'NaN'",
        "timestamp with time zone": "'-infinity'", "interval": "'-178000000 years'", "regclass": "4294967295::oid",
        "text[]": "array_fill('x'::text, ARRAY[10, 10])", "bigint[]": "array_fill(-1, ARRAY[2, 2])", "oid": "0",
        "boolean": "false", "jsonb": "'[[]]'", "double precision": "'NaN'",
    },
    "nothing": {},
}  # fmt: skip


@pytest.fixture
def watched(home: House) -> House:
    """A stream table, a group, a gate, a late row and a sink, so that there is something to change."""
    for call in (
        "set_event_time('orders', 'at', too_late => '1 hour')",
        "create_watermark_group('alone', ARRAY['orders'])",
        "advance_watermark('orders', '2026-03-01 10:00Z')",
        "gate_source('orders', 'a load')",
        "claim_sink_batch('orders', 'files', 'q', 0)",
    ):
        ask(home.etl, f"SELECT pgtrickle.{call}")
    ask(home.etl, "INSERT INTO orders VALUES (1, 12345, '2026-03-01 08:00Z'), (2, 1, '2026-03-01 12:00Z')")
    assert home.db.value("SELECT count(*) FROM pgtrickle.pgt_late_rows WHERE status = 'kept_out'") == 1
    return home


def calls(house: House, public: bool, given: dict[str, str]) -> dict[str, str]:
    """Return a call of every function that is, or is not, for everybody, with these values for arguments."""
    made = {}
    for signature, variadic, verb, for_everybody, types in house.db.execute(FUNCTIONS):
        arguments = [f"({given.get(of, 'NULL')})::{of.replace('anyelement', 'integer')}" for of in types]
        if variadic:
            arguments[-1] = f"VARIADIC {arguments[-1]}"
        if for_everybody == public:
            made[signature] = f"{verb} {signature.partition('(')[0]}({', '.join(arguments)})"
    return made


def test_every_function_that_is_not_for_everybody_is_refused_to_a_role_that_may_only_connect(watched: House) -> None:
    mallory, before = watched.session("mallory"), catalog(watched.db)
    answers = {name: outcome(mallory, call) for name, call in calls(watched, False, {}).items()}
    assert len(answers) > 200
    assert not {name: code for name, code in answers.items() if code != "42501"}
    assert catalog(watched.db) == before


@pytest.mark.parametrize("kind", HOSTILE)
def test_no_function_for_everybody_changes_anything_of_others_whatever_it_is_given(watched: House, kind: str) -> None:
    mallory, before = watched.session("mallory"), catalog(watched.db)
    mallory.execute("SET statement_timeout = '10s'")
    answers = {name: outcome(mallory, call) for name, call in calls(watched, True, HOSTILE[kind]).items()}
    assert len(answers) > 40
    assert len([code for code in answers.values() if code != "00000"]) >= 15, "attacks were refused"
    assert not {name: code for name, code in answers.items() if code[:2] in ("XX", "42") and code not in PLAIN}
    assert catalog(watched.db) == before
    assert watched.db.value("SELECT count(*) FROM orders") == 1


# No right, no such object, not such an object, no such column, ambiguous: all said in plain words.
PLAIN = ("42501", "42P01", "42704", "42809", "42703", "42602", "42804", "42P02")

FORGED = {
    "an unknown call": ("hand_over_everything", "{}", "22023"),
    "no call": (None, "{}", "22004"),
    "an array of arguments": ("advance_watermark", "[1]", "22023"),
    "both kinds of watermark": ("advance_watermark", '{"watermark": "2026-03-01", "batch": 7}', "22023"),
    "neither kind of watermark": ("advance_watermark", '{"cut": "(1,1,1,)"}', "22004"),
    "a watermark before Christ": ("advance_watermark", '{"watermark": "0044-03-15 BC"}', "22023"),
    "a reason as long as a book": ("gate_source", '{"reason": "%s"}' % ("x" * 10_000_000), "22023"),
    "a sink with a name as long as a book": ("claim_sink_batch", '{"sink": "%s", "batch_id": 0}' % (
    "x" * 10**6), "22023"),
    "a query with a name as long as a book": (
        "claim_sink_batch", '{"sink": "s", "batch_id": 0, "query_id": "%s"}' % ("x" * 10**6), "22023"),
    "a staging table of hidden columns": ("create_sink_staging", '{"sink": "s", "columns": ["xmin", "ctid"]}', "22023"),
    "a staging table with a column of another table": (
        "create_sink_staging", '{"sink": "s", "columns": ["id\\" integer); DROP TABLE public.orders; --"]}', "22023"),
    "a batch below zero": ("claim_sink_batch", '{"sink": "s", "batch_id": -1}', "22023"),
    "a loader who does not exist": ("grant_loader", '{"role": "nobody; --"}', "22023"),
}  # fmt: skip


@pytest.mark.parametrize("attack", FORGED)
def test_a_forged_call_about_an_own_table_is_refused_and_leaves_nothing(watched: House, attack: str) -> None:
    mallory, (name, arguments, code) = watched.session("mallory"), FORGED[attack]
    mallory.execute("CREATE TABLE mallory.mine (id integer)")
    before = catalog(watched.db)
    forged = "INSERT INTO pgtrickle.pgt_calls (call, source, arguments) VALUES (%s, 'mallory.mine', %s)"
    assert stopped(mallory, forged, name, arguments) == code
    assert catalog(watched.db) == before


def test_a_call_names_no_batch_loader_or_number_of_a_sink_but_its_own(watched: House) -> None:
    mallory = watched.session("mallory")
    mallory.execute("CREATE TABLE mallory.mine (id integer)")
    mallory.execute(
        "INSERT INTO pgtrickle.pgt_calls (call, source, arguments) VALUES ('claim_sink_batch', 'mallory.mine', %s)",
        ('{"sink": "files", "batch_id": 0, "source_relid": "public.orders", "sink_id": 1, "loader": "steward", '
         '"committed_by": "steward"}',),
    )  # fmt: skip
    seen = "SELECT source_relid::text, sink_name, loader, committed_by FROM pgtrickle.pgt_sink_batches ORDER BY sink_id"
    assert watched.db.execute(seen) == [
        ("orders", "files", "steward", "steward"),
        ("mallory.mine", "files", "mallory", "mallory"),
    ]


def test_whoever_merges_copies_or_upserts_calls_is_judged_like_any_caller(watched: House) -> None:
    mallory, before = watched.session("mallory"), catalog(watched.db)
    values = "(call, source) VALUES ('ungate_source', 'public.orders')"
    for statement in (
        f"INSERT INTO pgtrickle.pgt_calls {values} ON CONFLICT DO NOTHING",
        f"WITH a AS (INSERT INTO pgtrickle.pgt_calls {values} RETURNING result) SELECT * FROM a",
        "MERGE INTO pgtrickle.pgt_calls AS c USING (VALUES (1)) AS v(x) ON c.result IS NULL"
        f" WHEN NOT MATCHED THEN INSERT {values}",
        "PREPARE p AS INSERT INTO pgtrickle.pgt_calls (call, source) VALUES ($1, $2); EXECUTE "
        "p('ungate_source', 16384)",
        "SELECT pgtrickle.ungate_source(c.oid) FROM pg_class AS c WHERE c.relname = 'orders'",
    ):
        assert stopped(mallory, statement) in ("42501", "42P01"), statement
    assert (
        stopped(mallory, f"INSERT INTO pgtrickle.pgt_calls {values} ON CONFLICT (call_id) DO UPDATE SET call = 'x'")
        == "42501"
    )
    assert catalog(watched.db) == before


def test_a_search_path_that_is_given_to_a_function_is_a_path_and_no_statement(watched: House) -> None:
    reader = watched.session("reader", "SELECT ON totals")
    path = "public; GRANT steward TO reader; --"
    for statement in (
        "SELECT pgtrickle.assert_fresh('totals', '1 day', %s)",
        "SELECT pgtrickle.wait_for('totals', '2026-03-01 12:00Z', '0', %s)",
        "SELECT * FROM pgtrickle.refresh_history('totals', 5, %s)",
        "SELECT * FROM pgtrickle.late_changes('totals', 5, %s)",
    ):
        assert stopped(reader, statement, path) in ("22023", "42704"), statement
    assert not watched.db.value("SELECT pg_has_role('reader', 'steward', 'MEMBER')")


def test_the_inner_halves_of_waiting_tell_no_more_than_the_status_and_end_in_time(watched: House) -> None:
    mallory = watched.session("mallory")
    mallory.execute("SET statement_timeout = '20s'")
    number = watched.db.value("SELECT pgt_id FROM pgtrickle.pgt_stream_tables")
    progress = "ROW('2030-01-01', NULL)::pgtrickle.progress"
    waiting = f"SELECT pgtrickle_private.reach(%s, 'x', {progress}, '-1 day')"
    assert stopped(mallory, waiting, number) in ("55000", "57014")
    assert stopped(mallory, "SELECT pgtrickle_private.refuse_stale(%s, NULL, NULL)", number) == "40001"
    assert ask(mallory, "SELECT pgtrickle_private.filled_at(%s)", number) == [(None,)]
    assert stopped(mallory, "SELECT pgtrickle_private.readable_stream_table('public.totals', 'public')") == "42501"


def test_a_staging_table_of_another_loader_is_neither_read_nor_filled_nor_counted(watched: House) -> None:
    mallory = watched.session("mallory", "INSERT ON orders")
    ((staging,),) = ask(watched.etl, "SELECT pgtrickle.create_sink_staging('orders', 'files', ARRAY['amount'])")
    watched.etl.execute(f"INSERT INTO pgtrickle_sinks.{staging} VALUES (4711)".encode())
    for statement in (
        f"SELECT * FROM pgtrickle_sinks.{staging}",
        f"INSERT INTO pgtrickle_sinks.{staging} VALUES (1)",
        f"SELECT pgtrickle.staged_rows('{staging}')",
        f"TRUNCATE pgtrickle_sinks.{staging}",
        f"DROP TABLE pgtrickle_sinks.{staging}",
        f"LOCK TABLE pgtrickle_sinks.{staging} IN ACCESS SHARE MODE",
        "CREATE TABLE pgtrickle_sinks.sink_1_ffff (id integer)",
    ):
        assert stopped(mallory, f"BEGIN; {statement}") == "42501", statement
        mallory.rollback()
    assert ask(watched.etl, f"SELECT * FROM pgtrickle_sinks.{staging}") == [(4711,)]


def test_an_expression_for_a_staged_event_time_quotes_any_column(watched: House) -> None:
    mallory = watched.session("mallory")
    ((expression,),) = ask(
        mallory, "SELECT pgtrickle.staged_event_time('public.orders', 'x\"; DROP TABLE public.orders; --')"
    )
    assert expression == 's."x""; DROP TABLE public.orders; --"::timestamptz'


def test_late_rows_of_others_are_neither_replayed_nor_discarded_through_an_own_table(watched: House) -> None:
    mallory = watched.session("mallory")
    mallory.execute("CREATE TABLE mallory.mine (id integer, amount integer, at timestamptz)")
    ((number,),) = watched.db.execute("SELECT late_id FROM pgtrickle.pgt_late_rows WHERE status = 'kept_out'")
    assert ask(mallory, "SELECT pgtrickle.replay_late_rows('mallory.mine', ARRAY[%s]::bigint[])", number) == [(0,)]
    assert ask(mallory, "SELECT pgtrickle.discard_late_rows('mallory.mine', ARRAY[%s]::bigint[])", number) == [(0,)]
    for function in ("replay_late_rows", "discard_late_rows"):
        with refused("42501", "GRANT INSERT ON public.orders TO mallory"):
            ask(mallory, f"SELECT pgtrickle.{function}('public.orders', ARRAY[%s]::bigint[])", number)
    loader = watched.session("loader", "INSERT ON orders")
    with refused("42501", "GRANT SELECT ON public.orders TO loader"):
        ask(loader, "SELECT pgtrickle.replay_late_rows('public.orders')")
    assert watched.db.execute("SELECT late_id, status FROM pgtrickle.pgt_late_rows") == [(number, "kept_out")]
    assert ask(mallory, "SELECT * FROM mallory.mine") == []


def test_a_path_under_which_rows_are_replayed_gives_a_stranger_no_more_than_his_own_rights(watched: House) -> None:
    """The function runs as its caller, so his own operators may run: as him, and into his own table."""
    mallory = watched.session("mallory")
    mallory.execute("CREATE TABLE mallory.ran (as_role name)")
    mallory.execute(
        "CREATE FUNCTION mallory.jsonb_populate_record(anyelement, jsonb) RETURNS anyelement LANGUAGE sql AS "
        "$$ INSERT INTO mallory.ran VALUES (current_user); SELECT $1 $$"
    )
    with refused("42501", "GRANT INSERT ON public.orders TO mallory"):
        ask(mallory, "SELECT pgtrickle.replay_late_rows('public.orders', NULL, false, 'mallory, pg_catalog')")
    watched.db.execute("GRANT USAGE ON SCHEMA mallory TO steward; GRANT INSERT ON mallory.ran TO steward")
    ask(watched.etl, "SELECT pgtrickle.replay_late_rows('public.orders', NULL, false, 'mallory, pg_catalog')")
    assert watched.db.value("SELECT count(*) FROM orders") == 2, "the row was replayed"
    assert ask(mallory, "SELECT * FROM mallory.ran") == []
