"""Aggregates over weighted rows: counts and sums multiply by the weight, whatever cancels out, is NULL or NaN."""

import pytest

from tests.conftest import Database
from tests.equivalence.local_engine import local_client

OUTER = "FROM l LEFT JOIN r ON r.k = l.k"
WITHIN = "SELECT k, {names} FROM (SELECT l.k, {calls} {rows} GROUP BY l.k) AS g WHERE k < 1000"
ALONE = "SELECT {names}, count(*) AS times FROM (SELECT {calls} {rows}) AS g GROUP BY {names}"
CALLS = {
    "counts": ("count(*)", "count(r.v)", "sum(r.v)", "sum(r.s)"),
    "values": ("sum(r.b)", "avg(r.v)", "sum(r.p)", "avg(r.p)", "min(r.v)", "max(r.s)"),
    "sums": ("sum(r.p)", "sum(r.b)"),
    "mixed": ("count(*)", "sum(r.p)", "max(r.s)"),
}
ROWS = "SELECT n, n % {keys}, CASE n % 3 WHEN 0 THEN NULL ELSE n END, n, n, round(n / 7.0, 2) FROM generate_series"
BATCHES = (
    # A single partner comes where there was none, and goes again.
    "INSERT INTO r VALUES (101, 7, 5, 1, 1, 1.50)",
    "DELETE FROM r WHERE id = 101",
    "INSERT INTO l SELECT n, n % 11 FROM generate_series(101, 120) AS n; DELETE FROM l WHERE id % 4 = 0",
    "UPDATE r SET p = 'NaN', v = NULL WHERE id % 5 = 0; INSERT INTO r SELECT id + 200, k, v, b, s, p FROM r",
    "UPDATE r SET p = 2.25 WHERE p = 'NaN'; UPDATE r SET v = 3 WHERE v IS NULL AND id % 2 = 0",
    "DELETE FROM r WHERE k IN (1, 2); UPDATE r SET b = 9223372036854775807 WHERE id % 11 = 0",
    "DELETE FROM r",
    "DELETE FROM l",
)


@pytest.mark.parametrize("calls", CALLS.values(), ids=CALLS.keys())
@pytest.mark.parametrize("form", [WITHIN, ALONE], ids=["groups", "all"])
def test_weighted_aggregates_are_those_of_the_rows(db: Database, form: str, calls: tuple[str, ...]) -> None:
    named = {f"c{i}": call for i, call in enumerate(calls)}
    written = ", ".join(f"{call} AS {name}" for name, call in named.items())
    query = form.format(names=", ".join(named), calls=written, rows=OUTER)
    db.execute("CREATE TABLE l (id int PRIMARY KEY, k int)")
    db.execute("CREATE TABLE r (id int PRIMARY KEY, k int, v int, b bigint, s smallint, p numeric(8, 2))")
    db.execute("INSERT INTO l SELECT n, n % 9 FROM generate_series(1, 40) AS n")
    db.execute(f"INSERT INTO r {ROWS.format(keys=6)}(1, 50) AS n")
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("weighted", query, refresh_mode="DIFFERENTIAL")
        client.tick()
        assert "generate_series" not in client.explain("weighted").data["sql"]
        for batch in BATCHES:
            db.execute(batch)
            (result,) = client.tick()
            assert result.action == "DIFFERENTIAL" and client.verify("weighted").matches, batch
