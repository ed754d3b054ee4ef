"""Every way to change a table is captured exactly: the rows before plus the changes are the rows after."""

import pytest

from tests.conftest import Database
from tests.repeats import on_both_servers
from tests.sql.checks import assert_replays, buffer_of, logged, refused, remember, replays_each

SETUP = """
CREATE TABLE parents (id integer PRIMARY KEY);
CREATE TABLE items (
    id integer PRIMARY KEY,
    parent integer REFERENCES parents ON DELETE CASCADE ON UPDATE CASCADE,
    "Weird ""name" text,
    action numeric(10, 2) DEFAULT 0,
    unread text);
INSERT INTO parents SELECT generate_series(1, 5);
INSERT INTO items SELECT i, i % 5 + 1, 'n' || i, i, 'u' FROM generate_series(1, 20) AS i;
"""
COLUMNS = 'id, parent, "Weird ""name", action'


@pytest.fixture
def items(db: Database) -> Database:
    for statement in filter(str.strip, SETUP.split(";\n")):
        db.execute(statement)
    db.execute("SELECT pgtrickle.create_stream_table('copied', %s)", f"SELECT {COLUMNS} FROM items")
    remember(db, "items")
    return db


CHANGES = {
    "insert one": "INSERT INTO items VALUES (99, 1, 'x', 1.5)",
    "insert many": "INSERT INTO items SELECT i, NULL, NULL, i FROM generate_series(100, 300) AS i",
    "update key": "UPDATE items SET id = id + 1000",
    "update other column only": "UPDATE items SET unread = 'v'",
    "update nothing": "UPDATE items SET action = 1 WHERE false",
    "delete some": "DELETE FROM items WHERE id % 2 = 0",
    "delete all": "DELETE FROM items",
    "cascaded delete": "DELETE FROM parents WHERE id = 2",
    "cascaded update": "UPDATE parents SET id = id + 100",
    "truncate": "TRUNCATE items",
    "truncate cascade": "TRUNCATE parents CASCADE",
    "on conflict update": (
        "INSERT INTO items VALUES (1, NULL, 'again', 5), (500, NULL, 'new', 5) "
        "ON CONFLICT (id) DO UPDATE SET action = items.action + EXCLUDED.action"
    ),
    "on conflict nothing": "INSERT INTO items VALUES (1, 1, 'again', 5) ON CONFLICT DO NOTHING",
    "merge": (
        "MERGE INTO items USING (VALUES (6, 'd'), (7, 'u'), (900, 'i')) AS s (id, what) ON items.id = s.id "
        "WHEN MATCHED AND what = 'd' THEN DELETE WHEN MATCHED THEN UPDATE SET action = 77 "
        "WHEN NOT MATCHED THEN INSERT VALUES (s.id, NULL, what, 3)"
    ),
    "writable cte": (
        "WITH gone AS (DELETE FROM items WHERE id < 5 RETURNING *) INSERT INTO items SELECT id + 700, parent FROM gone"
    ),
    "update from": "UPDATE items SET parent = p.id FROM parents AS p WHERE p.id = items.id",
}


def test_each_change_replays_to_the_present_rows(items: Database) -> None:
    assert replays_each(items, "items", COLUMNS, CHANGES) == {}


def test_all_changes_in_one_transaction_replay(items: Database) -> None:
    connection = items.connect(autocommit=False)
    for change in CHANGES.values():
        connection.execute(change)
    connection.commit()
    assert_replays(items, "items", COLUMNS)


def test_copy_is_captured(items: Database) -> None:
    with items.connect().cursor() as cursor, cursor.copy("COPY items (id, action) FROM STDIN") as copy:
        for i in range(1000, 2000):
            copy.write_row((i, i / 4))
    assert len(logged(items, "items", "id")) == 1000
    assert_replays(items, "items", COLUMNS)


def test_a_rolled_back_savepoint_leaves_no_trace(items: Database) -> None:
    connection = items.connect(autocommit=False)
    connection.execute("INSERT INTO items (id) VALUES (100)")
    connection.execute("SAVEPOINT s")
    connection.execute("TRUNCATE items")
    connection.execute("INSERT INTO items (id) VALUES (101)")
    connection.execute("ROLLBACK TO s")
    connection.execute("INSERT INTO items (id) VALUES (102)")
    connection.commit()
    assert logged(items, "items", "id") == [(1, 100), (1, 102)]
    assert_replays(items, "items", COLUMNS)


def test_rows_written_under_a_savepoint_carry_the_top_level_transaction(items: Database) -> None:
    connection = items.connect(autocommit=False)
    connection.execute("SAVEPOINT s")
    connection.execute("INSERT INTO items (id) VALUES (100)")
    (xid,) = connection.execute("SELECT pg_current_xact_id()::text").fetchone() or ()
    connection.commit()
    assert items.execute(f"SELECT pgt_xid::text FROM {buffer_of(items, 'items')}") == [(xid,)]


