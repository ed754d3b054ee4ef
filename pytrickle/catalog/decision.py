"""The gating decision of one stream table, made in SQL and read here as a value."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pytrickle.cut import Cut


@dataclass(frozen=True, slots=True)
class Decision:
    """What `pgtrickle.gating_decision` says: `decision` is run, gated or waiting; `caps` are cuts by source oid."""

    gating: str
    decision: str
    reason: str
    waiting_for: str | None
    effective_watermark: datetime | None
    caps: Mapping[int, Cut]

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Decision":
        """Read a row of the SQL function."""
        caps = {int(relid): Cut.from_json(cut) for relid, cut in (row["caps"] or {}).items()}
        return cls(
            row["gating"], row["decision"], row["reason"] or "", row["waiting_for"], row["effective_watermark"], caps
        )
