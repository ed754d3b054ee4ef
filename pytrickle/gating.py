"""Whether a stream table may be refreshed now, from the one decision that SQL makes."""

from pytrickle.catalog.decision import Decision


def blocks(decision: Decision, respect_gate: bool) -> bool:
    """Whether a refresh must be skipped; a manual refresh may pass a gate, never a wait for a cut.

    >>> waiting = Decision("hold_back", "waiting", "no cut yet", "public.orders", None, {})
    >>> blocks(waiting, respect_gate=False)
    True
    """
    return decision.decision == "waiting" or (decision.decision == "gated" and respect_gate)
