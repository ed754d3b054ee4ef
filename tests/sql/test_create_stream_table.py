"""Creating a stream table: what it reads, what its table looks like, and what is refused without a trace."""

import pytest

from tests.conftest import Database
from tests.sql.checks import catalog_state, refused

SOURCES = (
    "SELECT source_relid::regclass::text, source_type, columns_used FROM pgtrickle.pgt_dependencies WHERE pgt_id = %s ORDER BY 1"
)


@pytest.fixture
def base(db: Database) -> Database:
    db.execute('CREATE TABLE t (a integer, b text, c numeric(10, 2), "D d" timestamptz)')
    db.execute("CREATE TABLE u (a integer, x text)")
    db.execute("CREATE VIEW v AS SELECT a, c FROM t WHERE b IS NOT NULL")
    db.execute("CREATE VIEW vv AS SELECT v.c, u.x FROM v JOIN u USING (a)")
    return db


def create(db: Database, query: str, name: str = "s", **options: object) -> int:
    arguments = "".join(f", {option} => %s" for option in options)
    number = db.value(f"SELECT pgtrickle.create_stream_table(%s, %s{arguments})", name, query, *options.values())
    assert isinstance(number, int)
    return number


@pytest.mark.parametrize(
    ("query", "sources"),
    [
        ("SELECT a FROM t WHERE c > 1", [("t", "TABLE", ["a", "c"])]),
        ("SELECT count(*) FROM t", [("t", "TABLE", [])]),
        ("SELECT t FROM t", [("t", "TABLE", ["a", "b", "c", "D d"])]),
        ("SELECT count(t.*) FROM t", [("t", "TABLE", ["a", "b", "c", "D d"])]),
        ("SELECT * FROM vv", [("t", "TABLE", ["a", "b", "c"]), ("u", "TABLE", ["a", "x"])]),
        ("SELECT x.a FROM t AS x JOIN t AS y ON x.a = y.a AND y.b = 'k'", [("t", "TABLE", ["a", "b"])]),
        ("SELECT 1 WHERE EXISTS (SELECT FROM t WHERE b = 'q')", [("t", "TABLE", ["b"])]),
        ("WITH w AS (SELECT a FROM u) SELECT (SELECT max(c) FROM t WHERE t.a = w.a) FROM w", [("t", "TABLE", ["a", "c"]), ("u", "TABLE", ["a"])]),
        ("SELECT 1 AS one", []),
        ("SELECT a FROM t UNION ALL SELECT a FROM u", [("t", "TABLE", ["a"]), ("u", "TABLE", ["a"])]),
    ],
)
def test_sources_and_columns_are_exact(base: Database, query: str, sources: list[tuple[str, str, list[str]]]) -> None:
    assert base.execute(SOURCES, create(base, query)) == sources


def test_a_stream_table_is_a_source_of_its_own_and_captured(base: Database) -> None:
    create(base, "SELECT a, c FROM t", "first")
    second = create(base, "SELECT c FROM first", "second")
    assert base.execute(SOURCES, second) == [("first", "STREAM_TABLE", ["c"])]
    assert base.value("SELECT count(*) FROM pgtrickle.pgt_change_tracking") == 2
    assert base.execute("SELECT * FROM pgtrickle.dependency_tree()") == [
        ("public.first", "public.t", "TABLE", 1),
        ("public.second", "public.first", "STREAM_TABLE", 1),
        ("public.second", "public.t", "TABLE", 2),
    ]


