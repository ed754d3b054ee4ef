"""How far a refresh read its sources, as it is stored."""

import json

from psycopg.types.json import Jsonb

from pytrickle.apply.commitment import Commitment
from pytrickle.plan.apply_plan import Action
from pytrickle.plan.refresh_plan import RefreshPlan


def frontier_for_people(plan: RefreshPlan, what: Commitment) -> str:
    """Return as JSON the WAL position through which each captured source was read, and when."""
    moment = what.data_timestamp.isoformat()
    positions = {
        str(change_range.relid): {"lsn": (change_range.new or what.snapshot).lsn, "snapshot_ts": moment}
        for change_range in plan.ranges
        if plan.shape.definition.source(change_range.relid).captured
    }
    return json.dumps({"sources": positions, "data_timestamp": moment})


def frontiers_reached(plan: RefreshPlan, what: Commitment) -> Jsonb:
    """Return how far the refresh read each source whose changes are captured, and whether it took in any of them."""
    whole = plan.action is not Action.DIFFERENTIAL
    return Jsonb(
        [
            {
                "relid": change_range.relid,
                "changed": whole or change_range.delta_rows > 0,
                **(change_range.new or what.snapshot).to_json(),
            }
            for change_range in plan.ranges
            if plan.shape.definition.source(change_range.relid).captured
        ]
    )
