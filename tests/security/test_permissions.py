"""Everything below a stream table is readable by the role as which PostgreSQL reads it there, or it is refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from psycopg import sql

import pytrickle
from pytrickle.errors import PytrickleError
from tests.conftest import Database
from tests.security.staff import Staff, staff


@pytest.fixture
def world(every_db: Database) -> Iterator[Staff]:
    """The staff, refreshed by a superuser, who may read everything."""
    with staff(every_db) as world:
        yield world


@pytest.fixture
def own(every_empty_db: Database) -> Iterator[Staff]:
    """The staff in a catalog of the role etl, which is no superuser, owns no table and refreshes."""
    db = every_empty_db
    db.create_role("etl")
    database = sql.Identifier(db.connect().info.dbname)
    db.execute(sql.SQL("GRANT CREATE ON DATABASE {} TO etl").format(database).as_string())
    db.execute("GRANT CREATE ON SCHEMA public TO etl")
    pytrickle.install(f"{db.dsn}?user=etl")
    with staff(db, "etl") as world:
        yield world


def test_a_view_whose_owner_may_not_read_its_table_is_refused_to_a_superuser_too(world: Staff) -> None:
    world.view("seen", "clerk", "SELECT id FROM people")
    world.db.execute("REVOKE SELECT ON people FROM clerk")
    with pytest.raises(PytrickleError, match=r"the view public\.seen reads as clerk") as error:
        world.client.create_stream_table("kept", "SELECT id FROM seen")
    assert error.value.hint == "GRANT SELECT ON public.people TO clerk."
    world.db.execute("GRANT SELECT ON people TO clerk")
    world.client.create_stream_table("kept", "SELECT id FROM seen")
    assert world.tick() == {"kept": "FULL"}


# What the owner of the view may read of people, and its query; what PostgreSQL itself lets it read is allowed.
COLUMNS = {
    "the columns it reads": ("GRANT SELECT (id, name) ON people TO clerk", "SELECT id FROM people WHERE name <> ''"),
    "no column where none is read": ("GRANT SELECT (name) ON people TO clerk", "SELECT count(*) AS id FROM people"),
    "another column than the condition reads": (
        "GRANT SELECT (id) ON people TO clerk",
        "SELECT id FROM people WHERE NOT secret",
    ),
    "not every column of a whole row": (
        "GRANT SELECT (id, name) ON people TO clerk",
        "SELECT id FROM people WHERE people IS NOT NULL",
    ),
    "every table by a predefined role": ("GRANT pg_read_all_data TO clerk", "SELECT id FROM people"),
}


@pytest.mark.parametrize("rights", COLUMNS)
def test_rights_on_columns_are_judged_as_postgresql_judges_them(world: Staff, rights: str) -> None:
    grant, query = COLUMNS[rights]
    world.view("seen", "clerk", query)
    world.db.execute("REVOKE SELECT ON people FROM clerk")
    world.db.execute(grant)
    try:
        expected = world.seen("clerk", "TABLE seen")
    except Exception as error:
        assert "permission denied" in str(error)
        with pytest.raises(PytrickleError, match=r"the view public\.seen reads as clerk"):
            world.client.create_stream_table("kept", "SELECT id FROM seen")
        return
    world.client.create_stream_table("kept", "SELECT id FROM seen")
    assert world.tick() == {"kept": "FULL"}
    assert world.seen("postgres", "TABLE kept") == expected


# What is done after the stream table was filled, and the remedy.
LATER = {
    "the table is revoked from the view's owner": (
        "REVOKE SELECT ON people FROM clerk",
        "GRANT SELECT ON people TO clerk",
        "permission denied for public.people, which the view public.inner_one reads as clerk",
    ),
    "only other columns remain": (
        "REVOKE SELECT ON people FROM clerk; GRANT SELECT (secret) ON people TO clerk",
        "GRANT SELECT (id) ON people TO clerk",
        "permission denied for public.people, which the view public.inner_one reads as clerk",
    ),
    "the inner view is revoked from the outer one's owner": (
        "REVOKE SELECT (id) ON inner_one FROM auditor",
        "GRANT SELECT (id) ON inner_one TO auditor",
        "permission denied for public.inner_one, which the view public.seen reads as auditor",
    ),
    "the inner view asks as the invoker, who may": (
        "ALTER VIEW inner_one SET (security_invoker); REVOKE SELECT ON inner_one FROM auditor CASCADE",
        "GRANT SELECT ON inner_one TO auditor",
        "permission denied for public.inner_one, which the view public.seen reads as auditor",
    ),
}


@pytest.mark.parametrize("change", LATER)
def test_a_stream_table_stops_when_a_right_below_it_is_revoked_and_goes_on_when_it_is_granted(
    world: Staff, change: str
) -> None:
    what, remedy, reason = LATER[change]
    world.view("inner_one", "clerk", "SELECT id FROM people")
    world.db.execute("GRANT SELECT (id) ON inner_one TO auditor")
    world.view("seen", "auditor", "SELECT id FROM inner_one")
    world.client.create_stream_table("kept", "SELECT id FROM seen")
    world.client.create_stream_table("beside", "SELECT id FROM rooms")
    assert world.tick() == {"kept": "FULL", "beside": "FULL"}
    world.db.execute(what)
    world.hire()
    for _ in range(2):
        assert world.tick()["kept"] == "FAILED"
        assert world.errors == {"kept": reason}
    world.db.execute(remedy)
    assert world.tick()["kept"] == "DIFFERENTIAL"
    assert world.seen("postgres", "TABLE kept") == world.seen("postgres", "SELECT id FROM people")


def test_what_the_owner_of_a_view_may_read_need_not_be_readable_for_who_refreshes(own: Staff) -> None:
    own.db.execute("CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM people")
    own.db.execute("ALTER MATERIALIZED VIEW counted OWNER TO hr")
    own.view("seen", "hr", "SELECT n FROM counted")
    own.db.execute("GRANT SELECT ON seen TO etl")
    own.client.create_stream_table("kept", "SELECT n FROM seen")
    assert own.tick() == {"kept": "FULL"}
    assert own.seen("etl", "TABLE kept") == [(2,)]
    with pytest.raises(PytrickleError, match=r"permission denied for public\.counted") as error:
        own.client.create_stream_table("direct", "SELECT n FROM counted")
    assert error.value.hint == "GRANT SELECT ON public.counted TO etl."
    own.db.execute("ALTER VIEW seen SET (security_invoker)")
    assert own.tick() == {"kept": "FAILED"}
    assert own.errors == {"kept": "permission denied for public.counted"}


def test_what_is_captured_must_be_readable_for_who_refreshes_whatever_views_stand_between(own: Staff) -> None:
    own.view("seen", "clerk", "SELECT id FROM people")
    own.db.execute("GRANT SELECT ON seen TO etl")
    with pytest.raises(PytrickleError, match=r"only the owner of public\.people can have its changes captured"):
        own.client.create_stream_table("kept", "SELECT id FROM seen")
    own.db.execute("GRANT hr TO etl; REVOKE SELECT ON people FROM hr")
    with pytest.raises(PytrickleError, match=r"permission denied for public\.people") as error:
        own.client.create_stream_table("kept", "SELECT id FROM seen")
    assert error.value.hint == "GRANT SELECT ON public.people TO etl."
    own.db.execute("GRANT SELECT ON people TO etl")
    own.client.create_stream_table("kept", "SELECT id FROM seen")
    assert own.tick() == {"kept": "FULL"}
    own.db.execute("REVOKE SELECT ON people FROM etl")
    assert own.tick() == {"kept": "FAILED"}
    assert own.errors == {"kept": "permission denied for public.people"}


def test_forced_policies_stop_the_owner_who_refreshes_and_a_superuser_who_does_it_for_him(own: Staff) -> None:
    own.db.execute("ALTER TABLE people OWNER TO etl")
    own.client.create_stream_table("kept", "SELECT id FROM people")
    assert own.tick() == {"kept": "FULL"}
    own.db.execute("ALTER TABLE people ENABLE ROW LEVEL SECURITY")
    own.hire()
    assert own.tick() == {"kept": "DIFFERENTIAL"}
    own.db.execute("ALTER TABLE people FORCE ROW LEVEL SECURITY")
    own.hire()
    assert own.tick() == {"kept": "FAILED"}
    assert own.errors == {"kept": "row-level security filters what etl sees of public.people"}
    with pytrickle.connect(own.db.dsn) as superuser:
        own.db.execute("UPDATE pgtrickle.pgt_stream_tables SET retry_at = NULL")
        (result,) = superuser.tick()
    assert result.error == (
        "row-level security filters what etl sees of public.people, which the stream table reads as etl"
    )
    assert own.db.value("SELECT count(*) FROM kept") == 3


def test_rows_that_a_superuser_may_read_are_not_read_for_an_owner_who_may_not(own: Staff) -> None:
    own.db.execute("GRANT hr TO etl")
    own.client.create_stream_table("kept", "SELECT id FROM people")
    own.db.execute("REVOKE hr FROM etl")
    with pytrickle.connect(own.db.dsn) as superuser:
        (result,) = superuser.tick()
    assert result.error == "permission denied for public.people, which the stream table reads as etl"
    own.db.execute("GRANT hr TO etl")
    assert own.tick() == {"kept": "FULL"}


def test_a_view_over_what_who_refreshes_may_not_read_is_also_read_as_its_owner_at_a_cut(own: Staff) -> None:
    own.db.execute("CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM people")
    own.db.execute("ALTER MATERIALIZED VIEW counted OWNER TO hr")
    own.view("seen", "hr", "SELECT n FROM counted")
    own.db.execute("CREATE TABLE orders (id integer); CREATE VIEW ordered AS SELECT id FROM orders")
    own.db.execute("ALTER TABLE orders OWNER TO etl; ALTER VIEW ordered OWNER TO etl; GRANT SELECT ON seen TO etl")
    own.client.create_watermark_group("alone", ["orders"])
    query = "SELECT o.id, s.n FROM ordered AS o CROSS JOIN seen AS s"
    own.client.create_stream_table("kept", query, watermark_gating="hold_back")
    own.db.execute("INSERT INTO orders VALUES (1)")
    own.db.execute("SELECT pgtrickle.advance_watermark('orders', '2026-03-02 12:00Z'::timestamptz)")
    own.db.execute("INSERT INTO orders VALUES (2)")
    assert own.tick() == {"kept": "FULL"}
    assert own.seen("etl", "TABLE kept") == [(1, 2)]
