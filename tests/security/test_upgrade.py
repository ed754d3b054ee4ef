"""A catalog of before these defences is upgraded in place, with what members own and what was granted."""

import io
import subprocess
import tarfile
from pathlib import Path

import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from pytrickle.catalog import install as migrate
from pytrickle.catalog.install import Script
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.security.roles import Session
from tests.sql.checks import refused

BEFORE = "89c1977"
ROOT = Path(__file__).parents[2]
FUNCTIONS = (
    "SELECT oid::regprocedure::text FROM pg_proc"
    " WHERE pronamespace::regnamespace::text IN ('pgtrickle', 'pgtrickle_private') ORDER BY 1"
)
COPIES = (
    "SELECT count(*) FROM pg_proc AS c JOIN pg_proc AS p USING (proname, proargtypes)"
    " WHERE c.pronamespace = 'pgtrickle'::regnamespace AND p.pronamespace = 'pgtrickle_private'::regnamespace"
)
STRANGE = (
    "SELECT count(*) FROM pg_class AS c WHERE c.relnamespace::regnamespace::text ~ '^pgtrickle'"
    " AND pg_get_userbyid(c.relowner) <> 'etl'"
)


@pytest.fixture(scope="module")
def earlier() -> tuple[Script, ...]:
    """The scripts of the last commit before."""
    found = subprocess.run(["git", "archive", BEFORE, "sql"], cwd=ROOT, capture_output=True, check=False)
    if found.returncode:
        pytest.skip("the history of the project is not here")
    with tarfile.open(fileobj=io.BytesIO(found.stdout)) as archive:
        texts = {
            member.name: archive.extractfile(member).read().decode()  # type: ignore[union-attr]
            for member in archive
            if member.name.endswith(".sql")
        }
    migrations = [name for name in sorted(texts) if name.startswith("sql/migrations/")]
    functions = "\n".join(texts[name] for name in sorted(texts) if name.startswith("sql/functions/"))
    return (
        *(Script(int(Path(name).name[:4]), Path(name).stem, texts[name]) for name in migrations),
        Script(0, "functions", functions),
    )


@pytest.fixture
def house(every_empty_db: Database, earlier: tuple[Script, ...]) -> Database:
    """An earlier catalog of etl, with a stream table that its member alice made as herself, and default privileges."""
    db = every_empty_db
    for role in ("etl", "alice", "loader", "mallory"):
        db.create_role(role)
    database = sql.Identifier(db.value("SELECT current_database()"))
    db.execute(sql.SQL("GRANT CREATE ON DATABASE {} TO etl").format(database).as_string())
    db.execute("GRANT ALL ON SCHEMA public TO etl")
    db.execute("GRANT etl TO alice")
    etl = db.connect(user="etl")
    for role in ("etl", "alice"):
        db.execute(f"ALTER DEFAULT PRIVILEGES FOR ROLE {role} GRANT ALL ON TABLES TO mallory")
    for script in earlier:
        etl.execute(script.text.encode(), prepare=False)
        etl.execute(script.record.encode(), prepare=False)
    etl.execute("CREATE TABLE orders (id integer PRIMARY KEY, amount integer, at timestamptz)")
    etl.execute("GRANT INSERT, SELECT ON orders TO loader")
    return db


def fill(db: Database, creator: str = "alice") -> Session:
    """Do with the earlier catalog what its users did."""
    owner, loader = db.connect(user=creator), db.connect(user="loader")
    owner.execute("SELECT pgtrickle.create_stream_table('totals', 'SELECT id, amount FROM public.orders')")
    owner.execute("SELECT pgtrickle.set_event_time('orders', 'at', too_late => '1 hour')")
    loader.execute("SELECT pgtrickle.advance_watermark('orders', '2026-03-01 12:00Z')")
    loader.execute("INSERT INTO orders VALUES (1, 10, '2026-03-01 12:30Z'), (2, 20, '2026-03-01 08:00Z')")
    loader.execute("SELECT pgtrickle.claim_sink_batch('orders', 'files', 'q', 0)")
    return loader