def test_a_rolled_back_truncate_leaves_no_trace(items: Database) -> None:
    connection = items.connect(autocommit=False)
    connection.execute("TRUNCATE parents CASCADE")
    connection.rollback()
    assert logged(items, "items", "id") == []


def test_replica_role_does_not_bypass_capture(items: Database) -> None:
    connection = items.connect()
    connection.execute("SET session_replication_role = replica")
    for change in (CHANGES["insert many"], CHANGES["update key"], CHANGES["delete some"], CHANGES["truncate"]):
        connection.execute(change)
    assert_replays(items, "items", COLUMNS)


def test_a_statement_without_rows_logs_nothing(items: Database) -> None:
    items.execute("UPDATE items SET action = 1 WHERE false")
    items.execute("DELETE FROM items WHERE false")
    items.execute("INSERT INTO items SELECT 1 WHERE false")
    assert items.value(f"SELECT count(*) FROM {buffer_of(items, 'items')}") == 0


def test_a_row_trigger_that_changes_the_same_row_nets_out(items: Database) -> None:
    items.execute(
        "CREATE FUNCTION again() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN UPDATE items SET action = action + 40 WHERE id = NEW.id; RETURN NULL; END'"
    )
    items.execute("CREATE TRIGGER again AFTER INSERT ON items FOR EACH ROW EXECUTE FUNCTION again()")
    items.execute("INSERT INTO items (id, action) VALUES (100, 60)")
    assert [(weight, int(action)) for weight, action in logged(items, "items", "action")] == [(1, 100)]


def test_insert_update_delete_of_one_row_net_to_nothing(items: Database) -> None:
    items.execute("INSERT INTO items (id) VALUES (100)")
    items.execute("UPDATE items SET action = 5 WHERE id = 100")
    items.execute("DELETE FROM items WHERE id = 100")
    assert logged(items, "items", "id, action") == []


def test_only_columns_that_are_read_are_captured(items: Database) -> None:
    columns = items.execute(
        "SELECT attname::text FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 ORDER BY attnum",
        buffer_of(items, "items"),
    )
    assert {name for (name,) in columns} == {
        "pgt_weight",
        "pgt_xid",
        "pgt_pos",
        "pgt_lsn",
        "pgt_at",
        "id",
        "parent",
        'Weird "name',
        "action",
    }


def test_a_change_of_two_integers_is_written_without_padding(db: Database) -> None:
    db.execute("CREATE TABLE counters (id integer PRIMARY KEY, n smallint)")
    db.execute("SELECT pgtrickle.create_stream_table('c', 'SELECT * FROM counters')")
    db.execute("INSERT INTO counters VALUES (1, 2)")
    # The header has 24 bytes, four columns 8 each, the weight with what fills up to the integer 4, the others 4 and 2.
    size = db.value(f"SELECT pg_column_size(b.*) FROM {buffer_of(db, 'counters')} AS b")
    assert size == 24 + 4 * 8 + 4 + 4 + 2


def test_wide_tables_and_toasted_values_are_captured(db: Database) -> None:
    names = [f"c{i}" for i in range(100)]
    db.execute(f"CREATE TABLE wide (id integer, big text, {', '.join(f'{name} integer' for name in names)})")
    db.execute("SELECT pgtrickle.create_stream_table('w', 'SELECT * FROM wide')")
    remember(db, "wide")
    db.execute("INSERT INTO wide (id, big) SELECT 1, string_agg(md5(i::text), '') FROM generate_series(1, 5000) AS i")
    db.execute("UPDATE wide SET c64 = 1")
    assert_replays(db, "wide", "id, big, c64, c99")


def test_generated_and_dropped_columns_are_captured_right(db: Database) -> None:
    db.execute("CREATE TABLE t (gone integer, a integer, g integer GENERATED ALWAYS AS (a * 2) STORED, found text)")
    db.execute("ALTER TABLE t DROP COLUMN gone")
    db.execute("SELECT pgtrickle.create_stream_table('s', 'SELECT a, g, found FROM t')")
    remember(db, "t")
    db.execute("INSERT INTO t (a, found) VALUES (1, 'x'), (2, NULL)")
    db.execute("UPDATE t SET a = a + 10 WHERE a = 2")
    assert logged(db, "t", "a, g") == [(1, 1, 2), (1, 12, 24)]
    assert_replays(db, "t", "a, g, found")


