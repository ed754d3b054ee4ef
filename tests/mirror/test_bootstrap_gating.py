"""The extension's tests of source gates (e2e_bootstrap_gating_tests), told anew: the names are its own."""

import pytest

from tests.mirror.conftest import Mirror

GATE, UNGATE = "SELECT pgtrickle.gate_source('a')", "SELECT pgtrickle.ungate_source('a')"


@pytest.fixture
def one(mirror: Mirror) -> Mirror:
    mirror.run("CREATE TABLE a (id int PRIMARY KEY)", "INSERT INTO a VALUES (1)")
    return mirror


def gate(mirror: Mirror) -> tuple[bool, bool]:
    """The only gate, from the table: is it shut, and was it opened?"""
    ((shut, opened),) = mirror.rows(
        "SELECT g.gated, g.ungated_at IS NOT NULL FROM pgtrickle.pgt_source_gates AS g"
        " JOIN pg_class AS c ON c.oid = g.source_relid WHERE c.relname = 'a'"
    )
    return shut, opened


def test_gate_source_inserts_gate_record(one: Mirror) -> None:
    one.run(GATE)
    assert gate(one) == (True, False)


def test_source_gates_returns_gated_source(one: Mirror) -> None:
    one.run(GATE)
    found = one.rows("SELECT source_table, schema_name, gated, ungated_at FROM pgtrickle.source_gates()")
    assert found == [("a", "public", True, None)]


def test_ungate_source_clears_gate(one: Mirror) -> None:
    one.run(GATE, UNGATE)
    assert gate(one) == (False, True)
    found = one.rows("SELECT source_table, gated, ungated_at IS NOT NULL FROM pgtrickle.source_gates()")
    assert found == [("a", False, True)]


def test_gate_source_is_idempotent(one: Mirror) -> None:
    one.run(GATE, GATE)
    assert len(one.rows("SELECT * FROM pgtrickle.source_gates()")) == 1


def test_regate_after_ungate(one: Mirror) -> None:
    one.run(GATE, UNGATE, GATE)
    assert gate(one) == (True, False)


def test_gate_source_nonexistent_table_errors(one: Mirror) -> None:
    assert "nowhere" in one.error("SELECT pgtrickle.gate_source('nowhere')")


def test_source_gates_empty_by_default(mirror: Mirror) -> None:
    assert mirror.rows("SELECT * FROM pgtrickle.source_gates()") == []


def test_multiple_sources_gated(one: Mirror) -> None:
    one.run("CREATE TABLE b (id int)", GATE, "SELECT pgtrickle.gate_source('b')")
    assert one.rows("SELECT source_table, gated FROM pgtrickle.source_gates()") == [("a", True), ("b", True)]


def created(mirror: Mirror) -> Mirror:
    mirror.run("SELECT pgtrickle.create_stream_table('x', 'SELECT id FROM a', 'calculated', 'FULL')")
    return mirror


def test_manual_refresh_not_blocked_by_gate(one: Mirror) -> None:
    one.run(GATE)
    created(one).refresh("x")
    assert one.rows("TABLE x") == [(1,)]
    assert gate(one) == (True, False)


def test_scheduler_logs_skip_when_source_gated(one: Mirror) -> None:
    created(one).tick()
    one.run(GATE, "INSERT INTO a VALUES (2)")
    assert [result.action for result in one.tick()] == ["SKIP"]
    history = "SELECT action FROM pgtrickle.get_refresh_history('x') WHERE status = 'SKIPPED'"
    assert one.rows(history) == [("SKIP",)]
    one.run(UNGATE)
    one.tick()
    assert set(one.rows("TABLE x")) == {(1,), (2,)}


def test_idempotent_gate_refreshes_timestamp(one: Mirror) -> None:
    """Differs: gating what is gated keeps who shut it and when, so that the time under the gate is not lost."""
    one.run(GATE)
    before = one.value("SELECT gated_at FROM pgtrickle.source_gates()")
    one.run(GATE)
    assert one.value("SELECT gated_at FROM pgtrickle.source_gates()") == before


def test_idempotent_gate_preserves_state(one: Mirror) -> None:
    """Differs in gated_by: the role that shut the gate, where the extension writes a fixed word."""
    one.run(GATE, GATE)
    assert one.rows("SELECT gated, ungated_at, gated_by = session_user FROM pgtrickle.source_gates()") == [
        (True, None, True)
    ]


def test_regate_lifecycle_clears_ungated_at(one: Mirror) -> None:
    one.run(GATE, UNGATE, GATE)
    assert one.rows("SELECT gated, ungated_at FROM pgtrickle.source_gates()") == [(True, None)]


def test_manual_refresh_works_through_full_lifecycle(one: Mirror) -> None:
    one.run(GATE)
    created(one).refresh("x")
    for number, statement in enumerate((UNGATE, GATE), 2):
        one.run(statement, f"INSERT INTO a VALUES ({number})")
        one.refresh("x")
        one.assert_equal("x", "TABLE a")


def test_bootstrap_gate_status_returns_expected_columns(one: Mirror) -> None:
    one.run(GATE)
    ((name, schema, shut, opened),) = one.rows(
        "SELECT source_table, schema_name, gated, ungated_at FROM pgtrickle.bootstrap_gate_status()"
    )
    assert (name, schema, shut, opened) == ("a", "public", True, None)
    assert one.value("SELECT gate_duration >= interval '0' FROM pgtrickle.bootstrap_gate_status()")


def test_bootstrap_gate_status_ungated_duration(one: Mirror) -> None:
    one.run(GATE, UNGATE)
    found = "SELECT gated, gate_duration = ungated_at - gated_at FROM pgtrickle.bootstrap_gate_status()"
    assert one.rows(found) == [(False, True)]


def test_bootstrap_gate_status_affected_stream_tables(one: Mirror) -> None:
    created(one).run(GATE)
    assert one.value("SELECT affected_stream_tables FROM pgtrickle.bootstrap_gate_status()") == "public.x"


def test_bootstrap_gate_status_empty_by_default(one: Mirror) -> None:
    created(one)
    assert one.rows("SELECT * FROM pgtrickle.bootstrap_gate_status()") == []
