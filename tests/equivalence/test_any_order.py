"""Whole refreshes read with several processes where the order of rows cannot show, and with one where it can."""

import re
from pathlib import Path

import pytest

import pytrickle
from pytrickle.plan.analysis import Analysis
from pytrickle.plan.apply_plan import Action
from pytrickle.plan.difference import plan_difference
from pytrickle.plan.limits import Limits
from pytrickle.plan.placement import ALONE, Way
from pytrickle.plan.planning import plan_full
from pytrickle.plan.task import Task
from tests.conftest import Database
from tests.equivalence.local_engine import local_client

PACKAGE = Path(pytrickle.__file__).parent
ANY_ORDER = {
    "rows": "SELECT id, n FROM a WHERE n > 3",
    "groups": "SELECT t, count(*) AS c, sum(n) AS s, max(n) AS m FROM a GROUP BY t",
    "numbers": "SELECT DISTINCT n FROM a",
    "present": "SELECT id FROM a WHERE EXISTS (SELECT FROM a AS b WHERE b.id > 3 AND b.t = a.t)",
    "united": "SELECT id FROM a UNION SELECT id + 1 FROM a",
    "most": "SELECT g.t, g.s FROM (SELECT t, sum(n) AS s FROM a GROUP BY t) AS g"
    " WHERE g.s = (SELECT max(h.s) FROM (SELECT t, sum(n) AS s FROM a GROUP BY t) AS h)",
    "grouped_inside": "SELECT a.id, g.s FROM a JOIN (SELECT t, sum(id) AS s FROM a GROUP BY t) AS g ON g.t = a.t",
}
ONE_ORDER = {
    "floats": "SELECT t, sum(f) AS s FROM a GROUP BY t",
    "texts": "SELECT t, string_agg(t, ',') AS ts FROM a GROUP BY t",
    "arrays": "SELECT array_agg(id) AS ids FROM a",
    "first_rows": "SELECT id, n FROM a ORDER BY n, id LIMIT 3",
    "some_number": "SELECT a.id, g.n FROM a JOIN (SELECT DISTINCT n FROM a) AS g ON g.n = a.n",
    "some_rows": "SELECT id FROM a LIMIT 3",
    "ranked_ties": "SELECT id, row_number() OVER (PARTITION BY t) AS place FROM a",
    "chosen": "SELECT DISTINCT ON (t) t, id FROM a ORDER BY t",
}


@pytest.fixture(scope="module")
def shapes(steady_db: Database) -> dict[str, Analysis]:
    steady_db.execute("CREATE TABLE a (id int PRIMARY KEY, t text, n numeric, f double precision)")
    with local_client(steady_db.dsn) as (client, _):
        for name, query in (ANY_ORDER | ONE_ORDER).items():
            client.create_stream_table(name, query)
        client.tick()
        found = [shape for _, shape in client._refreshing().planner.shapes.values()]
    return {shape.definition.name.removeprefix("public."): shape for shape in found}


@pytest.mark.parametrize("name", ANY_ORDER | ONE_ORDER)
def test_only_a_query_that_shows_no_order_is_read_by_several_processes(shapes: dict[str, Analysis], name: str) -> None:
    task, way = Task(shapes[name], {}, Limits(100_000, 100_000)), Way(Action.FULL, "told to")
    plans = [plan_full(task, "TABLE a", way), plan_difference(task, way, "FULL")]
    assert [plan is not None and ALONE in plan.settings for plan in plans] == [name in ONE_ORDER] * 2


def test_what_generated_sql_calls_may_run_in_several_processes(steady_db: Database) -> None:
    """One function that may not keeps the whole statement to one process."""
    unsafe = (
        "SELECT p.oid::regprocedure::text FROM pg_proc AS p WHERE p.pronamespace = 'pgtrickle_private'::regnamespace"
        " AND p.proname = ANY (%s) AND p.proparallel <> 's'"
    )
    texts = [path.read_text() for folder in ("plan", "compute") for path in PACKAGE.joinpath(folder).rglob("*.py")]
    called = {name for text in texts for name in re.findall(r"pgtrickle_private\.([a-z_]+)\(", text)}
    assert {"add_scales", "max_scale"} <= called
    assert steady_db.execute(unsafe, sorted(called)) == []
