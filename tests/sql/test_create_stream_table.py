"""Creating a stream table: what it reads, and what its table looks like."""

import threading

import psycopg
import pytest

from tests.conftest import Database
from tests.sql.checks import create, refused

SOURCES = (
    "SELECT source_relid::regclass::text, source_type, columns_used FROM "
    "pgtrickle.pgt_dependencies WHERE pgt_id = %s ORDER BY 1"
)


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
        (
            "WITH w AS (SELECT a FROM u) SELECT (SELECT max(c) FROM t WHERE t.a = w.a) FROM w",
            [("t", "TABLE", ["a", "c"]), ("u", "TABLE", ["a"])],
        ),
        ("SELECT 1 AS one", []),
        ("SELECT a FROM t UNION ALL SELECT a FROM u", [("t", "TABLE", ["a"]), ("u", "TABLE", ["a"])]),
    ],
)
def test_sources_and_columns_are_exact(tables: Database, query: str, sources: list[tuple[str, str, list[str]]]) -> None:
    assert tables.execute(SOURCES, create(tables, query)) == sources


def test_a_stream_table_is_a_source_of_its_own_and_captured(tables: Database) -> None:
    create(tables, "SELECT a, c FROM t", "first")
    second = create(tables, "SELECT c FROM first", "second")
    assert tables.execute(SOURCES, second) == [("first", "STREAM_TABLE", ["c"])]
    assert tables.value("SELECT count(*) FROM pgtrickle.pgt_change_tracking") == 2
    assert tables.execute("SELECT * FROM pgtrickle.dependencies()") == [
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
        (
            "CREATE UNLOGGED TABLE k () INHERITS (u)",
            "SELECT a FROM u",
            "u has the unlogged partition or child public.k, a crash would empty that unnoticed",
        ),
        (
            "CREATE TABLE p (a integer) PARTITION BY LIST (a); CREATE UNLOGGED TABLE p_1 PARTITION OF p DEFAULT",
            "SELECT a FROM p",
            "p has the unlogged partition or child public.p_1, a crash",
        ),
        ("CREATE SEQUENCE q", "SELECT last_value FROM q", "q is not a table"),
        ("CREATE TABLE k (z integer) INHERITS (u)", "SELECT a FROM ONLY u", "u is read without its children"),
        ("", "SELECT ctid::text AS place FROM u", "u is read by a system column"),
        ("", "SELECT tableoid AS r FROM vv, u", "u is read by a system column"),
    ],
)
def test_what_cannot_be_captured_is_refreshed_in_full(tables: Database, setup: str, query: str, reason: str) -> None:
    if setup:
        tables.execute(setup)
    with refused("0A000", "AUTO", "not_differentiable"):
        create(tables, query, refresh_mode="DIFFERENTIAL")
    number = create(tables, query)
    full_reason, time_dependent = tables.execute("SELECT full_reason, time_dependent FROM pgtrickle.pgt_stream_tables")[
        0
    ]
    assert reason in full_reason and time_dependent is False
    assert ("UNCAPTURED", None) in tables.execute(
        "SELECT source_type, captured_xid::text FROM pgtrickle.pgt_dependencies WHERE pgt_id = %s", number
    )


def test_only_without_children_is_captured(tables: Database) -> None:
    assert tables.execute(SOURCES, create(tables, "SELECT a FROM ONLY u")) == [("u", "TABLE", ["a"])]


@pytest.mark.parametrize(
    "expression",
    [
        "now()",
        "current_date",
        "CURRENT_TIMESTAMP",
        "localtime",
        "current_user",
        "session_user",
        "transaction_timestamp()",
        "statement_timestamp()",
        "current_setting('TimeZone')",
        'age("D d")',
        "current_schema()",
        "pg_backend_pid()",
        "stable_function()",
        "to_tsvector(b)",
        "has_table_privilege('t', 'SELECT')",
        "b::regclass::text",
        "'now'::text::timestamptz",
        "'Today 12:00'::text::timestamp[]",
        "(\"D d\" - ('yesterday'::varchar)::date)",
        'time_since("D d")',
        "called_by(b)",
        '"D d"::time::timetz',
    ],
)
def test_what_depends_on_time_or_session_is_refreshed_in_full(tables: Database, expression: str) -> None:
    tables.execute("CREATE FUNCTION stable_function() RETURNS integer STABLE LANGUAGE sql AS 'SELECT 1'")
    tables.execute("""CREATE FUNCTION time_since(at timestamptz, until timestamptz DEFAULT now()) RETURNS interval
        LANGUAGE sql IMMUTABLE RETURN until - at""")
    tables.execute(
        "CREATE FUNCTION called_by(a text, b text DEFAULT USER) RETURNS text LANGUAGE sql IMMUTABLE RETURN a || b"
    )
    create(tables, f"SELECT {expression} AS e FROM t")
    assert tables.execute(
        "SELECT time_dependent, full_reason LIKE '%%depends on%%' FROM pgtrickle.pgt_stream_tables WHERE %s", True
    ) == [(True, True)]


def test_time_dependence_hides_in_views_and_operators(tables: Database) -> None:
    tables.execute("CREATE VIEW recent AS SELECT a FROM t WHERE \"D d\" > now() - interval '1 day'")
    create(tables, "SELECT a FROM recent")
    assert tables.value("SELECT time_dependent FROM pgtrickle.pgt_stream_tables") is True


