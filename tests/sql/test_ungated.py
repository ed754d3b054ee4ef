"""Where nothing can gate, the decision is made without looking: it must be the one that looking would make."""

from __future__ import annotations

import pytest

from tests.conftest import Database

DECISION = (
    "SELECT d.* FROM pgtrickle.pgt_stream_tables AS t, pgtrickle.gating_decision(t.pgt_id) AS d ORDER BY t.pgt_id"
)


@pytest.mark.parametrize("gating", ["auto", "none", "gate", "hold_back"])
def test_a_group_elsewhere_changes_no_decision(every_db: Database, gating: str) -> None:
    every_db.execute("CREATE TABLE t (a int); CREATE TABLE u (a int); CREATE TABLE w (a int)")
    create = "SELECT pgtrickle.create_stream_table(%s, %s, watermark_gating => %s, gate_deadline => '1 hour')"
    every_db.execute(create, "s", "SELECT a FROM t", gating)
    every_db.execute(create, "above", "SELECT a FROM s", gating)
    shortcut = every_db.execute(DECISION)
    assert [row[1] for row in shortcut] == ["run", "run"]
    every_db.execute("SELECT pgtrickle.create_watermark_group('elsewhere', ARRAY['u', 'w'])")
    assert every_db.execute(DECISION) == shortcut
    every_db.execute("SELECT pgtrickle.gate_source('t', 'bulk load')")
    assert {row[1] for row in every_db.execute(DECISION)} == {"gated"}
    every_db.execute("SELECT pgtrickle.drop_watermark_group('elsewhere')")
    assert {row[1] for row in every_db.execute(DECISION)} == {"gated"}
    every_db.execute("SELECT pgtrickle.ungate_source('t')")
    assert every_db.execute(DECISION) == shortcut
