"""What cannot become a stream table is refused with a reason, and leaves no trace."""

import psycopg
import pytest

from tests.conftest import Database
from tests.security.roles import owner_of_a_catalog
from tests.sql.checks import catalog_state, create, refused


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("SELECT random() AS r", "random()"),
        ('SELECT a FROM t WHERE clock_timestamp() > "D d"', "clock_timestamp()"),
        ("SELECT nextval('q') AS n", "nextval(regclass)"),
        ("SELECT a FROM volatile_view", "mine(integer)"),
        ("SELECT a FROM t ORDER BY gen_random_uuid()", "gen_random_uuid()"),
        ("SELECT a FROM t WHERE a === 1", "mine_too(integer,integer)"),
        ("SELECT noisy(a) AS n FROM t", "noisy_step"),
        ("SELECT a FROM t TABLESAMPLE system (10)", "TABLESAMPLE"),
        ("SELECT a FROM t FOR UPDATE", "locks rows"),
        ("SELECT a FROM (SELECT a FROM t FOR NO KEY UPDATE SKIP LOCKED) AS q", "locks rows"),
    ],
)
def test_volatile_queries_are_refused_by_name(tables: Database, query: str, named: str) -> None:
    tables.execute("CREATE SEQUENCE q")
    tables.execute("CREATE FUNCTION mine(integer) RETURNS integer VOLATILE LANGUAGE sql AS 'SELECT 1'")
    tables.execute("CREATE VIEW volatile_view AS SELECT mine(a) AS a FROM t")
    tables.execute("CREATE FUNCTION mine_too(integer, integer) RETURNS boolean VOLATILE LANGUAGE sql AS 'SELECT true'")
    tables.execute("CREATE OPERATOR === (LEFTARG = integer, RIGHTARG = integer, FUNCTION = mine_too)")
    tables.execute("CREATE FUNCTION noisy_step(integer, integer) RETURNS integer VOLATILE LANGUAGE sql AS 'SELECT 1'")
    tables.execute("CREATE AGGREGATE noisy (integer) (SFUNC = noisy_step, STYPE = integer)")
    before = catalog_state(tables)
    with refused("0A000", constraint="query_refused", message=named):
        create(tables, query)
    assert catalog_state(tables) == before


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("SELECT FROM (SELECT FROM t) AS x, LATERAL (VALUES (x.*)) AS v", "cannot read itself"),
    ],
)
def test_a_query_that_postgres_prints_as_another_one_is_refused(tables: Database, query: str, named: str) -> None:
    before = catalog_state(tables)
    with refused("0A000", constraint="query_refused", message=named):
        create(tables, query)
    assert catalog_state(tables) == before


def test_whole_rows_whose_names_are_printed_as_they_are_are_not_refused(tables: Database) -> None:
    create(tables, "SELECT to_json(x) AS r, to_json(ROW(a)) AS s FROM (SELECT a AS c, a FROM t) AS x")


def test_a_key_that_is_named_or_shown_twice_is_no_other_key(tables: Database) -> None:
    create(tables, "SELECT a AS x, a AS y, count(*) AS n FROM t GROUP BY ROLLUP (a, a)")
    assert tables.value("SELECT count(*) FROM pg_class WHERE relname LIKE 'query\\_%\\_printed'") == 0


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ROW(ROW(ROW(a))) = ANY (SELECT ROW(ROW(a)) FROM t) AS found FROM t",
        "SELECT n FROM nothing AS n, LATERAL (VALUES (n.*)) AS v",
        "SELECT found FROM misprinted",
    ],
)
def test_a_query_that_postgres_cannot_read_back_is_refused(tables: Database, query: str) -> None:
    tables.execute("CREATE TABLE nothing ()")
    tables.execute("CREATE VIEW misprinted AS SELECT ROW(ROW(a)) IN (SELECT ROW(ROW(a)) FROM t) AS found FROM t")
    before = catalog_state(tables)
    with refused("0A000", constraint="query_refused", message="cannot read itself"):
        create(tables, query)
    assert catalog_state(tables) == before


@pytest.mark.parametrize(
    "query", ["SELECT 1.5 = ANY (ARRAY[a, a]) AS found FROM t", "SELECT a FROM t UNION ALL SELECT NULL::integer"]
)
def test_casts_and_names_that_postgres_spells_out_are_no_other_query(tables: Database, query: str) -> None:
    create(tables, query)


