"""Many stream tables over changing tables: refreshed by ticks, compared after each, with a record of how they ran."""

from collections.abc import Callable
from dataclasses import dataclass, field

from pytrickle.client.client import Client
from tests.conftest import Database
from tests.equivalence.oracle import differences

Rows = dict[str, tuple[str, ...]]

# In how many rounds the rows of a stream table must become others for the comparison to mean something.
FEWEST_CHANGES = 3


@dataclass(slots=True)
class Workload:
    """Stream tables by name with their queries; `actions` and `shown` have what every refresh after the first did."""

    db: Database
    client: Client
    queries: dict[str, str]
    actions: dict[str, set[str]] = field(default_factory=dict)
    shown: list[Rows] = field(default_factory=list)

    def run(self, change: Callable[[int], None], rounds: int) -> None:
        """Load all stream tables; then change the sources, refresh in one tick and compare, round by round."""
        for name, query in self.queries.items():
            self.client.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
        self._tick({"FULL"})
        self._compare()
        for number in range(1, rounds + 1):
            change(number)
            for name, action in self._tick({"DIFFERENTIAL", "FULL"}).items():
                self.actions.setdefault(name, set()).add(action)
            self._compare()

    def check(self, actions: dict[str, str]) -> None:
        """Require that each query ran by the given action in every round, had rows to show, and others later."""
        ran = {name: "+".join(sorted(self.actions[name])) for name in self.queries}
        assert ran == actions
        assert [name for name in self.queries if not self.shown[0][name]] == []
        assert [name for name in self.queries if self._changes(name) < FEWEST_CHANGES] == []
        assert [name for name in self.queries if not self.client.verify(name).matches] == []

    def _changes(self, name: str) -> int:
        return sum(before[name] != after[name] for before, after in zip(self.shown, self.shown[1:], strict=False))

    def _tick(self, allowed: set[str]) -> dict[str, str]:
        results = {result.stream_table.rpartition(".")[2]: result for result in self.client.tick()}
        for name, result in results.items():
            assert result.action in allowed, f"{name}: {result.action}, {result.error or result.reason}"
        assert results.keys() == self.queries.keys()
        return {name: result.action for name, result in results.items()}

    def _compare(self) -> None:
        shown = {}
        with self.db.connect() as connection:
            for name, query in self.queries.items():
                wrong = differences(connection, name, query, True)
                assert not wrong, f"{name} differs after round {len(self.shown)}: {wrong}\n{query}"
                rows = connection.execute(f"SELECT q::text FROM {name} AS q WHERE q IS DISTINCT FROM NULL".encode())
                shown[name] = tuple(sorted(text for (text,) in rows))
        self.shown.append(shown)
