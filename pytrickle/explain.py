"""Explaining a stream table: its gating decision and the plan of its next refresh, neither of which is executed."""

from dataclasses import dataclass, replace
from typing import Any

from pytrickle.catalog import refresh as catalog
from pytrickle.catalog.definition import Window
from pytrickle.catalog.refresh import StreamTable
from pytrickle.db import translate_errors
from pytrickle.plan.explain import describe, render_text
from pytrickle.refresh import Refresher, needs_refresh


@dataclass(frozen=True, slots=True)
class Explanation:
    """An explanation as text for people and as data for programs."""

    text: str
    data: dict[str, Any]

    def __str__(self) -> str:
        return self.text


def explain(refresher: Refresher, pgt_id: int) -> Explanation:
    """Plan the next refresh of one stream table and describe it.

    Where there is nothing to do, the plan is that for one change in every source, and says so.
    """
    with refresher.snapshots.export() as snapshot:
        with translate_errors():
            table = catalog.stream_table(snapshot.connection, pgt_id)
        windows = refresher.windows(snapshot, table, table.decision.caps)
        supposed = not needs_refresh(table, windows)
        plan = refresher.plan(snapshot, table, _with_changes(table, windows) if supposed else windows)
    decision = table.decision
    facts = describe(plan) | {
        "supposing_changes": supposed,
        "gating": decision.gating,
        "decision": decision.decision,
        "gating_reason": decision.reason,
        "waiting_for": decision.waiting_for,
        "effective_watermark": decision.effective_watermark.isoformat() if decision.effective_watermark else None,
    }
    return Explanation(render_text(facts), facts)


def _with_changes(table: StreamTable, windows: dict[int, Window]) -> dict[int, Window]:
    captured = {dependency.relid for dependency in table.dependencies if dependency.buffer}
    return {relid: replace(w, delta_rows=1) if relid in captured else w for relid, w in windows.items()}
