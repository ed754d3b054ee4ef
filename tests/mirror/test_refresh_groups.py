"""What the extension plans to test of refresh groups, and what their functions say: the names are its own."""

import pytest

from tests.mirror.conftest import Mirror

CREATE = "SELECT pgtrickle.create_refresh_group('dash', ARRAY['x', 'y'], 'repeatable_read')"


@pytest.fixture
def pair(mirror: Mirror) -> Mirror:
    """Two stream tables over tables of their own."""
    mirror.run("CREATE TABLE a (id int PRIMARY KEY)", "CREATE TABLE b (id int PRIMARY KEY)")
    mirror.filled(
        "SELECT pgtrickle.create_stream_table('x', 'SELECT id FROM a')",
        "SELECT pgtrickle.create_stream_table('y', 'SELECT 10 / (id - 7) AS q, id FROM b')",
    )
    return mirror


def test_refresh_group_create_drop(pair: Mirror) -> None:
    assert pair.value(CREATE) > 0
    found = pair.rows("SELECT group_name, member_count, isolation FROM pgtrickle.refresh_groups()")
    assert found == [("dash", 2, "repeatable_read")]
    pair.run("SELECT pgtrickle.drop_refresh_group('dash')")
    assert pair.rows("SELECT * FROM pgtrickle.refresh_groups()") == []


def test_refresh_group_member_conflict(pair: Mirror) -> None:
    """Differs: groups that share a member refresh together, where the extension refuses the second."""
    pair.run(CREATE, "CREATE TABLE c (id int)")
    pair.filled("SELECT pgtrickle.create_stream_table('z', 'SELECT id FROM c')")
    pair.run("SELECT pgtrickle.create_refresh_group('more', ARRAY['y', 'z'])")
    for number, table in enumerate("abc", 1):
        pair.run(f"INSERT INTO {table} VALUES ({number})")
    pair.run("INSERT INTO b VALUES (7)")
    assert [result.stream_table for result in pair.tick() if result.error] == ["public.y"]
    assert pair.rows("TABLE x") == pair.rows("TABLE z") == []


def test_repeatable_read_snapshot_coherence(pair: Mirror) -> None:
    pair.run(CREATE, "INSERT INTO a VALUES (1)", "INSERT INTO b VALUES (1)")
    pair.tick()
    shown = "SELECT count(DISTINCT frontier::text) FROM pgtrickle.pgt_stream_tables"
    assert pair.value("SELECT count(DISTINCT data_timestamp) FROM pgtrickle.pgt_stream_tables") == 1
    assert pair.value(shown) >= 1
    assert (pair.rows("TABLE x"), pair.rows("SELECT id FROM y")) == ([(1,)], [(1,)])


def test_repeatable_read_rollback_on_fail(pair: Mirror) -> None:
    pair.run(CREATE, "INSERT INTO a VALUES (1)", "INSERT INTO b VALUES (7)")
    assert [result.stream_table for result in pair.tick() if result.error] == ["public.y"]
    assert pair.rows("TABLE x") == []
    pair.run("DELETE FROM b")
    pair.refresh("x")
    assert pair.rows("TABLE x") == [(1,)]


def test_declared_group_overrides_autodetect(pair: Mirror) -> None:
    pair.filled(
        "SELECT pgtrickle.create_stream_table('x2', 'SELECT id FROM a')",
        "SELECT pgtrickle.create_stream_table('top', 'SELECT x.id FROM x JOIN x2 USING (id)')",
        "SELECT pgtrickle.create_refresh_group('dash', ARRAY['x', 'x2', 'top', 'y'])",
    )
    pair.run("INSERT INTO a VALUES (1)", "INSERT INTO b VALUES (7)")
    assert [result.stream_table for result in pair.tick() if result.error] == ["public.y"]
    assert pair.rows("TABLE x") == pair.rows("TABLE x2") == pair.rows("TABLE top") == []


def test_names_and_members_are_checked(pair: Mirror) -> None:
    for arguments in ("'', ARRAY['x', 'y']", "'g', ARRAY['x', 'nowhere']", "'g', ARRAY['x', 'y'], 'serializable'"):
        pair.error(f"SELECT pgtrickle.create_refresh_group({arguments})")
    for members, sentence in (("'x'", "two stream tables at least, and only public.x is given"), ("'x', 'x'", "twice")):
        assert sentence in pair.error(f"SELECT pgtrickle.create_refresh_group('dash', ARRAY[{members}])")
    assert "absent" in pair.error("SELECT pgtrickle.drop_refresh_group('absent')")
    assert pair.rows("SELECT * FROM pgtrickle.refresh_groups()") == []


def test_isolation_is_taken_in_any_case(pair: Mirror) -> None:
    pair.run("SELECT pgtrickle.create_refresh_group('dash', ARRAY['x', 'y'], 'READ_COMMITTED')")
    assert pair.value("SELECT isolation FROM pgtrickle.refresh_groups()") == "read_committed"
