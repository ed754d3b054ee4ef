"""The extension's tests of diamonds (e2e_diamond_tests), told anew: the names are its own."""

import pytest

from tests.mirror.conftest import Mirror

# What it tells is held by tests of our own, in our own words: tests/acceptance and tests/security.
pytestmark = pytest.mark.repeats


@pytest.fixture
def base(mirror: Mirror) -> Mirror:
    mirror.run("CREATE TABLE base (id int PRIMARY KEY, v int)", "INSERT INTO base VALUES (1, 10)")
    return mirror


def create(mirror: Mirror, name: str, query: str, rest: str = "") -> None:
    mirror.run(f"SELECT pgtrickle.create_stream_table('{name}', $${query}$$, 'calculated', 'DIFFERENTIAL', true{rest})")


def create_diamond(mirror: Mirror, arms: str = "", top: str = "") -> None:
    create(mirror, "l", "SELECT id, v FROM base", arms)
    create(mirror, "r", "SELECT id, v + 1 AS v FROM base", arms)
    create(mirror, "t", "SELECT id, l.v, r.v AS w FROM l JOIN r USING (id)", top or arms)


def stored(mirror: Mirror, column: str, name: str = "l", of: str = "pgt_stream_tables") -> str:
    return str(mirror.value(f"SELECT {column} FROM pgtrickle.{of} WHERE pgt_name = '{name}'"))


def groups(mirror: Mirror) -> dict[int, set[tuple[str, bool, str]]]:
    """The groups by number: each member, whether it brings arms together, and the policy of its group."""
    found: dict[int, set[tuple[str, bool, str]]] = {}
    columns = "group_id, member_name, is_convergence, schedule_policy"
    for number, *member in mirror.rows(f"SELECT {columns} FROM pgtrickle.diamond_groups()"):
        found.setdefault(number, set()).add(tuple(member))
    return found


def test_diamond_consistency_default(base: Mirror) -> None:
    create(base, "l", "SELECT id FROM base")
    assert stored(base, "diamond_consistency") == "atomic"


def test_diamond_consistency_create_atomic(base: Mirror) -> None:
    create(base, "l", "SELECT id FROM base", ", 'none'")
    create(base, "r", "SELECT id FROM base", ", 'atomic'")
    assert (stored(base, "diamond_consistency", "l"), stored(base, "diamond_consistency", "r")) == ("none", "atomic")


def test_diamond_consistency_alter(base: Mirror) -> None:
    create(base, "l", "SELECT id FROM base")
    base.run("SELECT pgtrickle.alter_stream_table('l', diamond_consistency => 'none')")
    assert stored(base, "diamond_consistency") == "none"


def test_diamond_groups_sql_function(base: Mirror) -> None:
    create_diamond(base)
    assert groups(base) == {1: {("l", False, "fastest"), ("r", False, "fastest"), ("t", True, "fastest")}}


def test_diamond_linear_unaffected(base: Mirror) -> None:
    create(base, "l", "SELECT id FROM base")
    create(base, "t", "SELECT id FROM l")
    assert groups(base) == {}


def test_diamond_none_mode_no_groups(base: Mirror) -> None:
    create_diamond(base, ", 'none'")
    assert groups(base) == {}


def test_diamond_atomic_all_succeed(base: Mirror) -> None:
    create_diamond(base)
    base.refresh("l", "r", "t")
    base.run("INSERT INTO base VALUES (2, 20)")
    base.refresh("l", "r", "t")
    assert set(base.rows("TABLE t")) == {(1, 10, 11), (2, 20, 21)}


def test_diamond_consistency_in_catalog_view(base: Mirror) -> None:
    create(base, "l", "SELECT id FROM base", ", 'none'")
    assert stored(base, "diamond_consistency", of="stream_tables_info") == "none"


def test_diamond_schedule_policy_default(base: Mirror) -> None:
    create(base, "l", "SELECT id FROM base")
    assert stored(base, "diamond_schedule_policy") == "fastest"


def test_diamond_schedule_policy_create_slowest(base: Mirror) -> None:
    create(base, "l", "SELECT id FROM base", ", 'atomic', 'slowest'")
    assert stored(base, "diamond_schedule_policy") == "slowest"


def test_diamond_schedule_policy_alter(base: Mirror) -> None:
    create(base, "l", "SELECT id FROM base")
    base.run("SELECT pgtrickle.alter_stream_table('l', diamond_schedule_policy => 'slowest')")
    assert stored(base, "diamond_schedule_policy") == "slowest"


def test_diamond_groups_shows_schedule_policy(base: Mirror) -> None:
    create_diamond(base, ", 'atomic', 'slowest'")
    ((*members,),) = groups(base).values()
    assert {policy for _, _, policy in members} == {"slowest"}


def test_diamond_schedule_policy_convergence_override(base: Mirror) -> None:
    create_diamond(base, ", 'atomic', 'fastest'", ", 'atomic', 'slowest'")
    ((*members,),) = groups(base).values()
    assert {policy for _, _, policy in members} == {"slowest"}


def test_diamond_schedule_policy_in_catalog_view(base: Mirror) -> None:
    create(base, "l", "SELECT id FROM base", ", 'atomic', 'slowest'")
    assert stored(base, "diamond_schedule_policy", of="stream_tables_info") == "slowest"


def test_diamond_schedule_policy_invalid_rejected(base: Mirror) -> None:
    base.error(
        "SELECT pgtrickle.create_stream_table('l', 'SELECT id FROM base', '1m', 'AUTO', true, 'atomic', 'never')"
    )
    assert base.rows("SELECT * FROM pgtrickle.pgt_stream_tables") == []