@pytest.mark.parametrize(
    ("setup", "query", "reason"),
    [
        ("", "SELECT relname FROM pg_class", "is a system table"),
        ("CREATE MATERIALIZED VIEW m AS SELECT 1 AS a", "SELECT a FROM m", "m is a materialized view"),
        ("CREATE UNLOGGED TABLE n (a integer)", "SELECT a FROM n", "n is unlogged"),
        ("CREATE SEQUENCE q", "SELECT last_value FROM q", "q is not a table"),
        ("CREATE TABLE k (z integer) INHERITS (u)", "SELECT a FROM ONLY u", "u is read without its children"),
        ("", "SELECT ctid::text AS place FROM u", "u is read by a system column"),
        ("", "SELECT tableoid::regclass::text AS r FROM vv, u", "u is read by a system column"),
    ],
)
def test_what_cannot_be_captured_is_refreshed_in_full(base: Database, setup: str, query: str, reason: str) -> None:
    if setup:
        base.execute(setup)
    with refused("0A000", "AUTO", "not_differentiable"):
        create(base, query, refresh_mode="DIFFERENTIAL")
    number = create(base, query)
    full_reason, time_dependent = base.execute("SELECT full_reason, time_dependent FROM pgtrickle.pgt_stream_tables")[0]
    assert reason in full_reason and time_dependent is False
    assert ("UNCAPTURED", None) in base.execute("SELECT source_type, captured_xid::text FROM pgtrickle.pgt_dependencies WHERE pgt_id = %s", number)


def test_only_without_children_is_captured(base: Database) -> None:
    assert base.execute(SOURCES, create(base, "SELECT a FROM ONLY u")) == [("u", "TABLE", ["a"])]


@pytest.mark.parametrize(
    "expression",
    [
        "now()", "current_date", "CURRENT_TIMESTAMP", "localtime", "current_user", "session_user", "transaction_timestamp()", "statement_timestamp()",
        "current_setting('TimeZone')", "age(\"D d\")", "current_schema()", "pg_backend_pid()", "stable_function()", "to_tsvector(b)",
        "has_table_privilege('t', 'SELECT')", "b::regclass::text",
    ],
)  # fmt: skip
def test_what_depends_on_time_or_session_is_refreshed_in_full(base: Database, expression: str) -> None:
    base.execute("CREATE FUNCTION stable_function() RETURNS integer STABLE LANGUAGE sql AS 'SELECT 1'")
    create(base, f"SELECT {expression} AS e FROM t")
    assert base.execute("SELECT time_dependent, full_reason LIKE '%%depends on%%' FROM pgtrickle.pgt_stream_tables WHERE %s", True) == [(True, True)]


def test_time_dependence_hides_in_views_and_operators(base: Database) -> None:
    base.execute("CREATE VIEW recent AS SELECT a FROM t WHERE \"D d\" > now() - interval '1 day'")
    create(base, "SELECT a FROM recent")
    assert base.value("SELECT time_dependent FROM pgtrickle.pgt_stream_tables") is True


