"""The extension's tests of cycles (e2e_circular_tests, e2e_property_circular_tests), told anew: the names are its own.

The extension has a setting where cycles are allowed; it counts here as the default of the argument of that name.
"""

from random import Random

import pytest

from tests.mirror.conftest import Mirror

# What it tells is held by tests of our own, in our own words: tests/acceptance and tests/security.
pytestmark = pytest.mark.repeats

FORWARD = "SELECT src, dst FROM links UNION SELECT b.src, l.dst FROM back AS b JOIN links AS l ON l.src = b.dst"
BACK = "SELECT src, dst FROM links UNION SELECT f.src, l.dst FROM forth AS f JOIN links AS l ON l.src = f.dst"
MEMBERS = "SELECT scc_id FROM pgtrickle.pgt_status() WHERE name IN ('public.forth', 'public.back')"


@pytest.fixture
def allowed(mirror: Mirror) -> Mirror:
    """A database where cycles are allowed, with links 1 → 2 → 3 → 4."""
    database = mirror.value("SELECT current_database()")
    mirror.run(f"ALTER DATABASE {database} SET pg_trickle.allow_circular = on")
    mirror.db.close()
    mirror.run("CREATE TABLE links (src int, dst int)", "INSERT INTO links VALUES (1, 2), (2, 3), (3, 4)")
    return mirror


def create_open(mirror: Mirror) -> None:
    """Create both stream tables, without their cycle."""
    for name in ("forth", "back"):
        mirror.run(
            f"SELECT pgtrickle.create_stream_table('{name}', 'SELECT src, dst FROM links', '1s', 'DIFFERENTIAL', false)"
        )


def close(mirror: Mirror, forward: str = FORWARD, back: str = BACK) -> None:
    mirror.run(
        f"SELECT pgtrickle.alter_stream_table('back', query => $${back}$$)",
        f"SELECT pgtrickle.alter_stream_table('forth', query => $${forward}$$)",
    )


def test_circular_monotone_cycle_converges(allowed: Mirror) -> None:
    create_open(allowed)
    close(allowed)
    ((first,), (second,)) = allowed.rows(MEMBERS)
    assert first == second and first is not None
    assert not [result for result in allowed.tick() if result.error]
    found = allowed.rows("SELECT last_fixpoint_iterations >= 1, status FROM pgtrickle.pgt_stream_tables")
    assert found == [(True, "ACTIVE"), (True, "ACTIVE")]
    assert allowed.rows("SELECT scc_id, member_count, members FROM pgtrickle.pgt_scc_status()") == [
        (first, 2, ["public.back", "public.forth"])
    ]
    closure = {(a, b) for a in range(1, 5) for b in range(a + 1, 5)}
    assert set(allowed.rows("TABLE forth")) == set(allowed.rows("TABLE back")) == closure


def test_circular_nonmonotone_cycle_rejected(allowed: Mirror) -> None:
    """Differs in the moment: what SQL lets pass here, the first refresh refuses, and nothing is changed."""
    create_open(allowed)
    close(allowed, back="SELECT src, count(*)::int AS dst FROM forth GROUP BY src")
    errors = {result.error for result in allowed.tick()}
    assert "public.back cannot be in a cycle because of an aggregate." in errors
    assert allowed.rows("TABLE forth") == allowed.rows("TABLE back") == []


def test_circular_convergence_records_iterations(allowed: Mirror) -> None:
    create_open(allowed)
    close(allowed)
    allowed.tick()
    assert allowed.rows("SELECT DISTINCT last_fixpoint_iterations >= 1 FROM pgtrickle.pgt_stream_tables") == [(True,)]


def test_circular_nonconvergence_error_status(allowed: Mirror) -> None:
    """A cycle that adds a row in each round never comes to rest: it fails at the limit, and nothing is changed."""
    database = allowed.value("SELECT current_database()")
    allowed.run(f"ALTER DATABASE {database} SET pg_trickle.max_fixpoint_iterations = 1")
    allowed.db.close()
    create_open(allowed)
    close(allowed, FORWARD, "SELECT src, dst + 1 AS dst FROM forth WHERE dst < 1000")
    results = allowed.tick()
    assert [result.error for result in results if result.error] and {result.rows_inserted for result in results} == {0}
    assert allowed.rows("TABLE forth") == allowed.rows("TABLE back") == []


def test_circular_drop_member_clears_scc_id(allowed: Mirror) -> None:
    create_open(allowed)
    close(allowed)
    allowed.run(
        "SELECT pgtrickle.alter_stream_table('forth', query => 'SELECT src, dst FROM links')",
        "SELECT pgtrickle.drop_stream_table('back')",
    )
    assert allowed.rows(MEMBERS) == [(None,)]


def test_circular_default_rejects_cycles(mirror: Mirror) -> None:
    mirror.run("CREATE TABLE links (src int, dst int)")
    create_open(mirror)
    mirror.run(f"SELECT pgtrickle.alter_stream_table('back', query => $${BACK}$$)")
    assert "allow_circular" in mirror.error(f"SELECT pgtrickle.alter_stream_table('forth', query => $${FORWARD}$$)")


# Random small graphs


@pytest.mark.parametrize("seed", range(3))
def test_prop_monotone_cycle_small_graph_converges(allowed: Mirror, seed: int) -> None:
    random = Random(seed)
    allowed.run("TRUNCATE links")
    for _ in range(12):
        allowed.run(f"INSERT INTO links VALUES ({random.randrange(7)}, {random.randrange(7)})")
    create_open(allowed)
    close(allowed)
    assert not [result for result in allowed.tick() if result.error]
    rounds = "SELECT last_fixpoint_iterations BETWEEN 1 AND 99, status FROM pgtrickle.pgt_stream_tables"
    assert allowed.rows(rounds) == [(True, "ACTIVE"), (True, "ACTIVE")]
    closure = """WITH RECURSIVE reach AS (
        SELECT src, dst FROM links UNION SELECT r.src, l.dst FROM reach AS r JOIN links AS l ON l.src = r.dst)
        SELECT DISTINCT src, dst FROM reach"""
    allowed.assert_equal("forth", closure)


def test_prop_cycle_members_share_scc_id(allowed: Mirror) -> None:
    create_open(allowed)
    close(allowed)
    ((first,), (second,)) = allowed.rows(MEMBERS)
    assert first == second is not None


def test_prop_break_cycle_clears_scc_ids(allowed: Mirror) -> None:
    """Differs: what others read is dropped only with them, so the cycle is broken by another query first."""
    create_open(allowed)
    close(allowed)
    assert "forth" in allowed.error("SELECT pgtrickle.drop_stream_table('back')")
    allowed.run("SELECT pgtrickle.alter_stream_table('forth', query => 'SELECT src, dst FROM links')")
    assert allowed.rows(MEMBERS) == [(None,), (None,)]


def test_prop_disallowed_cycle_rejected(mirror: Mirror) -> None:
    mirror.run("CREATE TABLE links (src int, dst int)")
    for name, below in (("one", "links"), ("two", "one"), ("three", "two")):
        mirror.run(f"SELECT pgtrickle.create_stream_table('{name}', 'SELECT src, dst FROM {below}')")
    for name in ("two", "three"):
        message = mirror.error(
            "SELECT pgtrickle.alter_stream_table('one', query =>"
            f" 'SELECT src, dst FROM links UNION SELECT src, dst FROM {name}')"
        )
        assert "allow_circular" in message
