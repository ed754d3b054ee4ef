"""Capture cannot be switched off unnoticed, and no setting hides a late row."""

import psycopg
import pytest

from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.security.roles import House
from tests.sql.checks import buffer_of
from tests.sql.late import EVENTS, advance, at, declared, ids, ledger

ATTACKS = {
    "triggers off and on": (
        "ALTER TABLE orders DISABLE TRIGGER {insert}",
        "INSERT INTO orders VALUES (3, 30)",
        "ALTER TABLE orders ENABLE ALWAYS TRIGGER {insert}",
    ),
    "all triggers off and on": (
        "ALTER TABLE orders DISABLE TRIGGER ALL",
        "DELETE FROM orders WHERE id = 1",
        "ALTER TABLE orders ENABLE ALWAYS TRIGGER {insert}",
        "ALTER TABLE orders ENABLE ALWAYS TRIGGER {update}",
        "ALTER TABLE orders ENABLE ALWAYS TRIGGER {delete}",
        "ALTER TABLE orders ENABLE ALWAYS TRIGGER {truncate}",
    ),
    "another stream table is made afterwards": (
        "ALTER TABLE orders DISABLE TRIGGER {insert}",
        "INSERT INTO orders VALUES (3, 30)",
        "ALTER TABLE orders ENABLE ALWAYS TRIGGER {insert}",
        "SELECT pgtrickle.create_stream_table('more', 'SELECT id, at FROM orders')",
    ),
}


@pytest.fixture
def filled(every_db: Database) -> Database:
    every_db.execute("CREATE TABLE orders (id integer PRIMARY KEY, amount integer, at timestamptz)")
    every_db.execute("INSERT INTO orders VALUES (1, 10), (2, 20)")
    every_db.execute("SELECT pgtrickle.create_stream_table('totals', 'SELECT id, amount FROM orders')")
    return every_db


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_was_not_captured_within_one_transaction_is_noticed_and_read_anew(filled: Database, attack: str) -> None:
    oid = filled.value("SELECT 'orders'::regclass::oid")
    names = {event: f"pgtrickle_{event}_{oid}" for event in ("insert", "update", "delete", "truncate")}
    with local_client(filled.dsn) as (client, _):
        client.tick()
        with filled.connect(autocommit=False) as owner:
            for statement in ATTACKS[attack]:
                owner.execute(statement.format(**names).encode())
        (result,) = (result for result in client.tick() if result.stream_table == "public.totals")
        assert result.action == "REINITIALIZE"
        assert "may have been missed" in result.reason
        again = {result.action for result in client.tick()}
    assert again <= {"NO_DATA"}
    shown = sorted(filled.execute("SELECT id, amount FROM totals"))
    assert shown == sorted(filled.execute("SELECT id, amount FROM orders"))


def test_a_captured_column_cannot_be_rewritten(filled: Database) -> None:
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        filled.execute("ALTER TABLE orders ALTER COLUMN amount TYPE integer USING amount * 2")


def test_a_rewrite_that_changes_no_value_costs_no_reinitialization(filled: Database) -> None:
    with local_client(filled.dsn) as (client, _):
        client.tick()
        filled.execute("VACUUM FULL orders")
        assert filled.value("SELECT pgtrickle.capture_problem('orders')") is None
        filled.execute("ALTER TABLE orders ADD COLUMN more uuid DEFAULT gen_random_uuid()")
        filled.execute("GRANT SELECT (id) ON orders TO PUBLIC")
        filled.execute("INSERT INTO orders VALUES (3, 30)")
        assert {result.action for result in client.tick()} == {"DIFFERENTIAL"}