@pytest.mark.parametrize(
    ("arguments", "sqlstate"),
    [
        ("'s', 'SELECT a FRM t'", "42601"),
        ("'s', 'SELECT a FROM t; DROP TABLE u'", "42601"),
        ("'s', ''", "42601"),
        ("'s', 'SELECT a FROM nowhere'", "42P01"),
        ("'s', 'SELECT a FROM s'", "42P01"),
        ("'s', 'SELECT z FROM t'", "42703"),
        ("'s', 'SELECT a, a FROM t'", "42701"),
        ("'s', 'SELECT $1 + a FROM t'", "42P02"),
        ("'s', 'DELETE FROM t RETURNING a'", "42601"),
        ("'s', 'WITH d AS (DELETE FROM t RETURNING a) SELECT a FROM d'", "0A000"),
        ("'s', NULL", "22004"),
        ("NULL, 'SELECT a FROM t'", "22004"),
        ("'5 minutes', 'SELECT a FROM t'", "42602"),
        ("repeat('e', 64), 'SELECT a FROM t'", "22023"),
        ("repeat('\u00e9', 32), 'SELECT a FROM t'", "22023"),
        ("repeat('e', 70) || '.s', 'SELECT a FROM t'", "22023"),
        ("'t', 'SELECT a FROM t'", "42P07"),
        ("'v', 'SELECT a FROM t'", "42P07"),
        ("'nowhere.s', 'SELECT a FROM t'", "3F000"),
        ("'pg_catalog.s', 'SELECT a FROM t'", "22023"),
        ("'pgtrickle.s', 'SELECT a FROM t'", "22023"),
        ("'a.b.c', 'SELECT a FROM t'", "22023"),
        ("'s', 'SELECT a FROM t', schedule => 'sometimes'", "22023"),
        ("'s', 'SELECT a FROM t', schedule => '-1 minute'", "22023"),
        ("'s', 'SELECT a FROM t', schedule => '0'", "22023"),
        ("'s', 'SELECT a FROM t', watermark_gating => 'closed'", "22023"),
        ("'s', 'SELECT a FROM t', tier => 'lukewarm'", "22023"),
        ("'s', 'SELECT a FROM t', watermark_tolerance => '-1 second'", "22023"),
        ("'s', 'SELECT a FROM t', gate_deadline => '0'", "22023"),
        ("'s', 'SELECT a FROM t', diamond_consistency => 'eventual'", "22023"),
        ("'s', 'SELECT a FROM t', diamond_schedule_policy => 'mean'", "22023"),
        ("'s', 'SELECT a FROM t', fuse_ceiling => 0", "22023"),
        ("'s', 'SELECT a FROM t', refresh_mode => 'DIFFERENTIAL', search_path => 'nowhere'", "3F000"),
        ("'public.s', 'SELECT a FROM t', search_path => 'nowhere'", "42P01"),
    ],
)
def test_bad_arguments_are_refused_and_change_nothing(tables: Database, arguments: str, sqlstate: str) -> None:
    before = catalog_state(tables)
    with pytest.raises(Exception, match=r".") as raised:
        tables.execute(f"SELECT pgtrickle.create_stream_table({arguments})")
    assert getattr(raised.value, "sqlstate", None) == sqlstate, raised.value
    assert catalog_state(tables) == before


def test_a_temporary_table_is_refused_by_name(tables: Database) -> None:
    connection = tables.connect()
    connection.execute("CREATE TEMPORARY TABLE passing (a integer)")
    connection.execute("CREATE TEMPORARY VIEW passing_view AS SELECT a FROM t")
    before = catalog_state(tables)
    for source in ("passing", "passing_view"):
        with refused("0A000", "No other session sees"):
            connection.execute(f"SELECT pgtrickle.create_stream_table('s', 'SELECT a FROM {source}')")
    assert catalog_state(tables) == before


def test_missing_rights_are_refused(tables: Database) -> None:
    maker = owner_of_a_catalog(tables, "maker")
    tables.execute("GRANT SELECT ON v TO maker")
    tables.execute("GRANT SELECT (a) ON t TO maker")
    before = catalog_state(tables)
    for query, hint in (
        ("SELECT b FROM t", "GRANT SELECT ON public.t TO maker"),
        ("SELECT a FROM v", "role that owns"),
        ("SELECT a FROM t", "role that owns"),
    ):
        with refused("42501", hint):
            maker.execute("SELECT pgtrickle.create_stream_table('s', %s)", (query,))
    assert catalog_state(tables) == before
    maker.execute("CREATE TABLE own (a integer)")
    maker.execute("SELECT pgtrickle.create_stream_table('s', 'SELECT a FROM own')")


def test_somebody_else_may_not_create_at_all(tables: Database) -> None:
    tables.create_role("guest")
    guest = tables.connect()
    guest.execute("SET SESSION AUTHORIZATION guest")
    with pytest.raises(Exception, match="permission denied"):
        guest.execute("SELECT pgtrickle.create_stream_table('s', 'SELECT 1 AS a')")


def test_row_level_security_that_applies_is_refused(tables: Database) -> None:
    maker = owner_of_a_catalog(tables, "maker")
    tables.execute("ALTER TABLE t OWNER TO maker")
    tables.execute("ALTER TABLE t ENABLE ROW LEVEL SECURITY")
    maker.execute("SELECT pgtrickle.create_stream_table('fine', 'SELECT a FROM t')")
    maker.execute("ALTER TABLE t FORCE ROW LEVEL SECURITY")
    with refused("0A000", "policies"):
        maker.execute("SELECT pgtrickle.create_stream_table('s', 'SELECT a FROM t')")


