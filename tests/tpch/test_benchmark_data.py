"""The data of the TPC-H benchmark: every query runs on it, and a change changes what it says."""

import pytest

from benchmarks.tpch.database import CHANGED_TABLES
from benchmarks.tpch.database import Database as Tpch
from benchmarks.tpch.queries import read_queries
from tests.conftest import Database

ORDERS = 3_000
# Their conditions select next to nothing at this size.
RARE = {"q02", "q08", "q18"}


@pytest.fixture
def tpch(empty_db: Database) -> Tpch:
    """The benchmark's tables at a tiny size."""
    database = Tpch(empty_db.connect(), ORDERS)
    database.create()
    return database


def test_every_query_has_rows(tpch: Tpch) -> None:
    found = {query.name for query in read_queries() if tpch.connection.execute(query.text.encode()).fetchone()}
    assert {query.name for query in read_queries()} - found <= RARE


def test_a_change_touches_its_share_and_keeps_the_sizes(tpch: Tpch) -> None:
    before = tpch.sizes()
    changed = sum(tpch.change(10) for _ in range(5))
    after = tpch.sizes()
    tpch.tidy()
    assert list(before) == list(CHANGED_TABLES)
    assert changed / 5 == pytest.approx(sum(before.values()) / 10, rel=0.2)
    assert [table for table in before if abs(after[table] - before[table]) > 0.1 * before[table]] == []


def test_every_line_item_has_its_order_and_what_its_part_is_offered_for(tpch: Tpch) -> None:
    tpch.change(10)
    partners = (
        "SELECT count(*) FROM lineitem WHERE NOT EXISTS (SELECT FROM orders WHERE o_orderkey = l_orderkey)",
        "SELECT count(*) FROM lineitem JOIN part ON p_partkey = l_partkey WHERE NOT EXISTS (SELECT FROM partsupp"
        " WHERE ps_partkey = l_partkey AND ps_suppkey = l_suppkey)",
        "SELECT count(*) FROM orders WHERE NOT EXISTS (SELECT FROM customer WHERE c_custkey = o_custkey)",
    )
    assert [tpch.connection.execute(query.encode()).fetchone() for query in partners] == [(0,)] * 3


def test_every_table_but_region_changes(tpch: Tpch) -> None:
    contents = {table: f"SELECT array_agg(t ORDER BY t)::text FROM {table} AS t".encode() for table in CHANGED_TABLES}
    seen = {table: {tpch.connection.execute(query).fetchone()} for table, query in contents.items()}
    for percent in (0.1, 10):
        tpch.change(percent)
        for table, query in contents.items():
            seen[table].add(tpch.connection.execute(query).fetchone())
    # A nation may move back.
    assert [table for table, found in seen.items() if len(found) == 1] == []


def test_an_unknown_query_is_refused() -> None:
    with pytest.raises(ValueError, match="no query q23"):
        read_queries(["q01", "q23"])
