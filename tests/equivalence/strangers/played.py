"""What became of one query that somebody else wrote."""

from dataclasses import dataclass, field

BROKEN = frozenset({"unequal", "failed", "crash"})
REFRESHED = frozenset({"FULL", "DIFFERENTIAL", "NO_DATA"})


@dataclass
class Played:
    """A query and its status.

    equal, unequal, failed (a refresh did), crash (create_stream_table or a tick raised what is not pytrickle's),
    refused (by pytrickle, with a reason), unusable (PostgreSQL takes it for no view, or it fails), or indeterminate
    (PostgreSQL differs from itself by other plans or another order of the stored rows).
    """

    file: str
    query: str
    status: str = "equal"
    detail: str = ""
    actions: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    @property
    def is_differential(self) -> bool:
        """Whether each refresh after the first load that had something to do was differential, and one was."""
        later = self.actions[1:]
        return self.status == "equal" and "DIFFERENTIAL" in later and "FULL" not in later

    def refused(self, status: str, error: Exception) -> None:
        """Note an error that ends the query's part."""
        self.status, self.detail = status, f"{type(error).__name__}: {error}".split("\n")[0]

    def refreshed(self, action: str, reason: str) -> None:
        """Note a refresh."""
        self.actions.append(action)
        self.reasons.append(reason)
        if action not in REFRESHED:
            self.status, self.detail = "failed", f"{action}: {reason}"