@pytest.mark.parametrize(
    "expression",
    [
        "date_trunc('day', \"D d\")",
        "to_char(\"D d\", 'YYYY')",
        '"D d"::date',
        "concat(a, b)",
        "a::text || b",
        "\"D d\" + interval '1 day'",
        "to_jsonb(c)",
        'age("D d", "D d")',
        "to_tsvector('simple', b)",
        "b LIKE 'x%'",
        "string_agg(b, ',') OVER ()",
        "\"D d\" > '2026-01-01'",
        "('2026-01-01'::text)::date",
        "b || 'now'::text",
        "b::date",
        "counted(a)",
    ],
)
def test_what_depends_on_pinned_settings_only_is_not_forced_to_full(tables: Database, expression: str) -> None:
    tables.execute(
        "CREATE FUNCTION counted(a int, b int DEFAULT 1 + 1) RETURNS int LANGUAGE sql IMMUTABLE RETURN a + b"
    )
    create(tables, f"SELECT {expression} AS e FROM t")
    assert tables.execute("SELECT time_dependent, full_reason FROM pgtrickle.pgt_stream_tables") == [(False, None)]


def test_a_function_that_is_volatile_by_a_default_is_refused(tables: Database) -> None:
    tables.execute("""CREATE FUNCTION salted(a int, salt float8 DEFAULT random()) RETURNS float8
        LANGUAGE sql IMMUTABLE RETURN a + salt""")
    with refused("0A000", "declare your own function STABLE", "query_refused"):
        create(tables, "SELECT salted(a) AS s FROM t")


def test_storage_has_exactly_the_columns_of_the_query(tables: Database) -> None:
    create(tables, 'SELECT a, b COLLATE "C" AS b, c, "D d", c::numeric(4, 1) AS e, ARRAY[a] AS f, \'x\' AS g FROM t')
    assert tables.execute(
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


@pytest.mark.parametrize(
    "write",
    ["INSERT INTO s VALUES (1)", "UPDATE s SET a = 1", "DELETE FROM s", "TRUNCATE s", "DELETE FROM s WHERE false"],
)
def test_direct_writes_are_refused_except_by_the_refresh(tables: Database, write: str) -> None:
    create(tables, "SELECT a FROM t")
    connection = tables.connect(autocommit=False)
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


def test_creation_waits_for_a_writer_and_misses_nothing(tables: Database) -> None:
    writer, creator = tables.connect(autocommit=False), tables.connect()
    writer.execute("INSERT INTO t VALUES (1)")
    creating = threading.Thread(
        target=lambda: creator.execute("SELECT pgtrickle.create_stream_table('s', 'SELECT a FROM t')")
    )
    creating.start()
    while not tables.value("SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = %s", creator.info.backend_pid):
        pass
    writer.execute("INSERT INTO t VALUES (2)")
    writer.commit()
    creating.join(timeout=30)
    assert tables.value(f"SELECT count(*) FROM {tables.value('SELECT buffer FROM pgtrickle.pgt_change_tracking')}") == 0
    xids = "SELECT pg_visible_in_snapshot(captured_xid, pg_current_snapshot()) FROM pgtrickle.pgt_dependencies"
    assert tables.value(xids) is True


def test_a_second_reader_extends_capture_from_then_on(tables: Database) -> None:
    create(tables, "SELECT a FROM t", "s1")
    tables.execute("INSERT INTO t (a, c) VALUES (1, 1)")
    create(tables, "SELECT a, c FROM t", "s2")
    tables.execute("INSERT INTO t (a, c) VALUES (2, 2)")
    buffer = tables.value("SELECT buffer FROM pgtrickle.pgt_change_tracking")
    assert tables.execute(f"SELECT a, c::int FROM {buffer} ORDER BY a") == [(1, None), (2, 2)]
    assert tables.value(
        "SELECT (SELECT captured_xid FROM pgtrickle.pgt_dependencies WHERE pgt_id = 2) > "
        "captured_xid FROM pgtrickle.pgt_dependencies WHERE pgt_id = 1"
    )


def test_the_view_protects_the_query_from_changes_of_its_sources(tables: Database) -> None:
    create(tables, "SELECT a FROM t")
    with pytest.raises(Exception, match="depend"):
        tables.execute("ALTER TABLE t DROP COLUMN a")
    with pytest.raises(Exception, match="view"):
        tables.execute("ALTER TABLE t ALTER COLUMN a TYPE bigint")


def test_creation_notifies_the_refresher(tables: Database) -> None:
    listener = tables.connect()
    listener.execute("LISTEN pgtrickle_refresh")
    number = create(tables, "SELECT a FROM t")
    assert [n.payload for n in listener.notifies(timeout=5, stop_after=1)] == [f'{{"pgt_id": {number}}}']


ENDINGS = (
    ";",
    " ; ; ",
    "; -- done",
    ";\n-- one; two\n-- three;\n",
    "; /* a; */ -- b;",
    ";/* a **/ ; -- '",
    " -- only; a comment",
)
SECOND = ("SELECT 1; SELECT 2; -- two", "SELECT 1; DROP TABLE t", "; -- nothing", "SELECT ';' FRM t; -- c")


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_query_may_end_in_a_semicolon_and_comments(db: Database, ending: str) -> None:
    db.execute("SELECT pgtrickle.create_stream_table('s', %s)", "SELECT '; -- a' AS a, 1 AS b" + ending)
    definition = db.value("SELECT pg_get_viewdef(view_relid) FROM pgtrickle.pgt_stream_tables")
    assert "'; -- a'::text AS a" in definition


@pytest.mark.parametrize("query", SECOND)
def test_a_second_statement_is_refused_whatever_follows_it(db: Database, query: str) -> None:
    with pytest.raises(psycopg.errors.SyntaxError):
        db.execute("SELECT pgtrickle.create_stream_table('s', %s)", query)