def test_a_catalog_of_before_is_upgraded_with_what_members_own_and_what_was_granted(house: Database) -> None:
    loader = fill(house)
    assert house.value(STRANGE) > 0
    etl = house.connect(user="etl")
    warnings: list[str] = []
    etl.add_notice_handler(lambda notice: warnings.append(notice.message_primary or ""))
    assert migrate.install(etl)[-1] == "functions"
    assert any("belongs to another role than the catalog" in warning for warning in warnings)
    # What alice owns could not be written; a loader does not notice.
    loader.execute("INSERT INTO orders VALUES (4, 40, '2026-03-01 12:40Z')")
    dsn = make_conninfo(house.dsn, user="etl")
    with local_client(dsn) as (client, _):
        (result,) = client.tick()
        assert (result.action, "belongs to alice" in str(result.error)) == ("FAILED", True)
    house.execute("SELECT pgtrickle.settle_grants()")
    with local_client(dsn) as (client, _):  # what failed to be repaired is left alone for a while by who tried it
        assert house.value(STRANGE) == 0
        guard = "SELECT count(*) FROM pg_trigger WHERE tgname = 'pgtrickle_guard_rows' AND tgrelid = 'totals'::regclass"
        assert house.value(guard) == 1
        assert migrate.trust(house.connect()) == "etl"
        assert migrate.grants(house.connect()) == ()
        assert [result.action for result in client.tick()] == ["FULL"]
        house.execute("SELECT pgtrickle.settle_grants()")
        assert house.value(COPIES) == 0
        house.execute("REVOKE etl FROM alice")
        loader.execute("INSERT INTO orders VALUES (3, 30, '2026-03-01 13:00Z')")
        loader.execute("SELECT pgtrickle.advance_watermark('orders', '2026-03-01 13:00Z')")
        assert [result.action for result in client.tick()] == ["DIFFERENTIAL"]
    assert house.execute("SELECT id FROM totals ORDER BY id") == [(1,), (3,), (4,)]
    assert loader.execute("SELECT pgtrickle.replay_late_rows('orders')").fetchone() == (1,)
    assert house.execute("SELECT status FROM pgtrickle.late_rows('orders')") == [("replayed",)]
    assert not loader.execute("SELECT pgtrickle.claim_sink_batch('orders', 'files', 'q', 0)").fetchone()[0]  # type: ignore[index]
    house.execute("GRANT INSERT ON orders TO mallory")
    with refused("42501", "another name"):
        house.connect(user="mallory").execute("SELECT pgtrickle.drop_sink('orders', 'files')")


def test_capture_of_an_upgraded_catalog_is_watched_from_then_on(house: Database) -> None:
    fill(house, "etl")
    migrate.install(house.connect(user="etl"))
    assert house.value("SELECT pgtrickle.capture_problem('orders')") is None
    paths = "SELECT DISTINCT proconfig FROM pg_proc WHERE proname ~ '^capture_.*[0-9]$'"
    assert house.execute(paths) == [(["search_path=pg_catalog, pg_temp"],)]
    assert house.value(COPIES) == 0
    trigger = house.value("SELECT format('pgtrickle_insert_%s', 'orders'::regclass::oid)")
    house.execute(f"ALTER TABLE orders DISABLE TRIGGER {trigger}")
    house.execute(f"ALTER TABLE orders ENABLE TRIGGER {trigger}")
    assert house.value("SELECT pgtrickle.capture_problem('orders')") == "capture triggers were altered"


def test_an_upgraded_catalog_has_the_functions_of_a_fresh_one(house: Database, db: Database) -> None:
    migrate.install(house.connect(user="etl"))
    assert house.execute(FUNCTIONS) == db.execute(FUNCTIONS)


def test_a_query_of_before_needs_no_path_after_the_upgrade(house: Database) -> None:
    if not house.value("SELECT count(*) FROM pg_available_extensions WHERE name = 'citext'"):
        pytest.skip("citext is not there: this server has no extensions beside it")
    house.execute("CREATE EXTENSION citext SCHEMA public")
    etl = house.connect(user="etl")
    etl.execute("CREATE FUNCTION twice(n integer) RETURNS integer IMMUTABLE LANGUAGE sql AS 'SELECT n * 2'")
    body = "BEGIN RETURN twice(n); END"
    etl.execute(f"CREATE FUNCTION found(n integer) RETURNS integer IMMUTABLE LANGUAGE plpgsql AS '{body}'")
    etl.execute("CREATE TABLE codes (code citext, n integer)")
    query = "SELECT NULLIF(code, 'b') AS code, sum(found(n)) AS n FROM codes GROUP BY 1"
    etl.execute("SELECT pgtrickle.create_stream_table('kept', %s)", (query,))
    etl.execute("INSERT INTO codes VALUES ('a', 1), ('A', 2), ('B', 3)")
    migrate.install(house.connect(user="etl"))
    with local_client(make_conninfo(house.dsn, user="etl")) as (client, _):
        assert [(result.action, result.error) for result in client.tick()] == [("FULL", None)]
        etl.execute("INSERT INTO codes VALUES ('A', 10), ('b', 20)")
        assert [(result.action, result.error) for result in client.tick()] == [("DIFFERENTIAL", None)]
    assert house.execute("SELECT upper(code::text), n FROM kept ORDER BY 2") == [("A", 26), (None, 46)]
