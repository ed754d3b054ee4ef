"""Rows below the watermark in force are loaded, counted and noted: all of them, and nothing else."""

import random
import re
from collections import Counter
from datetime import timedelta

import pytest

from tests.conftest import Database
from tests.sql.late import EVENTS, INSERT, advance, at, declared, ids, ledger, set_event_time


def test_late_is_what_comes_below_the_watermark(db: Database) -> None:
    declared(db, watermark=None)
    db.execute(INSERT, 1, at("09:00"))
    advance(db, "12:00")
    for number, clock in enumerate(("11:59:59.999999", "12:00", "12:01", "09:00"), start=2):
        db.execute(INSERT, number, at(clock))
    db.execute(INSERT, 6, None)
    assert ledger(db, "lag", "watermark = %s" % f"'{at('12:00')}'") == [  # noqa: UP031
        (2, "loaded", timedelta(microseconds=1), True),
        (5, "loaded", timedelta(hours=3), True),
    ]
    assert ids(db) == [1, 2, 3, 4, 5, 6], "the promise was broken, not the data"


def test_the_ledger_says_who_brought_which_row_when(db: Database) -> None:
    declared(
        db,
        "CREATE TABLE events (id integer, at timestamptz, note text, doc json, list integer[], gone integer, "
        "twice integer GENERATED ALWAYS AS (id * 2) STORED);\nALTER TABLE events DROP COLUMN gone",
    )
    db.execute("""INSERT INTO events VALUES (1, '2026-03-01 11:00+00', NULL, '{"a": 1, "a": 2}', '[2:3]={1,2}')""")
    ((late_id, row, who, recent, settled),) = db.execute(
        "SELECT late_id, row_data, arrived_by, clock_timestamp() - arrived_at < '1 minute', settled_at "
        "FROM pgtrickle.late_rows()"
    )
    assert (late_id, who, recent, settled) == (1, "postgres", True, None)
    assert row == {
        "id": "1",
        "at": "2026-03-01 11:00:00+00",
        "note": None,
        "doc": '{"a": 1, "a": 2}',
        "list": "[2:3]={1,2}",
    }


def test_the_list_is_newest_first_limited_and_of_one_source_or_status(db: Database) -> None:
    declared(db, too_late="1 hour")
    declared(db, "CREATE TABLE more (LIKE events)", None, source="more")
    advance(db, "12:00", "more")
    for number, clock in enumerate(("11:30", "10:30", "11:45"), start=1):
        db.execute(INSERT, number, at(clock))
    db.execute("INSERT INTO more VALUES (4, %s)", at("09:00"))
    listed = "SELECT (row_data ->> 'id')::int FROM pgtrickle.late_rows"
    assert db.execute(f"{listed}()") == [(4,), (3,), (2,), (1,)]
    assert db.execute(f"{listed}(max_rows => 2)") == [(4,), (3,)]
    assert db.execute(f"{listed}('events')") == [(3,), (2,), (1,)]
    assert db.execute(f"{listed}('events', 'kept_out')") == [(2,)]
    assert db.execute(f"{listed}(NULL, 'loaded', 10)") == [(4,), (3,), (1,)]


def test_every_way_to_load_is_judged(db: Database) -> None:
    declared(db, "CREATE TABLE events (id integer PRIMARY KEY, at timestamptz, note text)")
    with db.connect() as loader, loader.cursor() as cursor, cursor.copy("COPY events (id, at) FROM STDIN") as copy:
        for number, clock in enumerate(("11:00", "12:00", "11:30"), start=1):
            copy.write_row((number, at(clock)))
    db.execute("TRUNCATE events")
    db.execute("INSERT INTO events SELECT i, %s FROM generate_series(4, 5) AS i", at("10:00"))
    upsert = "INSERT INTO events VALUES (%s, %s) ON CONFLICT (id) DO UPDATE SET note = 'again'"
    db.execute(upsert, 4, at("10:00"))
    db.execute(upsert, 6, at("10:00"))
    db.execute("INSERT INTO events VALUES (4, %s), (7, %s) ON CONFLICT DO NOTHING", at("09:00"), at("09:00"))
    db.execute(
        "MERGE INTO events AS e USING (VALUES (7, 'merged'), (8, 'merged')) AS n(id, note) ON e.id = n.id "
        "WHEN MATCHED THEN UPDATE SET note = n.note WHEN NOT MATCHED THEN INSERT VALUES (n.id, %s, n.note)",
        at("09:00"),
    )
    with db.connect() as loader:
        loader.execute("SET session_replication_role = replica")
        loader.execute(INSERT, (9, at("09:00")))
    assert ledger(db) == [(number, "loaded") for number in (1, 3, 4, 5, 6, 7, 8, 9)]