@pytest.mark.parametrize(
    "expression",
    ["date_trunc('day', \"D d\")", "to_char(\"D d\", 'YYYY')", "\"D d\"::date", "concat(a, b)", "a::text || b", "\"D d\" + interval '1 day'", "to_jsonb(c)",
     "age(\"D d\", \"D d\")", "to_tsvector('simple', b)", "b LIKE 'x%'", "string_agg(b, ',') OVER ()", "\"D d\" > '2026-01-01'"],
)  # fmt: skip
def test_what_depends_on_pinned_settings_only_is_not_forced_to_full(base: Database, expression: str) -> None:
    create(base, f"SELECT {expression} AS e FROM t")
    assert base.execute("SELECT time_dependent, full_reason FROM pgtrickle.pgt_stream_tables") == [(False, None)]


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("SELECT random() AS r", "random()"),
        ("SELECT a FROM t WHERE clock_timestamp() > \"D d\"", "clock_timestamp()"),
        ("SELECT nextval('q') AS n", "nextval(regclass)"),
        ("SELECT a FROM volatile_view", "mine(integer)"),
        ("SELECT a FROM t ORDER BY gen_random_uuid()", "gen_random_uuid()"),
        ("SELECT a FROM t WHERE a === 1", "mine_too(integer,integer)"),
        ("SELECT noisy(a) AS n FROM t", "noisy_step"),
        ("SELECT a FROM t TABLESAMPLE system (10)", "TABLESAMPLE"),
    ],
)
def test_volatile_queries_are_refused_by_name(base: Database, query: str, named: str) -> None:
    base.execute("CREATE SEQUENCE q")
    base.execute("CREATE FUNCTION mine(integer) RETURNS integer VOLATILE LANGUAGE sql AS 'SELECT 1'")
    base.execute("CREATE VIEW volatile_view AS SELECT mine(a) AS a FROM t")
    base.execute("CREATE FUNCTION mine_too(integer, integer) RETURNS boolean VOLATILE LANGUAGE sql AS 'SELECT true'")
    base.execute("CREATE OPERATOR === (LEFTARG = integer, RIGHTARG = integer, FUNCTION = mine_too)")
    base.execute("CREATE FUNCTION noisy_step(integer, integer) RETURNS integer VOLATILE LANGUAGE sql AS 'SELECT 1'")
    base.execute("CREATE AGGREGATE noisy (integer) (SFUNC = noisy_step, STYPE = integer)")
    before = catalog_state(base)
    with refused("0A000", constraint="query_refused", message=named):
        create(base, query)
    assert catalog_state(base) == before


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
        ("'t', 'SELECT a FROM t'", "42P07"),
        ("'v', 'SELECT a FROM t'", "42P07"),
        ("'nowhere.s', 'SELECT a FROM t'", "3F000"),
        ("'pg_catalog.s', 'SELECT a FROM t'", "22023"),
        ("'pgtrickle.s', 'SELECT a FROM t'", "22023"),
        ("'a.b.c', 'SELECT a FROM t'", "22023"),
        ("'s', 'SELECT a FROM t', schedule => 'sometimes'", "22023"),
        ("'s', 'SELECT a FROM t', schedule => '-1 minute'", "22023"),
        ("'s', 'SELECT a FROM t', schedule => '0'", "22023"),
        ("'s', 'SELECT a FROM t', schedule => NULL", "22004"),
        ("'s', 'SELECT a FROM t', refresh_mode => 'differential'", "22023"),
        ("'s', 'SELECT a FROM t', refresh_mode => NULL", "22004"),
        ("'s', 'SELECT a FROM t', watermark_gating => 'closed'", "22023"),
        ("'s', 'SELECT a FROM t', require_watermark => NULL", "22004"),
        ("'s', 'SELECT a FROM t', refresh_mode => 'DIFFERENTIAL', search_path => 'nowhere'", "3F000"),
        ("'public.s', 'SELECT a FROM t', search_path => 'nowhere'", "42P01"),
    ],
)
def test_bad_arguments_are_refused_and_change_nothing(base: Database, arguments: str, sqlstate: str) -> None:
    before = catalog_state(base)
    with pytest.raises(Exception, match=".") as raised:
        base.execute(f"SELECT pgtrickle.create_stream_table({arguments})")
    assert getattr(raised.value, "sqlstate", None) == sqlstate, raised.value
    assert catalog_state(base) == before


def test_a_temporary_table_is_refused_by_name(base: Database) -> None:
    connection = base.connect()
    connection.execute("CREATE TEMPORARY TABLE passing (a integer)")
    connection.execute("CREATE TEMPORARY VIEW passing_view AS SELECT a FROM t")
    before = catalog_state(base)
    for source in ("passing", "passing_view"):
        with refused("0A000", "No other session sees"):
            connection.execute(f"SELECT pgtrickle.create_stream_table('s', 'SELECT a FROM {source}')")
    assert catalog_state(base) == before


def test_missing_rights_are_refused(base: Database) -> None:
    base.create_role("maker")
    for grant in (
        "GRANT ALL ON SCHEMA public, pgtrickle, pgtrickle_changes, pgtrickle_state TO maker",
        "GRANT ALL ON ALL TABLES IN SCHEMA pgtrickle TO maker",
        "GRANT ALL ON ALL SEQUENCES IN SCHEMA pgtrickle TO maker",
        "GRANT ALL ON ALL FUNCTIONS IN SCHEMA pgtrickle TO maker",
        "GRANT SELECT ON v TO maker",
        "GRANT SELECT (a) ON t TO maker",
    ):
        base.execute(grant)
    maker = base.connect()
    maker.execute("SET SESSION AUTHORIZATION maker")
    before = catalog_state(base)
    for query, hint in (("SELECT b FROM t", "GRANT SELECT ON public.t TO maker"), ("SELECT a FROM v", "GRANT SELECT ON public.t"), ("SELECT a FROM t", "role that owns")):
        with refused("42501", hint):
            maker.execute("SELECT pgtrickle.create_stream_table('s', %s)", (query,))
    assert catalog_state(base) == before
    maker.execute("CREATE TABLE own (a integer)")
    maker.execute("SELECT pgtrickle.create_stream_table('s', 'SELECT a FROM own')")


