"""The plan of a delta that looks up what changes join is made once, however many changes come; long ones are few."""

from __future__ import annotations

from typing import Any

import pytest

from pytrickle.plan import template
from pytrickle.refresh import kept_plans, remembered
from tests.acceptance.conftest import Shop

# Each pair of a customer's orders, with their names: OLD and NEW of each table multiply, so that the delta is long.
# Customers would be looked up as they were if they had a unique key.
PAIRS = """
    SELECT o.id, p.id AS other, c.name, d.name AS other_name
    FROM orders AS o JOIN orders AS p ON p.customer = o.customer AND p.id < o.id
        JOIN customers AS c ON c.id = o.customer JOIN customers AS d ON d.id = p.customer
"""
KEPT = """
SELECT custom_plans, generic_plans, length(statement) FROM pg_prepared_statements
WHERE statement LIKE 'WITH pgt_gate AS%' ORDER BY prepare_time
"""


@pytest.fixture
def pairs(local_shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """The pairs, filled, under AUTO's default; a busy machine must not make it forget what it knows."""
    monkeypatch.setattr(remembered, "SLOW", 3600.0)
    local_shop.db.execute("CREATE INDEX ON orders (customer)")
    local_shop.db.execute("ALTER TABLE customers DROP CONSTRAINT customers_pkey CASCADE")
    local_shop.db.execute("CREATE INDEX ON customers (id)")
    local_shop.db.execute("INSERT INTO orders SELECT n, 1 + n % 2, n FROM generate_series(1, 6) AS n")
    local_shop.pt.create_stream_table("pairs", PAIRS, refresh_mode="DIFFERENTIAL")
    local_shop.tick()
    return local_shop


def _change(shop: Shop, number: int, rows: int = 1) -> None:
    shop.db.execute(f"INSERT INTO orders SELECT n, 3, n FROM generate_series({number}, {number + rows - 1}) AS n")
    shop.db.execute("UPDATE customers SET name = name || '!' WHERE id = 1")
    assert shop.tick()["pairs"].action == "DIFFERENTIAL"


def _kept(shop: Shop) -> list[Any]:
    return shop.pt._refreshing().connection.execute(KEPT, prepare=False).fetchall()


def _phases(shop: Shop) -> list[dict[str, float]]:
    return list(shop.db.value("SELECT jsonb_agg(phases ORDER BY refresh_id) FROM pgtrickle.pgt_refresh_history"))


def test_a_long_delta_is_planned_once_for_any_number_of_changes(pairs: Shop) -> None:
    for number, rows in ((100, 3), (200, 30), (300, 4), (400, 9), (500, 90)):
        _change(pairs, number, rows)
    ((custom, generic, length),) = _kept(pairs)
    assert length > kept_plans.LONG
    assert custom == 0 and generic == 1 + 4, "once to make the plan, then once for each refresh but the first"
    pairs.assert_verified()


def test_making_the_plan_is_not_what_such_a_refresh_takes(pairs: Shop) -> None:
    for number in (100, 200, 300, 400):
        _change(pairs, number)
    assert ["choose" in phases for phases in _phases(pairs)].count(True) == 1


def test_of_a_buffer_in_which_others_have_much_to_read_the_planner_is_asked(
    pairs: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(template, "MOST_PAGES", 0)
    for number in (100, 200, 300, 400):
        _change(pairs, number)
    assert _kept(pairs) and not [generic for _, generic, _ in _kept(pairs) if generic]
    pairs.assert_verified()


def test_plans_that_take_too_much_memory_are_dropped(pairs: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_plans, "MOST_CHARACTERS", 1)
    for number, rows in ((100, 1), (200, 9), (300, 1), (400, 9), (500, 9)):
        _change(pairs, number, rows)
        assert len(_kept(pairs)) <= 1, "which source has more changes decides in what order they are joined"
    assert len(_kept(pairs)) == 1
    pairs.assert_verified()