@pytest.mark.parametrize(
    "setting",
    ["set_config('pgtrickle.replaying', 'events'::regclass::oid::text, true)", "set_config('{limit}', '', true)"],
)
def test_no_setting_lets_a_late_row_pass_or_hides_it(every_db: Database, setting: str) -> None:
    declared(every_db, EVENTS, too_late="1 hour")
    every_db.create_role("loader")
    every_db.execute("GRANT INSERT ON events TO loader")
    loader = every_db.connect(user="loader", autocommit=False)
    number = every_db.value("SELECT event_time_id FROM pgtrickle.pgt_event_times")
    hidden = setting.format(limit=f"pgtrickle.too_late_{number}")
    loader.execute(f"SELECT {hidden}".encode())
    loader.execute(
        f"INSERT INTO events (id, at) SELECT i, %s FROM generate_series(1, 3) AS i, (SELECT {hidden}) AS s".encode(),
        (at("09:00"),),
    )
    loader.execute("INSERT INTO events (id, at) VALUES (4, %s)", (at("11:30"),))
    loader.commit()
    assert ids(every_db) == [4]
    assert ledger(every_db) == [(1, "kept_out"), (2, "kept_out"), (3, "kept_out"), (4, "loaded")]


def test_a_replay_that_puts_nothing_back_is_none(every_db: Database) -> None:
    declared(every_db, EVENTS, too_late="1 hour")
    every_db.execute("INSERT INTO events (id, at) VALUES (1, %s)", at("09:00"))
    every_db.create_role("loader")
    every_db.execute("GRANT INSERT, SELECT ON events TO loader")
    loader = every_db.connect(user="loader")
    call = "INSERT INTO pgtrickle.pgt_calls (call, source, arguments) VALUES (%s, 'events', '{}')"
    loader.execute(call, ("begin_replay",))
    assert ledger(every_db) == [(1, "kept_out")]
    with loader.transaction():
        loader.execute(call, ("begin_replay",))
        loader.execute(call, ("end_replay",))
    assert ledger(every_db) == [(1, "discarded")], "what did not come in is not called replayed"


def test_a_replay_lets_no_other_row_pass_unseen(every_db: Database) -> None:
    declared(every_db, EVENTS, too_late="1 hour")
    every_db.execute("INSERT INTO events (id, at) VALUES (1, %s)", at("09:00"))
    call = "INSERT INTO pgtrickle.pgt_calls (call, source, arguments) VALUES ('begin_replay', 'events', '{}')"
    loader = every_db.connect(autocommit=False)
    loader.execute(call)
    loader.execute("INSERT INTO events (id, at) VALUES (7, %s), (8, %s)", (at("09:00"), at("09:00")))
    loader.execute("INSERT INTO events (id, at) VALUES (9, %s)", (at("08:00"),))
    loader.commit()
    assert sorted(status for _, status in ledger(every_db)) == ["kept_out", "loaded", "replayed"]


def test_a_row_that_moves_to_another_partition_passes_the_limit_and_later_ones_do_not(every_db: Database) -> None:
    declared(every_db, "CREATE TABLE events (id integer, at timestamptz) PARTITION BY LIST (id)")
    for number in (1, 2):
        every_db.execute(f"CREATE TABLE events_{number} PARTITION OF events FOR VALUES IN ({number})")
    every_db.execute("INSERT INTO events VALUES (1, %s)", at("09:00"))
    every_db.execute("SELECT pgtrickle.set_event_time('events', 'at', too_late => '1 hour')")
    with every_db.connect(autocommit=False) as loader:
        loader.execute("UPDATE events SET id = 2")
        loader.execute("INSERT INTO events VALUES (1, %s)", (at("08:00"),))
    assert ids(every_db) == [2]
    advance(every_db, "13:00")


FORCES_POLICIES = """
CREATE FUNCTION secure() RETURNS event_trigger LANGUAGE plpgsql AS $$
DECLARE
    made text;
BEGIN
    FOR made IN SELECT object_identity FROM pg_event_trigger_ddl_commands() WHERE object_type = 'table' LOOP
        EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', made);
    END LOOP;
END
$$;
CREATE EVENT TRIGGER secure ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION secure()
"""


def test_no_loader_fails_where_every_new_table_gets_row_level_security(house: House) -> None:
    house.db.execute(FORCES_POLICIES)
    house.etl.execute("SELECT pgtrickle.create_stream_table('s', 'SELECT id FROM orders')")
    house.etl.execute("INSERT INTO orders VALUES (1, 1, now())")
    assert house.etl.execute(f"SELECT id FROM {buffer_of(house.db, 'orders')}").fetchall() == [(1,)]
