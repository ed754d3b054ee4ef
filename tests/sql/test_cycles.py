"""Stream tables that read each other, and defining queries that are altered: what SQL allows, refuses and shows."""

import pytest

from tests.conftest import Database
from tests.sql.checks import catalog_state, create, logged, refused

CLOSED = "SELECT a FROM t UNION SELECT a FROM b"


@pytest.fixture
def pair(db: Database) -> Database:
    """Two stream tables, of which the second reads the first, and both may be in a cycle."""
    db.execute("CREATE TABLE t (a integer, c integer)")
    create(db, "SELECT DISTINCT a FROM t", "a", allow_circular=True)
    create(db, "SELECT a + 1 AS a FROM a WHERE a < 9", "b", allow_circular=True)
    return db


def alter(db: Database, name: str, **options: object) -> None:
    arguments = "".join(f", {option} => %s" for option in options)
    db.execute(f"SELECT pgtrickle.alter_stream_table(%s{arguments})", name, *options.values())


def test_a_cycle_is_refused_unless_every_stream_table_in_it_allows_it(pair: Database) -> None:
    pair.execute("CREATE VIEW between_them AS SELECT a FROM b")
    create(pair, "SELECT a FROM between_them", "third")
    before = catalog_state(pair)
    with refused("42P17", "allow_circular => true on public.third", "cycle", "a reads public.third, which reads"):
        alter(pair, "a", query="SELECT a FROM t UNION SELECT a FROM third")
    assert catalog_state(pair) == before
    alter(pair, "third", allow_circular=True)
    alter(pair, "a", query="SELECT a FROM t UNION SELECT a FROM third")
    assert pair.value("SELECT pgtrickle_private.cycle_path(2)") == (
        "public.b reads public.a, which reads public.third, which reads public.b"
    )
    with refused("42P17", "public.b", "cycle"):
        alter(pair, "b", allow_circular=False)
    with refused("42P17", "public.b", "cycle"):
        pair.execute("SELECT pgtrickle.alter_stream_table('b', reset => ARRAY['allow_circular'])")


def test_a_stream_table_may_read_itself(pair: Database) -> None:
    with refused("42P17", "Break the cycle", "cycle", "public.lone reads public.lone"):
        create(pair, "SELECT DISTINCT a FROM t", "lone")
        alter(pair, "lone", query="SELECT a FROM t UNION SELECT a + 1 FROM lone WHERE a < 5")
    alter(pair, "lone", allow_circular=True, query="SELECT a FROM t UNION SELECT a + 1 FROM lone WHERE a < 5")
    assert pair.execute("SELECT pgtrickle_private.cycle_members(3)") == [(3,)]
    pair.execute("SELECT pgtrickle.drop_stream_table('lone')")
    assert pair.value("SELECT count(*) FROM pgtrickle.pgt_stream_tables") == 2


def test_what_only_reads_a_cycle_or_is_read_by_it_is_no_member(pair: Database) -> None:
    create(pair, "SELECT a FROM t", "above")
    alter(pair, "a", query="SELECT a FROM above UNION SELECT a FROM b")
    create(pair, "SELECT a FROM a", "below")
    members = {number: pair.execute(f"SELECT pgtrickle_private.cycle_members({number})") for number in (1, 2, 3, 4)}
    assert members == {1: [(1,), (2,)], 2: [(1,), (2,)], 3: [], 4: []}


def test_trees_and_schedules_end_although_the_graph_does_not(pair: Database) -> None:
    alter(pair, "a", query=CLOSED)
    create(pair, "SELECT a FROM b", "below")
    assert pair.execute("SELECT tree FROM pgtrickle.dag()") == [
        ("public.t",),
        ("    public.a",),
        ("        public.b",),
        ("            public.below",),
    ]
    tree = "SELECT source, depth FROM pgtrickle.dependencies() WHERE stream_table = 'public.a'"
    assert pair.execute(tree) == [("public.b", 1), ("public.t", 1), ("public.a", 2)]
    schedules = "SELECT effective_schedule, decision FROM pgtrickle.pgt_status()"
    assert pair.execute(schedules) == [("when a source changes", "run")] * 3
    assert pair.value("SELECT count(*) FROM pgtrickle.bootstrap_status()") == 3


