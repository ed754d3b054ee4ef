"""A template of a plan, filled with other cuts, is the plan that would be made for them."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from pytrickle.catalog.definition import ChangeRange
from pytrickle.cut import Cut
from pytrickle.plan.analysis import Analysis
from pytrickle.plan.delta_terms import least_length
from pytrickle.plan.limits import Limits, Means
from pytrickle.plan.placement import delta_way
from pytrickle.plan.planning import plan_differential
from pytrickle.plan.postgres.old_lookups import MOST_CHANGES, MOST_TAKEN_BACK
from pytrickle.plan.task import Task
from pytrickle.plan.template import SECRET, Outline, Template
from tests.conftest import Database
from tests.equivalence.local_engine import local_client

TABLES = """
CREATE TABLE a (id int PRIMARY KEY, b int, x int);
CREATE TABLE b (id int PRIMARY KEY, c int, y text);
CREATE TABLE c (id int PRIMARY KEY, z numeric);
CREATE INDEX ON a (b);
CREATE INDEX ON b (c)
"""
QUERIES = {
    "filtered": "SELECT id, x FROM a WHERE x > 3",
    "joined": "SELECT a.id, y, z FROM a JOIN b ON b.id = a.b JOIN c ON c.id = b.c",
    "outer_joined": "SELECT a.id, y, z FROM a LEFT JOIN b ON b.id = a.b FULL JOIN c ON c.id = b.c",
    "grouped": "SELECT y, count(*) AS n, sum(x) AS s, min(x) AS m FROM a JOIN b ON b.id = a.b GROUP BY y",
    "distinct_rows": "SELECT DISTINCT y FROM a JOIN b ON b.id = a.b",
    "ranked": "SELECT id, row_number() OVER (PARTITION BY b ORDER BY id) AS place FROM a",
    "without": "SELECT id FROM a WHERE NOT EXISTS (SELECT FROM b WHERE b.id = a.b) AND b NOT IN (SELECT id FROM c)",
    "first_rows": "SELECT a.id, z FROM a JOIN c ON c.id = a.b ORDER BY z DESC, a.id LIMIT 3",
    "united": "SELECT id FROM a UNION SELECT c FROM b EXCEPT SELECT id FROM c",
}
LIMITS = (Limits(100_000, 100_000), Limits(0, 0, Means.POSTGRES))
# Of the last so many nothing is left out.
COUNTS = (0, 1, 5, 7, 20, 2_000)


@pytest.fixture(scope="module")
def shapes(steady_db: Database) -> list[Analysis]:
    steady_db.execute(TABLES)
    with local_client(steady_db.dsn) as (client, _):
        for name, query in QUERIES.items():
            client.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
        client.tick()
        return [shape for _, shape in client._refreshing().planner.shapes.values()]


def test_a_template_becomes_the_plan_between_other_cuts(shapes: list[Analysis]) -> None:
    assert len(shapes) == len(QUERIES)
    templates: dict[tuple[int, Outline], Template | None] = {}
    random, filled, lengths = Random(7), 0, 0
    for shape, limits in product(shapes, LIMITS):
        for _ in range(25):
            task = Task(shape, _ranges(random, shape), limits)
            way, key = delta_way(task.delta_rows), (shape.definition.pgt_id, Outline.of(task))
            filled += key in templates
            if key not in templates:
                templates[key] = Template.of(task, way)
            template, plan = templates[key], plan_differential(task, way)
            assert template is not None
            found = template.filled(task, way)
            assert (found.read, found.keyed, found.apply) == (plan.read, plan.keyed, plan.apply)
            assert (found.ranges, found.action, found.reason) == (plan.ranges, plan.action, plan.reason)
            assert (found.placement.place, found.placement.direct) == (plan.placement.place, plan.placement.direct)
            assert plan.length >= least_length(task)
            lengths += least_length(task) > plan.length / 8
            assert SECRET not in repr(found.read) + repr(found.keyed) + repr(found.apply)
    assert filled > 50 and lengths > 50


def test_about_as_many_changes_have_one_template(shapes: list[Analysis]) -> None:
    shape = next(each for each in shapes if len(each.definition.sources) == 3)
    relids = [source.relid for source in shape.definition.sources]

    def outline(*counts: int) -> Outline:
        ranges = {relid: ChangeRange(relid, None, None, count) for relid, count in zip(relids, counts, strict=True)}
        return Outline.of(Task(shape, ranges, LIMITS[0]))

    assert len({outline(*counts) for counts in product((4, 9, 15), repeat=3)}) == 1
    assert len({outline(4, 9, 15), outline(4, 9, 16), outline(16, 9, 4), outline(4, 9, 0)}) == 4
    # Tables of which few changes are taken back are looked up as they were.
    assert outline(9, 9, MOST_TAKEN_BACK) != outline(9, 9, MOST_TAKEN_BACK + 1) == outline(9, 9, 300)
    assert outline(9, 9, MOST_CHANGES - 18) != outline(9, 9, MOST_CHANGES - 17)


def _ranges(random: Random, shape: Analysis) -> dict[int, ChangeRange]:
    return {
        source.relid: ChangeRange(
            source.relid, _cut(random), _cut(random) if (capped := random.random() < 0.5) else None,
            random.choice(COUNTS), random.choice(COUNTS) if capped else 0,
        )
        for source in shape.definition.sources
    }  # fmt: skip


def _cut(random: Random) -> Cut:
    oldest = random.randrange(1_000, 9_000)
    xid = str(oldest + 3) if random.random() < 0.5 else None
    return Cut(f"{oldest}:{oldest + 9}:{oldest},{oldest + 3}", xid, 7 if xid else None, None)