@on_both_servers
@pytest.mark.parametrize("child", [False, True], ids=["statement", "row"])
def test_virtual_generated_columns_are_computed(db: Database, child: bool) -> None:
    if db.version < 18:
        pytest.skip("virtual generated columns came with PostgreSQL 18")
    db.execute("CREATE TABLE t (a integer, found integer, v integer GENERATED ALWAYS AS (a * 2 + found) VIRTUAL)")
    db.execute("CREATE TABLE above (a integer, found integer)")
    if child:
        db.execute("ALTER TABLE t INHERIT above")
    db.execute("SELECT pgtrickle.create_stream_table('s', 'SELECT v FROM t')")
    remember(db, "t")
    db.execute("INSERT INTO t VALUES (1, 1), (2, 1)")
    db.execute("UPDATE t SET a = 5 WHERE a = 2")
    assert logged(db, "t", "v") == [(1, 3), (1, 11)]
    db.execute("TRUNCATE t")
    assert_replays(db, "t", "v")


@pytest.mark.parametrize("name", ["pgt_weight", "pgt_xid", "pgt_pos", "pgt_lsn", "pgt_at"])
def test_a_column_named_like_a_bookkeeping_column_is_refused(db: Database, name: str) -> None:
    db.execute(f"CREATE TABLE t (a integer, {name} integer)")
    with refused("42701", "Rename the column"):
        db.execute("SELECT pgtrickle.create_stream_table('s', 'SELECT a FROM t')")


NAMES = (
    "weight",
    "xid",
    "n",
    "action",
    "old",
    "tg_op",
    "pgt_new",
    "pgt_old",
    "pos",
    "select",
    'a"b',
    "a%b",
    "é x",
    "$$",
    "found",
)


def test_any_other_column_name_is_captured(db: Database) -> None:
    columns = ", ".join('"' + name.replace('"', '""') + '"' for name in NAMES)
    db.execute(f"CREATE TABLE t ({columns.replace(',', ' integer,')} integer)")
    db.execute(f"SELECT pgtrickle.create_stream_table('s', $query$SELECT {columns} FROM t$query$)")
    remember(db, "t")
    numbers = ", ".join(str(i) for i, _ in enumerate(NAMES))
    db.execute(f"INSERT INTO t VALUES ({numbers}), ({numbers})")
    db.execute('UPDATE t SET "a%b" = 99, "select" = weight')
    assert_replays(db, "t", columns)
    db.execute("TRUNCATE t")
    assert_replays(db, "t", columns)
    assert db.value("SELECT pgtrickle.capture_problem('t')") is None


def test_a_writer_needs_no_rights_on_the_catalog(items: Database) -> None:
    items.create_role("writer")
    items.execute("GRANT INSERT, UPDATE, DELETE, SELECT, TRUNCATE ON items TO writer")
    writer = items.connect()
    writer.execute("SET SESSION AUTHORIZATION writer")
    for change in (CHANGES["insert many"], CHANGES["update key"], CHANGES["delete some"], CHANGES["truncate"]):
        writer.execute(change)
    assert_replays(items, "items", COLUMNS)


def test_a_hostile_search_path_of_the_writer_changes_nothing(items: Database) -> None:
    items.execute("CREATE SCHEMA evil")
    items.execute("CREATE FUNCTION evil.nextval(regclass) RETURNS bigint LANGUAGE sql AS 'SELECT -1::bigint'")
    items.execute("CREATE FUNCTION evil.pg_current_xact_id() RETURNS xid8 LANGUAGE sql AS $$SELECT '1'::xid8$$")
    connection = items.connect()
    connection.execute("SET search_path = evil, pg_catalog, public")
    connection.execute("INSERT INTO items (id) VALUES (100)")
    connection.execute("TRUNCATE items")
    assert items.value(
        f"SELECT min(pgt_pos) > 0 AND count(*) FILTER (WHERE pgt_xid = '1') = 0 FROM {buffer_of(items, 'items')}"
    )
    assert_replays(items, "items", COLUMNS)


def test_each_call_of_a_capture_function_looks_up_no_schema_but_those_of_postgresql(items: Database) -> None:
    paths = "SELECT DISTINCT proconfig FROM pg_proc WHERE pronamespace = 'pgtrickle_changes'::regnamespace"
    assert items.execute(paths) == [(["search_path=pg_catalog, pg_temp"],)]


def test_truncate_under_an_older_snapshot_is_noticed(items: Database) -> None:
    connection = items.connect(autocommit=False)
    connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    connection.execute("SELECT count(*) FROM parents")
    items.execute("INSERT INTO items (id) VALUES (100)")
    connection.execute("TRUNCATE items")
    connection.commit()
    assert "truncated under an older snapshot" in items.value("SELECT pgtrickle.capture_problem('items')")
    items.execute("SELECT pgtrickle.repair_capture('items')")
    assert items.value("SELECT pgtrickle.capture_problem('items')") is None
