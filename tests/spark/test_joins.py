"""Joins that Spark computes: every key type, old and new states at cuts, and each source read once."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

import pytrickle
from pytrickle.client.client import Client
from pytrickle.compute.spark.jdbc import PinnedReader
from pytrickle.plan.placement import Place
from pytrickle.plan.spark import reads
from tests.conftest import Database
from tests.equivalence.oracle import differences
from tests.equivalence.runs import ask_for_joined_rows_only
from tests.repeats import first, in_parts
from tests.waiting import wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

KEYS = {
    "integers": ("integer", "bigint", "1", "2", "3", "-1"),
    "small": ("smallint", "integer", "1", "2", "3", "-1"),
    "texts": ("text", "text", "''", "'a'", "'A'", "E'a\\x1eb\\n'"),
    "varchars": ("varchar(5)", "varchar(9)", "''", "'a'", "'a '", "'é'"),
    "numerics": ("numeric", "numeric", "'NaN'", "1.0", "1.00", "'Infinity'"),
    "scales": ("numeric(8,2)", "numeric(8,4)", "1", "'NaN'", "2.5", "-0.01"),
    "uuids": ("uuid", "uuid", "md5('1')::uuid", "md5('2')::uuid", "md5('3')::uuid", "md5('4')::uuid"),
    "dates": ("date", "date", "'infinity'", "'-infinity'", "'2024-02-29'", "'0044-03-15 BC'"),
    "moments": ("timestamptz", "timestamptz", "'infinity'", "'-infinity'", "'2024-03-31 1:30Z'", "'2024-03-31 3:30+2'"),
    "times": ("timestamp", "timestamp", "'infinity'", "'2024-03-31 02:30'", "'2024-03-31 02:30:00.1'", "'1900-01-01'"),
    "flags": ("boolean", "boolean", "true", "false", "true", "false"),
    "bytes": ("bytea", "bytea", "'\\x'", "'\\x00'", "'\\x0000'", "'\\xff'"),
}  # fmt: skip


@contextmanager
def spark_client(db: Database, spark: "SparkSession") -> Iterator[Client]:
    """Open a client that leaves every join it can to Spark."""
    with pytrickle.connect(db.dsn, spark, small_delta_rows=0, direct_delta_rows=0) as client:
        yield client


def tick(client: Client, *allowed: str) -> None:
    for result in client.tick():
        assert result.action in allowed, f"{result.stream_table}: {result.action}, {result.error or result.reason}"


def compare(db: Database, queries: dict[str, str]) -> None:
    with db.connect() as connection:
        for name, query in queries.items():
            wrong = differences(connection, name, query, True)
            assert not wrong, f"{name}: {query} differs by {wrong}"


def joins_in_spark(client: Client, name: str) -> bool:
    return bool(client.explain(name).data["spark_reads"])


@pytest.fixture
def keyed(db: Database) -> dict[str, str]:
    """Two tables for every key type, with NULL keys, twins and keys that one side lacks; return a join of each."""
    for name, (left, right, *keys) in KEYS.items():
        db.execute(f"CREATE TABLE {name}_l (k {left}, x int)")
        db.execute(f"CREATE TABLE {name}_r (k {right}, y text)")
        for side in ("l", "r"):
            rows = ", ".join(f"({key}, 1), ({key}, 1)" for key in ["NULL", *keys[:3]])
            db.execute(f"INSERT INTO {name}_{side} VALUES {rows}")
    joined = "SELECT l.k AS lk, r.k AS rk, x, y FROM {0}_l l JOIN {0}_r r ON r.k {1} l.k"
    with_null = {
        f"{name}_or_null": joined.format(name, "IS NOT DISTINCT FROM") for name in ("texts", "numerics", "flags")
    }
    return {name: joined.format(name, "=") for name in KEYS} | with_null


@pytest.mark.parametrize("steps", first(0, (1, 3), then=1))
def test_every_key_type_joins_in_spark_as_in_postgres(
    db: Database, spark: "SparkSession", keyed: dict[str, str], steps: int
) -> None:
    with spark_client(db, spark) as client:
        for name, query in keyed.items():
            client.create_stream_table(name, query)
        tick(client, "FULL")
        for step in range(steps):
            for name, (_, _, *keys) in KEYS.items():
                db.execute(f"INSERT INTO {name}_l VALUES ({keys[3]}, {step}), (NULL, 9), ({keys[step]}, {step})")
                db.execute(f"UPDATE {name}_r SET k = {keys[step]}, y = 'y{step}' WHERE k = {keys[(step + 1) % 4]}")
                db.execute(f"DELETE FROM {name}_l WHERE ctid = (SELECT min(ctid) FROM {name}_l WHERE k = {keys[step]})")
            if step == 0:
                assert [name for name in keyed if not joins_in_spark(client, name)] == []
            tick(client, "DIFFERENTIAL")
            compare(db, keyed)


CHAIN = {
    "chain": "SELECT a.x, b.x AS y, c.x AS z FROM a JOIN b ON a.k = b.k JOIN c ON b.j = c.k",
    "itself": "SELECT p.x, q.x AS y FROM a p JOIN a q ON p.k = q.j",
    "totals": "SELECT b.j, count(*) AS n, sum(a.x) AS s, max(c.x) AS m FROM a JOIN b USING (k) JOIN c ON b.j = c.k"
    " GROUP BY b.j",
    "twice": "SELECT DISTINCT a.k, c.x FROM a JOIN b USING (k) CROSS JOIN c WHERE c.x > 2",
    "union_of_joins": "SELECT a.x FROM a JOIN b ON a.k = b.k UNION ALL SELECT c.x FROM c JOIN a ON a.j = c.k",
}


@pytest.fixture
def chain(db: Database) -> Database:
    """Three tables of some hundred rows on many pages, with NULLs and duplicates."""
    for number, table in enumerate("abc"):
        db.execute(f"CREATE TABLE {table} (k int, j int, x int, filler text)")
        db.execute(
            f"INSERT INTO {table} SELECT NULLIF(n % 7, {number}), n % 5, n % 11, repeat('x', 500)"
            " FROM generate_series(1, 60) AS n"
        )
        db.execute(f"ANALYZE {table}")
    return db


def change(db: Database, table: str, step: int) -> None:
    db.execute(f"INSERT INTO {table} SELECT n % 7, NULLIF(n % 5, {step}), n, 'y' FROM generate_series(1, 9) AS n")
    db.execute(f"UPDATE {table} SET k = j, x = x + 1 WHERE x = {step}")
    db.execute(f"DELETE FROM {table} WHERE x = {step + 3} AND j = {step}")


PARTNERS = "SELECT a.x, b.x AS y FROM a {} JOIN b ON a.k = b.j AND b.x > 2"
OPERATIONS = {
    "left_join": PARTNERS.format("LEFT"),
    "right_join": PARTNERS.format("RIGHT"),
    "full_join": "SELECT a.k, a.x, b.x AS y FROM a FULL JOIN b ON a.k = b.j AND a.j = b.k",
    "left_joins": "SELECT a.x, b.x AS y, c.x AS z FROM a LEFT JOIN b ON a.k = b.k LEFT JOIN c ON b.j = c.k",
    "left_totals": "SELECT a.j, count(b.x) AS n, sum(b.x) AS s FROM a LEFT JOIN b ON a.k = b.k GROUP BY a.j",
    "present": "SELECT k, x FROM a WHERE EXISTS (SELECT FROM b WHERE b.k = a.j AND b.x > 5)",
    "absent": "SELECT k, x FROM a WHERE NOT EXISTS (SELECT FROM b JOIN c ON b.j = c.k WHERE b.k = a.j AND c.x > 5)",
    "any": "SELECT k, x FROM a WHERE EXISTS (SELECT FROM b WHERE x > 11)",
    "listed": "SELECT k, x FROM a WHERE k IN (SELECT j FROM b WHERE x > 5)",
    "unlisted": "SELECT k, x FROM a WHERE k NOT IN (SELECT j FROM b WHERE x > 9)",
    "of_two": "SELECT k, x FROM a WHERE k IN (SELECT j FROM b UNION SELECT k FROM c WHERE x > 5)",
    "with_null": "SELECT a.k, a.x, b.x AS y FROM a LEFT JOIN b ON a.k IS NOT DISTINCT FROM b.k AND b.x > 5",
    "summed": "SELECT a.x, (SELECT sum(x) FROM b WHERE b.k = a.j) AS s FROM a",
    "counted": "SELECT a.k, t.n FROM a JOIN (SELECT j, count(*) AS n FROM b GROUP BY j) AS t ON t.n = a.x",
    "grouped": "SELECT a.x, t.n, t.s FROM (SELECT k, count(*) AS n, sum(x) AS s FROM b GROUP BY k) AS t"
    " JOIN a ON t.k = a.j",
    "ranked": "SELECT a.x, t.x AS y, t.place FROM a JOIN (SELECT j, x, rank() OVER (PARTITION BY j ORDER BY x) AS place"
    " FROM b) AS t ON t.j = a.j",
    "distinct": "SELECT c.x, t.k FROM c LEFT JOIN (SELECT DISTINCT a.k, b.j FROM a JOIN b USING (k)) AS t ON t.j = c.k",
}


@pytest.mark.parametrize("steps", first(0, ("a bc", "abc a bc"), then=1))
def test_joins_with_operations_at_every_step(chain: Database, spark: "SparkSession", steps: str) -> None:
    with spark_client(chain, spark) as client:
        for name, query in OPERATIONS.items():
            client.create_stream_table(f"st_{name}", query)
        tick(client, "FULL")
        for step, tables in enumerate(steps.split()):
            for table in tables:
                change(chain, table, step)
            places = {name: client.explain(f"st_{name}").data["place"] for name in OPERATIONS}
            assert places == dict.fromkeys(OPERATIONS, Place.SPARK.value)
            tick(client, "DIFFERENTIAL")
            compare(chain, {f"st_{name}": query for name, query in OPERATIONS.items()})
        assert all(client.verify(f"st_{name}").matches for name in OPERATIONS)


@pytest.mark.repeats
def test_chains_and_self_joins_in_ranges_of_pages(
    chain: Database, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables, and changes as well."""
    monkeypatch.setattr(reads, "PAGES_PER_PART", 2)
    monkeypatch.setattr(reads, "CHANGES_PER_PART", 1)
    ranges: dict[bool, list[int]] = {True: [], False: []}
    read_ranges = PinnedReader.read_ranges

    def counted(reader: PinnedReader, query: str, predicates: Any, planner: Any) -> Any:
        ranges["pgtrickle_changes" in query].append(len(predicates))
        return read_ranges(reader, query, predicates, planner)

    monkeypatch.setattr(PinnedReader, "read_ranges", counted)
    with spark_client(chain, spark) as client:
        for name, query in CHAIN.items():
            client.create_stream_table(name, query)
        tick(client, "FULL")
        for table in "abc":
            change(chain, table, 1)
            for _ in range(3):
                chain.execute(f"UPDATE {table} SET x = x + 1")
        assert all(joins_in_spark(client, name) for name in CHAIN)
        tick(client, "DIFFERENTIAL")
        compare(chain, CHAIN)
    assert all(max(found) > 1 for found in ranges.values())


