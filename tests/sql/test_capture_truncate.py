"""What a trigger writes to a table while a statement truncates it is never shown as if it had stayed."""

from collections.abc import Iterator

import pytest

from pytrickle import Client
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.sql.checks import buffer_of

TABLES = """
CREATE TABLE a (id integer, v integer) {partitioned};
{part}
CREATE TABLE b (id integer);
INSERT INTO a VALUES (1, 1), (2, 2);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO a VALUES (99, 99); DELETE FROM a WHERE id = 1; RETURN NULL; END $$
"""


@pytest.fixture(params=["table", "partition"])
def client(db: Database, request: pytest.FixtureRequest) -> Iterator[Client]:
    """A stream table over the table, or over its one partition, which is captured row by row."""
    parted = request.param == "partition"
    part = "CREATE TABLE p PARTITION OF a DEFAULT;" if parted else ""
    db.execute(TABLES.format(partitioned="PARTITION BY LIST (id)" if parted else "", part=part))
    with local_client(db.dsn) as (opened, _):
        opened.create_stream_table("s", f"SELECT id, v FROM {'p' if parted else 'a'}")
        opened.tick()
        yield opened


def action(client: Client) -> str:
    (result,) = client.tick()
    assert result.error is None
    assert client.verify("s").matches
    return result.action


@pytest.mark.parametrize(
    ("table", "statement"),
    [("b", "TRUNCATE a, b"), ("b", "TRUNCATE b, a"), ("captured", "TRUNCATE a")],
    ids=["after", "before", "itself"],
)
def test_a_write_by_a_trigger_of_the_same_truncation_leaves_no_row_behind(
    db: Database, client: Client, table: str, statement: str
) -> None:
    name = db.value("SELECT coalesce(to_regclass('p'), 'a')::text") if table == "captured" else table
    db.execute(f"CREATE TRIGGER zz_note BEFORE TRUNCATE ON {name} FOR EACH STATEMENT EXECUTE FUNCTION note()")
    db.execute(statement)
    assert action(client) == ("DIFFERENTIAL" if statement == "TRUNCATE b, a" else "REINITIALIZE")
    db.execute("INSERT INTO a VALUES (1, 5)")
    assert action(client) == "DIFFERENTIAL"


def test_what_triggers_write_after_a_truncation_is_captured(db: Database, client: Client) -> None:
    db.execute("CREATE TRIGGER note AFTER INSERT ON b FOR EACH STATEMENT EXECUTE FUNCTION note()")
    with db.connect(autocommit=False) as loader:
        loader.execute("TRUNCATE a")
        loader.execute("INSERT INTO b VALUES (1)")
    assert action(client) == "DIFFERENTIAL"


@pytest.mark.parametrize("level", ["READ UNCOMMITTED", "READ COMMITTED"])
def test_a_truncation_under_a_new_snapshot_is_captured(db: Database, client: Client, level: str) -> None:
    with db.connect(autocommit=False) as loader:
        loader.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
        loader.execute("TRUNCATE a")
        loader.execute("INSERT INTO a VALUES (3, 3)")
    assert action(client) == "DIFFERENTIAL"


def test_a_table_is_truncated_also_where_the_catalog_may_not_read_it(db: Database, client: Client) -> None:
    table = db.value("SELECT coalesce(to_regclass('p'), 'a')::text")
    db.create_role("reader")
    buffer = buffer_of(db, table)
    function = db.value("SELECT oid::regprocedure::text FROM pg_proc WHERE proname ~ '^capture_truncate'")
    # As where the owner of the catalog, who is no superuser, lost a right on the table.
    db.execute("GRANT USAGE ON SCHEMA pgtrickle, pgtrickle_private, pgtrickle_changes TO reader")
    db.execute("GRANT ALL ON ALL TABLES IN SCHEMA pgtrickle, pgtrickle_changes TO reader")
    db.execute("GRANT ALL ON ALL SEQUENCES IN SCHEMA pgtrickle TO reader")
    db.execute("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA pgtrickle, pgtrickle_private TO reader")
    db.execute(f"ALTER FUNCTION {function} OWNER TO reader")
    db.execute(f"TRUNCATE {table}")
    assert db.value(f"SELECT count(*) FROM {buffer}") == 0
    assert "could not be read" in db.value("SELECT pgtrickle.capture_problem(%s)", table)
