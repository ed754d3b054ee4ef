"""A temporary table that inherits from a source keeps nobody from refreshing, and its rows never reach a reader."""

from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
import pytest

from pytrickle import Client
from tests.conftest import Database
from tests.equivalence.local_engine import local_client


@dataclass(frozen=True)
class Scene:
    """A source with a child, of which another session has a temporary child too, and a stream table over it."""

    db: Database
    client: Client
    other: psycopg.Connection

    def tick(self) -> str:
        """Tick; return what happened to the stream table, which must be right then."""
        (result,) = self.client.tick()
        assert result.error is None
        assert self.client.verify("copied").matches
        return result.action


@pytest.fixture
def scene(db: Database) -> Iterator[Scene]:
    db.execute("CREATE TABLE source (k integer)")
    db.execute("CREATE TABLE child () INHERITS (source)")
    db.execute("INSERT INTO source VALUES (1)")
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("copied", "SELECT k FROM source")
        scene = Scene(db, client, db.connect())
        scene.tick()
        scene.other.execute("DELETE FROM source WHERE false")  # So that its plan is older than the child.
        scene.other.execute("CREATE TEMP TABLE scratch () INHERITS (source)")
        yield scene


def test_refreshes_go_on_beside_a_temporary_child_of_another_session(scene: Scene) -> None:
    scene.db.execute("INSERT INTO source VALUES (2)")
    assert scene.tick() == "DIFFERENTIAL"
    scene.client.create_stream_table("counted", "SELECT count(*) AS n FROM source")
    scene.db.execute("UPDATE source SET k = k + 10")
    assert {result.error for result in scene.client.tick()} == {None}
    assert all(result.matches for result in scene.client.verify())


def test_a_stream_table_can_be_created_by_the_session_with_the_temporary_child(scene: Scene) -> None:
    scene.other.execute("INSERT INTO scratch VALUES (5)")
    scene.other.execute("SELECT pgtrickle.create_stream_table('counted', 'SELECT count(*) AS n FROM source')")
    scene.client.tick()
    assert all(result.matches for result in scene.client.verify())


def test_rows_of_the_temporary_child_are_not_captured(scene: Scene) -> None:
    scene.other.execute("INSERT INTO scratch VALUES (5)")
    scene.other.execute("INSERT INTO source VALUES (6)")
    scene.other.execute("TRUNCATE child")
    assert scene.tick() == "DIFFERENTIAL"


@pytest.mark.parametrize("change", ["UPDATE source SET k = k + 1", "DELETE FROM source", "TRUNCATE source"])
@pytest.mark.parametrize("parent", ["source", "child"])
def test_changes_that_reach_the_temporary_child_through_its_parent_leave_no_wrong_row(
    scene: Scene, parent: str, change: str
) -> None:
    scene.db.execute("INSERT INTO child VALUES (2)")
    scene.other.execute(f"CREATE TEMP TABLE deep () INHERITS ({parent})")
    scene.other.execute("INSERT INTO deep VALUES (5)")
    scene.other.execute(change.replace("source", parent))
    assert scene.tick() == ("DIFFERENTIAL" if "TRUNCATE" in change else "REINITIALIZE")
    scene.other.execute("DROP TABLE deep, scratch")
    scene.db.execute("INSERT INTO source VALUES (7)")
    scene.other.execute("UPDATE source SET k = k + 1")
    assert scene.tick() == "DIFFERENTIAL"


def test_a_gap_says_that_there_was_a_temporary_child(scene: Scene) -> None:
    scene.other.execute("UPDATE source SET k = 3")
    problem = "public.source was changed together with a temporary child"
    assert scene.db.value("SELECT pgtrickle.capture_problem('source')") == problem