def test_cascade_drops_a_whole_cycle_with_all_its_capture(pair: Database) -> None:
    alter(pair, "a", query=CLOSED)
    create(pair, "SELECT a FROM b", "below")
    for name in "ab":
        with refused("2BP01", "cascade"):
            pair.execute(f"SELECT pgtrickle.drop_stream_table('{name}')")
    pair.execute("SELECT pgtrickle.drop_stream_table('a', cascade => true)")
    assert pair.execute(
        "SELECT oid::regclass::text FROM pg_class WHERE relkind IN ('r', 'v')"
        " AND relnamespace::regnamespace::text IN ('public', 'pgtrickle_state', 'pgtrickle_changes')"
    ) == [("t",)]
    assert pair.execute("SELECT tgname FROM pg_trigger WHERE tgrelid = 't'::regclass") == []
    pair.execute("INSERT INTO t VALUES (1)")


def test_an_altered_query_is_captured_and_computed_anew(pair: Database) -> None:
    pair.execute("UPDATE pgtrickle.pgt_stream_tables SET status = 'ACTIVE', frontier_version = 1")
    pair.execute("CREATE TABLE other (a integer)")
    stamp = pair.value("SELECT view_stamp FROM pgtrickle.pgt_stream_tables WHERE pgt_id = 1")
    alter(pair, "a", query="SELECT DISTINCT a FROM other; -- instead of t")
    assert pair.execute(
        "SELECT defining_query, reinitialize_reason, view_stamp = %s FROM pgtrickle.pgt_stream_tables WHERE pgt_id = 1",
        stamp,
    ) == [("SELECT DISTINCT a FROM other; -- instead of t", "its defining query was altered", False)]
    pair.execute("INSERT INTO other VALUES (1)")
    assert logged(pair, "other", "a") == [(1, 1)]
    assert pair.execute("SELECT tgname FROM pg_trigger WHERE tgrelid = 't'::regclass") == []
    views = "SELECT relname::text FROM pg_class WHERE relnamespace = 'pgtrickle_state'::regnamespace AND relkind = 'v'"
    assert sorted(pair.execute(views)) == [("stream table public.a",), ("stream table public.b",)]


@pytest.mark.parametrize(
    ("query", "sqlstate"),
    [
        ("SELECT a AS b FROM t", "0A000"),
        ("SELECT a::bigint FROM t", "0A000"),
        ("SELECT a, c FROM t", "0A000"),
        ("SELECT random()::integer AS a", "0A000"),
        ("SELECT a FROM nowhere", "42P01"),
        ("SELECT a FROM", "42601"),
    ],
)
def test_a_query_that_does_not_fit_is_refused_and_changes_nothing(pair: Database, query: str, sqlstate: str) -> None:
    before = catalog_state(pair)
    with pytest.raises(Exception) as error:
        alter(pair, "a", query=query)
    assert getattr(error.value, "sqlstate", None) == sqlstate
    assert catalog_state(pair) == before


def test_an_altered_query_that_only_a_whole_refresh_can_follow_contradicts_differential(pair: Database) -> None:
    alter(pair, "a", refresh_mode="DIFFERENTIAL")
    with refused("0A000", "AUTO", "not_differentiable"):
        alter(pair, "a", query="SELECT a FROM t WHERE now() IS NOT NULL")
    alter(pair, "a", refresh_mode="AUTO", query="SELECT a FROM t WHERE now() IS NOT NULL")


@pytest.mark.parametrize("rounds", ["0", "-1"])
def test_a_limit_of_no_rounds_is_refused(pair: Database, rounds: str) -> None:
    with refused("22023", "above zero"):
        alter(pair, "a", max_fixpoint_iterations=int(rounds))