def test_a_cycle_through_a_replaced_view_is_refused(tables: Database) -> None:
    number = create(tables, "SELECT c FROM v", "s")
    tables.execute("CREATE OR REPLACE VIEW v AS SELECT 1 AS a, c FROM s")
    with refused("42P17", "Break the cycle"):
        tables.execute("SELECT pgtrickle_private.record_sources(%s)", number)


def test_creation_gives_up_where_a_writer_never_ends(tables: Database) -> None:
    writer, creator = tables.connect(autocommit=False), tables.connect()
    writer.execute("INSERT INTO t VALUES (1)")
    before = catalog_state(tables)
    creator.execute("SET lock_timeout = '1ms'")
    with refused("55P03", "long transaction", "capture_lock"):
        creator.execute("SELECT pgtrickle.create_stream_table('s', 'SELECT a FROM t')")
    writer.commit()
    assert catalog_state(tables) == before


@pytest.mark.parametrize(
    ("query", "shown", "place"),
    [
        ("SELECT a\n FRM t", "SELECT a\n FRM t", "t"),
        ("SELECT z FROM t", "SELECT z FROM t", "z FROM"),
        ("SELECT z, ';' FROM t -- ; ", "SELECT z, ';' FROM t -- ; ", "z,"),
        ("SELECT a FROM nowhere; --;", "SELECT a FROM nowhere; --;", "nowhere"),
        ("SELECT 'x'::int FROM t", "SELECT 'x'::int FROM t", "'x'"),
        ("SELECT 1 AS a)", "SELECT 1 AS a)", ")"),
        ("SELECT 1 AS a; SELECT 2", None, None),
        ("", None, None),
        ("EXPLAIN SELECT 1", None, None),
        ("SELECT a, a FROM t", None, None),
        ("SELECT ROW(a) AS r FROM t", None, None),
        ("SELECT a INTO x FROM t", None, None),
    ],
)
def test_an_error_shows_the_query_of_the_user_and_no_hidden_view(
    tables: Database, query: str, shown: str | None, place: str | None
) -> None:
    create(tables, "SELECT a FROM t", "other")
    for call in ("create_stream_table('s', query => %s)", "alter_stream_table('other', query => %s)"):
        with pytest.raises(psycopg.Error) as raised:
            tables.execute(f"SELECT pgtrickle.{call}", query)
        told = raised.value.diag
        assert told.internal_query == shown
        if shown is not None and place is not None:
            assert shown[int(told.internal_position or 0) - 1 :].startswith(place)
        assert "CREATE VIEW" not in (told.context or "") and told.message_detail is None, told.context


@pytest.mark.parametrize("query", ["DELETE FROM nowhere", "SELECT 1 AS a; DROP TABLE u", "", "EXPLAIN SELECT 1"])
def test_what_is_no_query_is_called_that(tables: Database, query: str) -> None:
    with refused("42601", "Give one SELECT", message="is not one SELECT statement"):
        create(tables, query)


@pytest.mark.parametrize(
    ("limit", "sqlstate", "said"),
    [("lock_timeout", "55P03", "lock timeout"), ("statement_timeout", "57014", "timeout")],
)
def test_a_query_that_waits_for_a_lock_shows_no_hidden_view(
    tables: Database, limit: str, sqlstate: str, said: str
) -> None:
    create(tables, "SELECT a FROM t", "other")
    locking, creator = tables.connect(autocommit=False), tables.connect()
    locking.execute("LOCK TABLE u")
    creator.execute("SELECT set_config(%s, '100ms', false)", (limit,))
    for call in ("create_stream_table('s', query => %s)", "alter_stream_table('other', query => %s)"):
        with pytest.raises(psycopg.Error, match=said) as raised:
            creator.execute(f"SELECT pgtrickle.{call}", ("SELECT a FROM t JOIN u USING (a)",))
        told = raised.value.diag
        assert told.sqlstate == sqlstate
        assert "VIEW" not in (told.context or "") and "jsonb_build_object" not in (told.context or ""), told.context


def test_an_error_without_a_place_keeps_its_hint(tables: Database) -> None:
    with refused("42P22", "COLLATE", message="collation"):
        create(
            tables,
            """SELECT b || c AS x FROM (SELECT 'b' COLLATE "C" AS b, 'c' COLLATE "POSIX" AS c FROM t) AS y""",
        )


@pytest.mark.parametrize(
    ("query", "column", "type_name"),
    [
        ("SELECT indexrelid, indpred FROM pg_index", "indpred", "pg_node_tree"),
        ("SELECT oid, d FROM pg_attrdef AS d", "d", "pg_node_tree"),
        ('SELECT stxdndistinct AS "N d" FROM pg_statistic_ext_data', '"N d"', "pg_ndistinct"),
    ],
)
def test_values_that_postgresql_shows_but_does_not_read_are_refused(
    tables: Database, query: str, column: str, type_name: str
) -> None:
    with refused("0A000", f"CAST({column} AS text)", constraint="query_refused", message=f"values of type {type_name}"):
        create(tables, query)
    create(tables, f"SELECT CAST(q.{column} AS text) AS t FROM ({query}) AS q")
    create(tables, "SELECT a, CAST('x' AS \"char\") AS c FROM t", "other")
