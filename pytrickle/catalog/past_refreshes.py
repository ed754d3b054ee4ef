"""What a stream table's sizes and past refreshes say about the next one."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import psycopg

from pytrickle.catalog.definition import Evidence, PastRefresh, size_class
from pytrickle.catalog.stream_table import StreamTable

# What a refresh takes that is like one before: neither a wait for others nor the comparison of two ways.
SECONDS = """(extract(epoch FROM finished_at - started_at)
        - (coalesce((phases ->> 'choose')::numeric, 0) + coalesce((phases ->> 'wait')::numeric, 0)) / 1000)::float8"""
# Rows are estimated as the planner does: the density at the last ANALYZE times the present size of the file. What was
# never analyzed is taken to have 80 rows on a page. Of a function PostgreSQL expects a thousand rows: to join them it
# would read all of pg_class, so they come as an array.
EVIDENCE = """
WITH sizes AS (
    SELECT r.relid, sum(
        pg_relation_size(c.oid) / current_setting('block_size')::integer
        * CASE WHEN c.relpages > 0 AND c.reltuples >= 0 THEN c.reltuples / c.relpages ELSE 80 END) AS rows
    FROM unnest(%(relids)s::oid[] || ARRAY(
            SELECT to_regclass(format('pgtrickle_state.%%s_%%s', kind, %(pgt_id)s::bigint))::oid
            FROM unnest(ARRAY['state', 'body']) AS kind)) AS r (relid)
        JOIN pg_class AS c ON c.oid = ANY (r.relid || ARRAY(SELECT p.relid::oid FROM pg_partition_tree(r.relid) AS p))
    GROUP BY r.relid
), completed AS (
    SELECT action, delta_rows, {seconds} AS seconds, refresh_id, engine = 'spark' AS spark,
        ((phases ->> 'compute')::numeric / 1000)::float8 AS reading, gave_up_ms, other_ms
    FROM (
        SELECT refresh_id, action, status, delta_rows, started_at, finished_at, phases, engine, gave_up_ms, other_ms
        FROM pgtrickle.pgt_refresh_history WHERE pgt_id = %(pgt_id)s ORDER BY refresh_id DESC LIMIT %(scanned)s
    ) AS h
    WHERE status = 'COMPLETED'
), ranked AS (
    SELECT *, row_number() OVER (PARTITION BY trunc(log(4, delta_rows)) ORDER BY refresh_id DESC) AS place
    FROM completed WHERE action IN ('DIFFERENTIAL', 'FULL') AND delta_rows > 0
), past AS (
    SELECT * FROM ranked WHERE place <= %(kept)s
)
SELECT
    coalesce((SELECT sum(rows) FROM sizes WHERE relid = ANY (%(sources)s::oid[])), 0)::bigint,
    coalesce((SELECT sum(rows) FROM sizes WHERE relid = %(relid)s::oid), 0)::bigint,
    (SELECT coalesce(jsonb_agg(
        jsonb_build_array(action = 'FULL', delta_rows, seconds, coalesce(spark, false), gave_up_ms, other_ms)
        ORDER BY refresh_id DESC), '[]')
     FROM past),
    f.seconds, coalesce(f.spark, true), q.seconds,
    coalesce((SELECT max(rows) FROM sizes WHERE relid <> ALL (%(sources)s::oid[])), 0)::bigint, f.reading
FROM (SELECT) AS always LEFT JOIN LATERAL (
    SELECT seconds, spark, reading FROM completed WHERE action IN ('FULL', 'REINITIALIZE') AND delta_rows = 0
    ORDER BY refresh_id DESC LIMIT 1
) AS f ON true CROSS JOIN LATERAL (
    SELECT CASE WHEN count(*) >= %(enough)s THEN percentile_disc(0.1) WITHIN GROUP (ORDER BY {seconds}) END AS seconds
    FROM (SELECT * FROM pgtrickle.pgt_refresh_history ORDER BY refresh_id DESC LIMIT %(lately)s) AS h
    WHERE status = 'COMPLETED' AND action IN ('DIFFERENTIAL', 'FULL') AND delta_rows > 0 AND engine = 'postgres'
) AS q
""".replace("{seconds}", SECONDS)
SCANNED = 10_000
KEPT = 100
# How quick a database is: the quickest tenth of so many newest refreshes of any stream table, if so many are known.
LATELY = 100
ENOUGH = 10
# What was given up is tried again after so many refreshes.
RENEWED = 100
LIMITS = {"scanned": SCANNED, "kept": KEPT, "lately": LATELY, "enough": ENOUGH}


def evidence(connection: psycopg.Connection, table: StreamTable) -> Evidence:
    """Read the sizes of a stream table and its sources, and its newest refreshes of about each number of changes.

    A first load does what a whole refresh does. It looks at the newest 10,000 entries of the history, and among them at
    the newest 100 refreshes with about as many changes; so a way that was not taken in 100 refreshes is tried again.
    Neither waiting for others in the same transaction nor comparing two ways counts as part of a refresh.
    """
    sources = [dependency.relid for dependency in table.dependencies]
    values = {"relids": [table.relid, *sources], "relid": table.relid, "sources": sources, "pgt_id": table.pgt_id}
    row = connection.execute(EVIDENCE, {**values, **LIMITS}).fetchone()
    read, stored, past, first_load, by_spark, quick, kept, reading = row or (0, 0, [], None, True, None, 0, None)
    refreshes = tuple(PastRefresh(*entry[:4]) for entry in past)
    found = Evidence(read, stored, refreshes, first_load, by_spark, quick, kept, reading)
    others = dict(given_up(refreshes, [tuple(entry[4:]) for entry in past]))
    return replace(found, given_up=tuple(others.values()), made_since=min(others, default=0))


def given_up(
    refreshes: tuple[PastRefresh, ...], others: Sequence[tuple[float | None, float | None]]
) -> Iterator[tuple[int, PastRefresh]]:
    """Yield what was given up before one of the refreshes, newest first, or what it would have taken if that is known.

    With each goes how many were made after it. What was completed since is left out: then the history has it.
    """
    known: set[tuple[bool, int]] = set()
    for number, (made, (gave_up, timed)) in enumerate(zip(refreshes[:RENEWED], others, strict=False)):
        known.add(_kind(made))
        past = _other(made, gave_up, timed)
        if past and _kind(past) not in known:
            known.add(_kind(past))
            yield number, past


def _other(made: PastRefresh, gave_up: float | None, timed: float | None) -> PastRefresh | None:
    """Return what a refresh tells of the other way: that may also have been timed long after it was given up."""
    if timed is not None:
        return PastRefresh(not made.whole, made.delta_rows, timed / 1000)
    return None if gave_up is None else PastRefresh.given_up(not made.whole, made.delta_rows, gave_up / 1000)


def _kind(past: PastRefresh) -> tuple[bool, int]:
    """Say how a refresh was made, and of about how many changes where that matters."""
    return past.whole, 0 if past.whole else size_class(past.delta_rows)