def test_an_update_is_late_with_the_rows_that_it_moves_below_the_watermark(db: Database) -> None:
    declared(db)
    db.execute(
        "INSERT INTO events SELECT i, %s::timestamptz + i * interval '1 hour' FROM generate_series(1, 6) AS i",
        at("12:00"),
    )
    db.execute("UPDATE events SET note = 'corrected', at = at - interval '3 hours'")
    assert ledger(db, "event_time = %s" % f"'{at('10:00')}'") == [  # noqa: UP031
        (1, "loaded", True),
        (2, "loaded", False),
    ]
    db.execute("UPDATE events SET note = 'corrected again'")
    db.execute("DELETE FROM events WHERE id = 6")
    assert len(ledger(db)) == 2, "who keeps its event time did not come late"
    db.execute("UPDATE events SET at = at - interval '1 hour'")
    assert ledger(db) == [(1, "loaded"), (1, "loaded"), (2, "loaded"), (2, "loaded"), (3, "loaded")]


@pytest.mark.parametrize("session", ["UTC", "Australia/Sydney"])
def test_the_zone_of_the_declaration_counts_and_not_that_of_the_session(db: Database, session: str) -> None:
    loader = db.connect()
    loader.execute(f"SET TimeZone = '{session}'; SET DateStyle = 'SQL, DMY'")
    for kind, zone, below, not_below in (
        ("timestamp", "UTC", "2026-03-01 11:59:59.999999", "2026-03-01 12:00"),
        ("timestamp", "America/New_York", "2026-03-01 06:59:59.999999", "2026-03-01 07:00"),
        ("date", "UTC", "2026-02-28", "2026-03-01"),
        ("date", "Asia/Tokyo", "2026-02-28", "2026-03-01"),
        ("date", "Pacific/Kiritimati", "2026-03-01", "2026-03-02"),
    ):
        declared(db, f"CREATE TABLE events (id integer, at {kind})", time_zone=zone)
        advance(db, "12:00")
        loader.execute(f"INSERT INTO events VALUES (1, '{below}'), (2, '{not_below}')")
        assert ledger(db) == [(1, "loaded")], (kind, zone)
        db.execute("DROP TABLE events")


def test_no_value_of_the_type_breaks_a_load(db: Database) -> None:
    for kind in ("timestamptz", "timestamp", "date"):
        zone = {} if kind == "timestamptz" else {"time_zone": "America/New_York"}
        declared(db, f"CREATE TABLE events (id integer, at {kind})", too_late="1000 years", **zone)
        extremes = ["-infinity", "infinity", "4713-01-01 BC", "294276-12-31", "0001-01-01 BC"]
        if kind == "date":
            extremes.append("5874897-12-31")
        for number, value in enumerate(extremes, start=1):
            db.execute(f"INSERT INTO events VALUES ({number}, '{value}')")
        assert ledger(db, "lag IS NULL") == [
            (1, "kept_out", True),
            (3, "kept_out", kind != "timestamptz"),  # beyond what a zone can shift: infinite
            (5, "kept_out", False),
        ]
        advance(db, "infinity")
        db.execute("INSERT INTO events VALUES (9, '294276-12-29'), (10, 'infinity')")
        assert {number for number, _ in ledger(db)} == {1, 3, 5, 9}
        db.execute("DROP TABLE events")


def test_an_early_watermark_and_a_long_limit_keep_nothing_out(db: Database) -> None:
    declared(db, too_late="1000 years")
    # Such a watermark is refused, but a database may have one from before.
    db.execute("UPDATE pgtrickle.pgt_watermarks SET watermark = '4700-01-01 BC'")
    db.execute(INSERT, 1, "4710-01-01 BC")
    assert (ids(db), ledger(db)) == ([1], [(1, "loaded")])


def naive(statements: list[tuple[str, list[tuple[int, int]]]]) -> Counter[int]:
    """Judge event by event: an insert below the watermark is late, and an update to a new time below it."""
    times: dict[int, int] = {}
    late: Counter[int] = Counter()
    watermark = -1
    for kind, rows in statements:
        if kind == "advance":
            watermark = rows[0][1]
        for number, minute in rows if kind != "advance" else []:
            late[number] += minute < watermark and times.get(number) != minute
            times[number] = minute
    return +late


