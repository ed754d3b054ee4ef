"""The extension's tests of diamonds and near-cycles (e2e_circ_imm_tests), told anew: the names are its own.

Differs: the extension maintains the arms within the writer's transaction (IMMEDIATE); here a tick after each statement
brings them up to date, and the same contents are asserted.
"""

import pytest

from tests.mirror.conftest import Mirror

# What it tells is held by tests of our own, in our own words: tests/acceptance and tests/security.
pytestmark = pytest.mark.repeats

INSERT = "INSERT INTO base VALUES (2, 20), (3, 30)"
UPDATE = "UPDATE base SET v = v + 5 WHERE id = 1"
DELETE = "DELETE FROM base WHERE id = 1"


def create(mirror: Mirror, name: str, query: str) -> None:
    mirror.run(f"SELECT pgtrickle.create_stream_table('{name}', $${query}$$, 'calculated', 'DIFFERENTIAL')")


def follow(mirror: Mirror, statement: str) -> None:
    """Run a statement, and let what depends on it follow by differential refreshes alone."""
    mirror.run(statement)
    results = mirror.tick()
    assert results and {(result.action, result.error) for result in results} == {("DIFFERENTIAL", None)}


@pytest.fixture
def base(mirror: Mirror) -> Mirror:
    mirror.run("CREATE TABLE base (id int PRIMARY KEY, v int)", "INSERT INTO base VALUES (1, 10), (9, 90)")
    return mirror


@pytest.fixture
def diamond(base: Mirror) -> Mirror:
    create(base, "left_arm", "SELECT id, v * 2 AS v FROM base")
    create(base, "right_arm", "SELECT id, v + 1 AS v FROM base")
    create(base, "top", "SELECT l.id, l.v AS l, r.v AS r FROM left_arm AS l JOIN right_arm AS r ON r.id = l.id")
    base.tick()
    return base


def assert_diamond(mirror: Mirror) -> None:
    mirror.assert_equal("left_arm", "SELECT id, v * 2 FROM base")
    mirror.assert_equal("right_arm", "SELECT id, v + 1 FROM base")
    mirror.assert_equal("top", "SELECT id, v * 2, v + 1 FROM base")


def test_diamond_immediate_both_branches_insert(diamond: Mirror) -> None:
    follow(diamond, INSERT)
    assert_diamond(diamond)


def test_diamond_immediate_both_branches_update(diamond: Mirror) -> None:
    follow(diamond, UPDATE)
    assert_diamond(diamond)


def test_diamond_immediate_both_branches_delete(diamond: Mirror) -> None:
    follow(diamond, DELETE)
    assert_diamond(diamond)


@pytest.fixture
def near(base: Mirror) -> Mirror:
    """base → b → c, and d reads base and c."""
    create(base, "b", "SELECT id, v FROM base WHERE v > 5")
    create(base, "c", "SELECT id, v + 100 AS v FROM b")
    create(base, "d", "SELECT base.id, base.v, c.v AS far FROM base JOIN c ON c.id = base.id")
    base.tick()
    return base


def assert_near(mirror: Mirror) -> None:
    mirror.assert_equal("d", "SELECT id, v, v + 100 FROM base WHERE v > 5")


def test_near_circular_topology_insert(near: Mirror) -> None:
    follow(near, INSERT)
    assert_near(near)


def test_near_circular_topology_update(near: Mirror) -> None:
    follow(near, UPDATE)
    assert_near(near)


def test_near_circular_topology_delete(near: Mirror) -> None:
    follow(near, DELETE)
    assert_near(near)


def test_near_circular_immediate_branches(near: Mirror) -> None:
    for statement in (INSERT, UPDATE, DELETE):
        follow(near, statement)
        near.assert_equal("b", "SELECT id, v FROM base WHERE v > 5")
        near.assert_equal("c", "SELECT id, v + 100 FROM base WHERE v > 5")
        assert_near(near)


def test_diamond_immediate_rapid_sequential_dml(diamond: Mirror) -> None:
    for number in range(20, 28):
        diamond.run(f"INSERT INTO base VALUES ({number}, {number})")
    follow(diamond, "INSERT INTO base VALUES (28, 28)")
    assert_diamond(diamond)
    assert diamond.value("SELECT count(*) FROM top") == 11


def test_diamond_immediate_mixed_dml_sequence(diamond: Mirror) -> None:
    diamond.run(INSERT, "UPDATE base SET v = 999 WHERE id = 2")
    follow(diamond, DELETE)
    assert_diamond(diamond)
    assert set(diamond.rows("TABLE top")) == {(2, 1998, 1000), (3, 60, 31), (9, 180, 91)}


def test_fan_in_immediate_multi_source(base: Mirror) -> None:
    base.run("CREATE TABLE other (id int PRIMARY KEY, w int)", "INSERT INTO other VALUES (1, 1)")
    create(base, "one", "SELECT id, v FROM base")
    create(base, "two", "SELECT id, w FROM other")
    create(base, "joined", "SELECT id, v, w FROM one JOIN two USING (id)")
    base.tick()
    base.run(INSERT)
    follow(base, "INSERT INTO other VALUES (2, 2), (3, 3)")
    base.assert_equal("joined", "SELECT id, v, w FROM base JOIN other USING (id)")