AT_CUTS = CHAIN | {f"st_{name}": OPERATIONS[name] for name in ("left_join", "absent", "grouped", "distinct")}


def look_up_joined_rows(chain: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    ask_for_joined_rows_only(monkeypatch)
    for table in "abc":
        chain.execute(f"CREATE INDEX ON {table} (k)")


@in_parts(3)
def test_joins_at_cuts_correct_old_and_new_states(
    chain: Database, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    """Whole tables are read in the first round, in the second one only the rows that changes join, by indexes."""
    names = list(AT_CUTS)[nth::3]
    queries = {name: AT_CUTS[name] for name in names}
    advance = "SELECT pgtrickle.advance_watermark(%s, '2024-01-01Z'::timestamptz + %s * interval '1 hour')"
    with spark_client(chain, spark) as client:
        client.create_watermark_group("all", list("abc"))
        for name, query in queries.items():
            client.create_stream_table(name, query, watermark_gating="hold_back")
        for table in "abc":
            chain.execute(advance, table, 0)
        tick(client, "FULL")
        for step in (1, 2):
            for table in "abc":
                change(chain, table, step)
                chain.execute(f"CREATE TABLE {table}_{step} AS TABLE {table}")
                chain.execute(advance, table, step)
                change(chain, table, step + 1)
            if step == 2:
                look_up_joined_rows(chain, monkeypatch)
            told = client.explain(names[0]).text
            assert ("only rows that changes join" in told) == (step > 1)
            tick(client, "DIFFERENTIAL")
            chain.execute(f"CREATE SCHEMA at_{step}")
            for table in "abc":
                chain.execute(f"CREATE VIEW at_{step}.{table} AS TABLE {table}_{step}")
            with chain.connect(options=f"-c search_path=at_{step}") as connection:
                for name, query in queries.items():
                    wrong = differences(connection, f"public.{name}", query, True)
                    assert not wrong, f"{name} at cut {step} differs by {wrong}"


def test_each_source_is_read_once_however_many_terms_use_it(
    chain: Database, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: Counter[str] = Counter()
    read = PinnedReader.read

    def counted(reader: PinnedReader, query: str, planner: Any = ()) -> Any:
        reads[query] += 1
        return read(reader, query, planner)

    monkeypatch.setattr(PinnedReader, "read", counted)
    query = "SELECT a.x, b.x AS y, c.x AS z FROM a JOIN b ON a.k = b.k JOIN c ON b.j = c.k"
    with spark_client(chain, spark) as client:
        client.create_stream_table("chain", query)
        tick(client, "FULL")
        for table in "abc":
            change(chain, table, 1)
        settle(chain)
        before, reads = scanned(chain), Counter()
        tick(client, "DIFFERENTIAL")
        settle(chain)
        after = scanned(chain)
    assert reads
    assert max(reads.values()) == 1, reads
    assert {table: after[table] - before[table] for table in "abc"} == dict.fromkeys("abc", 1)


def test_a_refresh_leaves_nothing_behind_in_the_session(chain: Database, spark: "SparkSession") -> None:
    """A daemon uses one session for months: views and kept frames would pile up."""
    before = {table.name for table in spark.catalog.listTables()}
    query = "SELECT a.x, b.x AS y, c.x AS z FROM a JOIN b ON a.k = b.k JOIN c ON b.j = c.k"
    with spark_client(chain, spark) as client:
        client.create_stream_table("chain", query)
        tick(client, "FULL")
        for table in "abc":
            change(chain, table, 1)
        assert joins_in_spark(client, "chain")
        tick(client, "DIFFERENTIAL")
    assert {table.name for table in spark.catalog.listTables()} == before
    assert spark._jsparkSession.sharedState().cacheManager().isEmpty()


def settle(db: Database) -> None:
    """Have everything reported that was scanned: by a session of Spark when it ends, by this one when it is asked."""
    db.execute("SELECT pg_stat_force_next_flush()")
    others = "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE application_name LIKE '%JDBC%')"
    wait_for(lambda: db.value(others), "Spark's connections to close")


def scanned(db: Database) -> dict[str, int]:
    db.execute("SELECT pg_stat_clear_snapshot()")
    return dict(db.execute("SELECT relname::text, seq_scan FROM pg_stat_user_tables WHERE relname IN ('a', 'b', 'c')"))