def test_somebody_else_may_not_create_at_all(base: Database) -> None:
    base.create_role("guest")
    guest = base.connect()
    guest.execute("SET SESSION AUTHORIZATION guest")
    with pytest.raises(Exception, match="permission denied"):
        guest.execute("SELECT pgtrickle.create_stream_table('s', 'SELECT 1 AS a')")


def test_row_level_security_that_applies_is_refused(base: Database) -> None:
    base.create_role("maker")
    for statement in (
        "GRANT maker TO CURRENT_USER",
        "GRANT ALL ON SCHEMA public, pgtrickle, pgtrickle_changes, pgtrickle_state TO maker",
        "GRANT ALL ON ALL TABLES IN SCHEMA pgtrickle TO maker",
        "GRANT ALL ON ALL SEQUENCES IN SCHEMA pgtrickle TO maker",
        "GRANT ALL ON ALL FUNCTIONS IN SCHEMA pgtrickle TO maker",
        "ALTER TABLE t OWNER TO maker",
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY",
    ):
        base.execute(statement)
    maker = base.connect()
    maker.execute("SET SESSION AUTHORIZATION maker")
    maker.execute("SELECT pgtrickle.create_stream_table('fine', 'SELECT a FROM t')")
    maker.execute("ALTER TABLE t FORCE ROW LEVEL SECURITY")
    with refused("0A000", "policies"):
        maker.execute("SELECT pgtrickle.create_stream_table('s', 'SELECT a FROM t')")


def test_a_cycle_through_a_replaced_view_is_refused(base: Database) -> None:
    number = create(base, "SELECT c FROM v", "s")
    base.execute("CREATE OR REPLACE VIEW v AS SELECT 1 AS a, c FROM s")
    with refused("42P17", "Break the cycle"):
        base.execute("SELECT pgtrickle.record_sources(%s)", number)


def test_storage_has_exactly_the_columns_of_the_query(base: Database) -> None:
    create(base, 'SELECT a, b COLLATE "C" AS b, c, "D d", c::numeric(4, 1) AS e, ARRAY[a] AS f, \'x\' AS g FROM t')
    assert base.execute(
        "SELECT attname::text, format_type(atttypid, atttypmod), attcollation::regcollation::text FROM pg_attribute "
        "WHERE attrelid = 's'::regclass AND attnum > 0 ORDER BY attnum"
    ) == [
        ("a", "integer", "-"),
        ("b", "text", '"C"'),
        ("c", "numeric(10,2)", "-"),
        ("D d", "timestamp with time zone", "-"),
        ("e", "numeric(4,1)", "-"),
        ("f", "integer[]", "-"),
        ("g", "text", '"default"'),
    ]


def test_names_and_the_query_mean_what_they_mean_to_the_caller(base: Database) -> None:
    base.execute("CREATE SCHEMA mine")
    base.execute("CREATE TABLE mine.t (mine integer)")
    connection = base.connect()
    connection.execute("SET search_path = mine, public")
    connection.execute("SELECT pgtrickle.create_stream_table('\"My table\"', 'SELECT mine FROM t JOIN u ON u.a = mine -- ends in a comment')")
    assert connection.execute("SHOW search_path").fetchone() == ("mine, public",)
    assert base.execute("SELECT pgt_schema, pgt_name, defining_query FROM pgtrickle.pgt_stream_tables") == [
        ("mine", "My table", "SELECT mine FROM t JOIN u ON u.a = mine -- ends in a comment")
    ]
    assert base.execute("SELECT source_name FROM pgtrickle.pgt_dependencies ORDER BY 1") == [("mine.t",), ("public.u",)]


