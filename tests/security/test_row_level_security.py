"""A stream table never shows rows that row-level security hides from the role as which PostgreSQL reads them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pytrickle.errors import PytrickleError
from tests.conftest import Database
from tests.repeats import first
from tests.security.staff import Staff, staff

ENABLE = "ALTER TABLE people ENABLE ROW LEVEL SECURITY"


@pytest.fixture
def world(every_db: Database) -> Iterator[Staff]:
    """The staff, refreshed by a superuser, to whom no policy applies."""
    with staff(every_db) as world:
        yield world


# Each view is clerk's, to whom the policy applies, and reads people in another place of its query.
HIDDEN_IN = {
    "the FROM clause": "SELECT id FROM people",
    "a join": "SELECT r.id FROM rooms AS r JOIN people AS p ON p.id = r.person",
    "a subquery in FROM": "SELECT id FROM (SELECT id FROM people OFFSET 0) AS s",
    "a LATERAL subquery": "SELECT r.id FROM rooms AS r, LATERAL (SELECT FROM people AS p WHERE p.id = r.person) AS l",
    "a common table expression": "WITH p AS (SELECT id FROM people) SELECT id FROM p",
    "an EXISTS": "SELECT id FROM rooms AS r WHERE EXISTS (SELECT FROM people AS p WHERE p.id = r.person)",
    "a NOT IN": "SELECT id FROM rooms WHERE person NOT IN (SELECT id FROM people)",
    "a scalar subquery": "SELECT id, (SELECT count(*) FROM people) AS n FROM rooms",
    "the second arm of a UNION": "SELECT id FROM rooms UNION ALL SELECT id FROM people",
    "an EXCEPT": "SELECT person AS id FROM rooms EXCEPT SELECT id FROM people",
    "an aggregate": "SELECT count(*) AS n FROM people",
    "a column that is not shown": "SELECT r.id FROM rooms AS r LEFT JOIN people AS p ON p.id = r.person AND p.secret",
}


@pytest.mark.parametrize("place", HIDDEN_IN)
def test_a_view_whose_owner_is_subject_to_policies_is_refused_wherever_it_reads(world: Staff, place: str) -> None:
    world.db.execute(ENABLE)
    world.view("seen", "clerk", HIDDEN_IN[place])
    with pytest.raises(
        PytrickleError, match=r"filters what clerk sees of public\.people, .* view public\.seen"
    ) as error:
        world.client.create_stream_table("kept", "SELECT * FROM seen")
    assert "owner to whom the policies do not apply" in str(error.value.hint)
    assert world.db.value("SELECT count(*) FROM pgtrickle.pgt_stream_tables") == 0


OTHER_WAYS_TO_READ_IT = {
    "through another's view": "SELECT * FROM above",
    "in a subquery": "SELECT id FROM rooms WHERE person IN (SELECT id FROM seen)",
    "in a common table expression": "WITH s AS MATERIALIZED (SELECT id FROM seen) SELECT id FROM s",
    "beside the table itself": "SELECT p.id FROM people AS p JOIN seen AS s ON s.id = p.id",
    "beside a view that sees everything": "SELECT a.id FROM audited AS a LEFT JOIN seen AS s ON s.id = a.id",
    "through a view that asks as the invoker": "SELECT * FROM asking",
    "through a security barrier": "SELECT * FROM fenced",
}


@pytest.mark.parametrize("way", OTHER_WAYS_TO_READ_IT)
def test_a_view_that_hides_rows_is_refused_however_it_is_reached(world: Staff, way: str) -> None:
    world.db.execute(ENABLE)
    world.view("seen", "clerk", "SELECT id FROM people")
    world.view("above", "auditor", "SELECT id FROM public.seen")
    world.view("audited", "auditor", "SELECT id FROM people")
    world.view("asking", "auditor", "SELECT id FROM seen", "WITH (security_invoker)")
    world.view("fenced", "clerk", "SELECT id FROM people", "WITH (security_barrier)")
    world.db.execute("GRANT SELECT ON seen TO auditor")
    with pytest.raises(PytrickleError, match="filters what clerk sees"):
        world.client.create_stream_table("kept", OTHER_WAYS_TO_READ_IT[way])


# The view, its owner, and whether it is refused; read by a superuser.
WHO_READS = {
    "the table's owner": ("", "hr", "", False),
    "the table's owner, whom FORCE includes": ("ALTER TABLE people FORCE ROW LEVEL SECURITY", "hr", "", True),
    "a member of the table's owner": ("GRANT hr TO clerk", "clerk", "", False),
    "a member of the table's owner, under FORCE": (
        "GRANT hr TO clerk; ALTER TABLE people FORCE ROW LEVEL SECURITY",
        "clerk",
        "",
        True,
    ),
    "a member that does not inherit": ("ALTER ROLE clerk NOINHERIT; GRANT hr TO clerk", "clerk", "", True),
    "a role with BYPASSRLS, under FORCE": ("ALTER TABLE people FORCE ROW LEVEL SECURITY", "auditor", "", False),
    "a member of a role with BYPASSRLS": ("GRANT auditor TO clerk", "clerk", "", True),
    "a superuser, under FORCE": ("ALTER TABLE people FORCE ROW LEVEL SECURITY", "postgres", "", False),
    "a role that a policy lets see everything": (
        "CREATE POLICY all_of_it ON people TO clerk USING (true)",
        "clerk",
        "",
        True,
    ),
    "a role to which no policy applies": ("DROP POLICY open_ones ON people", "clerk", "", True),
    "the invoker of clerk's view": ("", "clerk", "WITH (security_invoker)", False),
    "the invoker, spelled on": ("", "clerk", "WITH (security_invoker = on)", False),
    "not the invoker": ("", "clerk", "WITH (security_invoker = off)", True),
}


@pytest.mark.parametrize("who", WHO_READS)
def test_policies_are_judged_for_the_role_that_reads_below_the_view(world: Staff, who: str) -> None:
    change, owner, options, is_refused = WHO_READS[who]
    world.db.execute(ENABLE)
    world.view("seen", owner, "SELECT id, name FROM people", options)
    world.db.execute(change)
    if is_refused:
        with pytest.raises(PytrickleError, match=f"filters what {owner} sees"):
            world.client.create_stream_table("kept", "SELECT id, name FROM seen")
        return
    world.client.create_stream_table("kept", "SELECT id, name FROM seen")
    assert world.tick() == {"kept": "FULL"}
    world.hire()
    assert world.tick() == {"kept": "DIFFERENTIAL"}
    assert world.seen("postgres", "TABLE kept") == world.seen("postgres", "SELECT id, name FROM seen")
    assert len(world.seen("postgres", "TABLE kept")) == 3


def test_a_view_that_asks_as_the_invoker_within_another_view_asks_as_who_refreshes(world: Staff) -> None:
    world.db.execute(ENABLE)
    world.view("asking", "hr", "SELECT id FROM people", "WITH (security_invoker)")
    world.db.execute("GRANT SELECT ON asking TO clerk")
    world.view("above", "clerk", "SELECT id FROM asking")
    world.client.create_stream_table("kept", "SELECT id FROM above")
    assert world.tick() == {"kept": "FULL"}
    assert world.seen("postgres", "TABLE kept") == world.seen("postgres", "TABLE above") == [(1,), (2,)]


# What happens after the stream table was filled, the last of it in one step; what puts it right; words of the reason.
LATER = {
    "policies are enabled": (ENABLE, "ALTER TABLE people DISABLE ROW LEVEL SECURITY", "what clerk sees"),
    "policies are forced on the owner": (
        f"ALTER VIEW seen OWNER TO hr; {ENABLE}; ALTER TABLE people FORCE ROW LEVEL SECURITY",
        "ALTER TABLE people NO FORCE ROW LEVEL SECURITY",
        "what hr sees",
    ),
    "the view gets another owner": (
        f"ALTER VIEW seen OWNER TO hr; {ENABLE}; ALTER VIEW seen OWNER TO clerk",
        "ALTER VIEW seen OWNER TO auditor",
        "what clerk sees",
    ),
    "the view no longer asks as the invoker": (
        f"ALTER VIEW seen SET (security_invoker); {ENABLE}; ALTER VIEW seen RESET (security_invoker)",
        "ALTER VIEW seen SET (security_invoker = 1)",
        "what clerk sees",
    ),
    "the owner of the view loses BYPASSRLS": (
        f"ALTER VIEW seen OWNER TO auditor; {ENABLE}; ALTER ROLE auditor NOBYPASSRLS",
        "ALTER ROLE auditor BYPASSRLS",
        "what auditor sees",
    ),
    "the owner of the view is no superuser any more": (
        f"ALTER ROLE clerk SUPERUSER; {ENABLE}; ALTER ROLE clerk NOSUPERUSER",
        "ALTER ROLE clerk SUPERUSER",
        "what clerk sees",
    ),
    "the owner of the view leaves the table's owner": (
        f"GRANT hr TO clerk; {ENABLE}; REVOKE hr FROM clerk",
        "GRANT hr TO clerk",
        "what clerk sees",
    ),
    "the owner of the view no longer inherits": (
        f"GRANT hr TO clerk; {ENABLE}; ALTER ROLE clerk NOINHERIT;REVOKE hr FROM clerk;GRANT hr TO clerk",
        "ALTER ROLE clerk INHERIT;REVOKE hr FROM clerk;GRANT hr TO clerk",
        "what clerk sees",
    ),
    "the table gets another owner": (
        f"ALTER VIEW seen OWNER TO hr; {ENABLE}; ALTER TABLE people OWNER TO auditor;GRANT SELECT ON people TO hr",
        "ALTER TABLE people OWNER TO hr",
        "what hr sees",
    ),
}


@pytest.mark.parametrize("change", first(4, LATER))
def test_a_stream_table_stops_when_policies_come_to_hide_rows_later(world: Staff, change: str) -> None:
    what, remedy, reason = LATER[change]
    world.view("seen", "clerk", "SELECT id, name FROM people")
    world.client.create_stream_table("kept", "SELECT id, name FROM seen")
    world.client.create_stream_table("beside", "SELECT id, person FROM rooms")
    assert world.tick() == {"kept": "FULL", "beside": "FULL"}
    for statement in what.split("; ")[:-1]:
        world.db.execute(statement)
    world.hire()
    assert world.tick()["kept"] == "DIFFERENTIAL"
    world.db.execute(what.split("; ")[-1])
    world.hire()
    for _ in range(2):
        assert world.tick()["kept"] == "FAILED"
        assert reason in world.errors["kept"]
        assert set(world.errors) == {"kept"}
        assert world.db.value("SELECT max(id) FROM kept") == world.last - 1
    world.db.execute(remedy)
    assert world.tick()["kept"] == "DIFFERENTIAL"
    assert world.seen("postgres", "TABLE kept") == world.seen("postgres", "SELECT id, name FROM people")


def test_a_view_that_is_replaced_by_one_that_hides_rows_stops_its_stream_table(world: Staff) -> None:
    world.db.execute(ENABLE)
    world.view("seen", "clerk", "SELECT person AS id FROM rooms")
    world.client.create_stream_table("kept", "SELECT id FROM seen")
    assert world.tick() == {"kept": "FULL"}
    world.db.execute("CREATE OR REPLACE VIEW seen AS SELECT id FROM people")
    assert world.tick() == {"kept": "FAILED"}
    assert "what clerk sees of public.people" in world.errors["kept"]
    world.db.execute("ALTER VIEW seen OWNER TO auditor")
    assert world.tick() == {"kept": "REINITIALIZE"}


def test_a_query_is_not_altered_to_one_that_reads_through_policies(world: Staff) -> None:
    world.db.execute(ENABLE)
    world.view("seen", "clerk", "SELECT id FROM people")
    world.client.create_stream_table("kept", "SELECT person AS id FROM rooms")
    with pytest.raises(PytrickleError, match="what clerk sees"):
        world.client.alter_stream_table("kept", query="SELECT id FROM seen")
    assert world.tick() == {"kept": "FULL"}
    assert world.seen("postgres", "TABLE kept") == [(1,), (2,)]


def test_policies_of_a_stream_table_count_for_those_that_read_it_through_a_view(world: Staff) -> None:
    world.client.create_stream_table("kept", "SELECT id, secret FROM people")
    world.db.execute("GRANT SELECT ON kept TO clerk")
    world.view("seen", "clerk", "SELECT id FROM kept")
    world.client.create_stream_table("onward", "SELECT id FROM seen")
    assert world.tick() == {"kept": "FULL", "onward": "FULL"}
    world.db.execute("ALTER TABLE kept ENABLE ROW LEVEL SECURITY")
    world.hire()
    assert world.tick() == {"kept": "DIFFERENTIAL", "onward": "FAILED"}
    assert "what clerk sees of public.kept" in world.errors["onward"]
    assert world.db.value("SELECT count(*) FROM onward") == 2


PARTS = {
    "partition": "CREATE TABLE part PARTITION OF logs FOR VALUES FROM (0) TO (100)",
    "child": "CREATE TABLE part () INHERITS (logs)",
}


@pytest.mark.parametrize("part", PARTS)
def test_policies_of_a_part_count_where_it_is_read_itself_and_those_of_its_parent_otherwise(
    world: Staff, part: str
) -> None:
    partitioned = "PARTITION BY RANGE (id)" if part == "partition" else ""
    world.db.execute(f"CREATE TABLE logs (id integer) {partitioned}")
    world.db.execute(PARTS[part])
    for statement in (
        "INSERT INTO part VALUES (1)",
        "ALTER TABLE part ENABLE ROW LEVEL SECURITY",
        "GRANT SELECT ON logs, part TO clerk",
    ):
        world.db.execute(statement)
    world.view("through_parent", "clerk", "SELECT id FROM logs")
    world.view("itself", "clerk", "SELECT id FROM part")
    world.client.create_stream_table("kept", "SELECT id FROM through_parent")
    with pytest.raises(PytrickleError, match=r"what clerk sees of public\.part"):
        world.client.create_stream_table("kept_part", "SELECT id FROM itself")
    assert world.tick() == {"kept": "FULL"}
    world.db.execute("INSERT INTO part VALUES (2)")
    assert world.tick() == {"kept": "DIFFERENTIAL"}
    shown = world.seen("postgres", "TABLE kept")
    assert shown == world.seen("clerk", "TABLE through_parent") == [(1,), (2,)]
    world.db.execute("ALTER TABLE logs ENABLE ROW LEVEL SECURITY")
    assert world.tick() == {"kept": "FAILED"}
    assert "what clerk sees of public.logs" in world.errors["kept"]


def test_only_a_table_without_its_children_is_judged_like_any_other(world: Staff) -> None:
    world.db.execute(ENABLE)
    world.db.execute("CREATE TABLE former () INHERITS (people)")
    world.view("seen", "clerk", "SELECT id FROM ONLY people")
    with pytest.raises(PytrickleError, match="what clerk sees"):
        world.client.create_stream_table("kept", "SELECT id FROM seen")


def test_nothing_above_a_security_barrier_changes_what_the_stream_table_holds(world: Staff) -> None:
    world.db.execute(
        "CREATE FUNCTION is_open(secret boolean) RETURNS boolean IMMUTABLE COST 10000 LANGUAGE plpgsql"
        " AS 'BEGIN RETURN NOT secret; END'"
    )
    world.view("seen", "auditor", "SELECT id FROM people WHERE is_open(secret)", "WITH (security_barrier)")
    world.client.create_stream_table("kept", "SELECT id FROM seen WHERE 1 / (id - 2) < 2")
    for _ in range(2):
        assert world.tick() == {"kept": "FULL"}
        shown = world.seen("postgres", "TABLE kept")
        assert shown == world.seen("postgres", "SELECT id FROM seen WHERE 1 / (id - 2) < 2")
        world.db.execute("INSERT INTO people VALUES (2, 'Bea', true), (4, 'Cy', false)")