@pytest.mark.parametrize("partitioned", [False, True], ids=["table", "partitions"])
def test_generated_loads_are_counted_as_a_naive_judge_counts_them(db: Database, partitioned: bool) -> None:
    chance = random.Random(7 + partitioned)
    if partitioned:
        table = "CREATE TABLE events (id integer, at timestamptz) PARTITION BY RANGE (at);\n" + ";\n".join(
            f"CREATE TABLE events_{n} PARTITION OF events FOR VALUES "
            f"FROM ('{at(f'{n:02}:00')}') TO ('{at(f'{n + 4:02}:00')}')"
            for n in (0, 4, 8, 12)
        )
    else:
        table = "CREATE TABLE events (id integer, at timestamptz)"
    declared(db, table, None)
    statements: list[tuple[str, list[tuple[int, int]]]] = []
    known, watermark = 0, 0
    for _ in range(40):
        kind = chance.choice(["insert", "insert", "update", "advance"])
        if kind == "advance":
            watermark = min(900, watermark + chance.randrange(1, 60))
            statements.append((kind, [(0, watermark)]))
            continue
        number = chance.randrange(1, 8)
        chosen = range(known, known + number) if kind == "insert" else chance.sample(range(known), min(number, known))
        known += number if kind == "insert" else 0
        minutes = [chance.randrange(max(0, watermark - 60), watermark + 60) for _ in chosen]
        statements.append((kind, list(zip(chosen, minutes, strict=True))))
    moment = "'2026-03-01 00:00+00'::timestamptz + %s * interval '1 minute'"
    for kind, rows in statements:
        if kind == "advance":
            db.execute(f"SELECT pgtrickle.advance_watermark('events', {moment})", rows[0][1])
        elif kind == "insert":
            db.execute(
                "INSERT INTO events VALUES " + ", ".join(f"({number}, {moment % minute})" for number, minute in rows)
            )
        elif rows:
            values = ", ".join(f"({number}, {moment % minute})" for number, minute in rows)
            db.execute(f"UPDATE events AS e SET at = n.at FROM (VALUES {values}) AS n(id, at) WHERE e.id = n.id")
    found = Counter(number for number, _ in ledger(db))
    assert found == naive(statements)
    assert sum(found.values()) > 10
    assert db.value("SELECT late_rows FROM pgtrickle.watermark_metrics()") == sum(found.values())


def test_where_nothing_is_declared_nothing_is_installed(db: Database) -> None:
    db.execute(EVENTS)
    advance(db, "12:00")
    triggers = "SELECT count(*) FROM pg_trigger WHERE tgrelid = 'events'::regclass"
    assert db.value(triggers) == 0
    set_event_time(db)
    assert db.value(triggers) == 2
    db.execute("SELECT pgtrickle.unset_event_time('events')")
    db.execute("SELECT pgtrickle.unset_event_time('events')")
    assert db.value(triggers) == 0
    assert db.value("SELECT count(*) FROM pg_proc WHERE proname LIKE '%%late\\_1' AND %s", True) == 0
    db.execute(INSERT, 1, at("11:00"))
    assert ledger(db) == []


def test_a_load_without_late_rows_costs_one_call_and_does_not_open_the_ledger(db: Database) -> None:
    declared(db, too_late="1 hour")
    loader = db.connect(autocommit=False)
    load = "EXPLAIN (ANALYZE, TIMING off) INSERT INTO events SELECT i, %s FROM generate_series(1, 1000) AS i"
    ledger_opened = (
        "SELECT count(DISTINCT relation) FROM pg_locks "
        "WHERE relation = 'pgtrickle.pgt_late_rows'::regclass AND pid = %s"
    )

    def calls(clock: str) -> dict[str, int]:
        plan = [line for (line,) in loader.execute(load, (at(clock),)) if line.startswith("Trigger ")]
        return {re.sub(r"Trigger (\w+)_\d+: .*", r"\1", line): int(line.rpartition("calls=")[2]) for line in plan}

    once = {"pgtrickle_late_insert": 1}
    assert calls("12:00") == once
    assert db.value(ledger_opened, loader.info.backend_pid) == 0
    assert calls("11:30") == once, "late, but not too late"
    assert db.value(ledger_opened, loader.info.backend_pid) == 1
    assert calls("10:30") == {"zz_pgtrickle_too_late": 1000, **once}