def test_settings_that_change_the_meaning_are_recorded(base: Database) -> None:
    connection = base.connect()
    for setting in ("TimeZone = 'Asia/Tokyo'", "DateStyle = 'German, DMY'", "IntervalStyle = iso_8601", "extra_float_digits = 0"):
        connection.execute(f"SET {setting}")
    connection.execute("SELECT pgtrickle.create_stream_table('s', 'SELECT a FROM t')")
    assert base.value("SELECT session_settings FROM pgtrickle.pgt_stream_tables") == {
        "TimeZone": "Asia/Tokyo",
        "DateStyle": "ISO, DMY",
        "IntervalStyle": "iso_8601",
        "extra_float_digits": "0",
    }


@pytest.mark.parametrize("write", ["INSERT INTO s VALUES (1)", "UPDATE s SET a = 1", "DELETE FROM s", "TRUNCATE s", "DELETE FROM s WHERE false"])
def test_direct_writes_are_refused_except_by_the_refresh(base: Database, write: str) -> None:
    create(base, "SELECT a FROM t")
    connection = base.connect(autocommit=False)
    for role in ("origin", "replica"):
        connection.execute(f"SET session_replication_role = {role}")
        with refused("55000", "Change the tables", "stream_table_read_only"):
            connection.execute(write)
        connection.rollback()
    connection.execute("UPDATE pgtrickle.pgt_stream_tables SET refresh_xid = pg_current_xact_id()")
    connection.execute(write)
    connection.commit()
    with refused("55000"):
        connection.execute(write)


def test_creation_waits_for_a_writer_and_misses_nothing(base: Database) -> None:
    import threading

    writer, creator = base.connect(autocommit=False), base.connect()
    writer.execute("INSERT INTO t VALUES (1)")
    creating = threading.Thread(target=lambda: creator.execute("SELECT pgtrickle.create_stream_table('s', 'SELECT a FROM t')"))
    creating.start()
    while not base.value("SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = %s", creator.info.backend_pid):
        pass
    writer.execute("INSERT INTO t VALUES (2)")
    writer.commit()
    creating.join(timeout=30)
    assert base.value(
        f"SELECT count(*) FROM {base.value('SELECT buffer FROM pgtrickle.pgt_change_tracking')}"
    ) == 0
    xids = "SELECT pg_visible_in_snapshot(captured_xid, pg_current_snapshot()) FROM pgtrickle.pgt_dependencies"
    assert base.value(xids) is True


def test_creation_gives_up_where_a_writer_never_ends(base: Database) -> None:
    writer, creator = base.connect(autocommit=False), base.connect()
    writer.execute("INSERT INTO t VALUES (1)")
    before = catalog_state(base)
    creator.execute("SET lock_timeout = '1ms'")
    with refused("55P03", "long transaction", "capture_lock"):
        creator.execute("SELECT pgtrickle.create_stream_table('s', 'SELECT a FROM t')")
    writer.commit()
    assert catalog_state(base) == before


def test_a_second_reader_extends_capture_from_then_on(base: Database) -> None:
    create(base, "SELECT a FROM t", "s1")
    base.execute("INSERT INTO t (a, c) VALUES (1, 1)")
    create(base, "SELECT a, c FROM t", "s2")
    base.execute("INSERT INTO t (a, c) VALUES (2, 2)")
    buffer = base.value("SELECT buffer FROM pgtrickle.pgt_change_tracking")
    assert base.execute(f"SELECT a, c::int FROM {buffer} ORDER BY a") == [(1, None), (2, 2)]
    assert base.value("SELECT (SELECT captured_xid FROM pgtrickle.pgt_dependencies WHERE pgt_id = 2) > captured_xid FROM pgtrickle.pgt_dependencies WHERE pgt_id = 1")


def test_the_view_protects_the_query_from_changes_of_its_sources(base: Database) -> None:
    create(base, "SELECT a FROM t")
    with pytest.raises(Exception, match="depend"):
        base.execute("ALTER TABLE t DROP COLUMN a")
    with pytest.raises(Exception, match="view"):
        base.execute("ALTER TABLE t ALTER COLUMN a TYPE bigint")


def test_creation_notifies_the_refresher(base: Database) -> None:
    listener = base.connect()
    listener.execute("LISTEN pgtrickle_refresh")
    number = create(base, "SELECT a FROM t")
    assert [n.payload for n in listener.notifies(timeout=5, stop_after=1)] == [f'{{"pgt_id": {number}}}']


