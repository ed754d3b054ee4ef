"""A definition is analysed once, and again only when it, or what it reads, has changed."""

from typing import Any

import pytest

from pytrickle.catalog.definition import Definition
from pytrickle.plan.analysis import Analysis, analyse
from pytrickle.refresh import planner
from tests.acceptance.conftest import TABLES, Shop


@pytest.fixture
def analysed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the stream tables whose definitions were analysed for a refresh, one for each time."""
    numbers: list[int] = []

    def counted(definition: Definition, *further: Any) -> Analysis:
        numbers.append(definition.pgt_id)
        return analyse(definition, *further)

    monkeypatch.setattr(planner, "analyse", counted)
    return numbers


def load(shop: Shop, number: int) -> None:
    shop.db.execute("INSERT INTO orders VALUES (%s, 1, %s)", number, number)
    shop.tick()
    shop.assert_verified()


def test_no_load_of_the_whole_has_definitions_analysed_again(local_shop: Shop, analysed: list[int]) -> None:
    for name, query in TABLES.items():
        local_shop.pt.create_stream_table(name, query)
    load(local_shop, 1)
    assert sorted(analysed) == sorted(set(analysed)) and len(analysed) == len(TABLES)
    for number, statement in enumerate(
        ("CREATE INDEX ON totals (amount)", "TRUNCATE orders", "SELECT pgtrickle.reinitialize_stream_table('totals')"),
        2,
    ):
        local_shop.db.execute(statement)
        load(local_shop, number)
    assert len(analysed) == len(TABLES)


@pytest.mark.parametrize(
    "change",
    ["CREATE INDEX ON orders (amount)", "ALTER TABLE orders RENAME TO sold", "ALTER TABLE orders SET UNLOGGED"],
)
def test_what_a_plan_depends_on_has_definitions_analysed_again(
    local_shop: Shop, analysed: list[int], change: str
) -> None:
    local_shop.pt.create_stream_table("totals", TABLES["totals"])
    load(local_shop, 1)
    local_shop.db.execute(change)
    local_shop.tick()
    local_shop.db.execute("INSERT INTO {} VALUES (2, 1, 5)".format("sold" if "RENAME" in change else "orders"))
    local_shop.tick()
    assert len(analysed) > 1
    local_shop.assert_verified()
