"""Reading the query of a stream table as of an earlier watermark, for as long as the changes since are kept."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pytrickle.errors import InvalidArgument, NotRetained
from tests.acceptance.conftest import Shop, assert_explained
from tests.commands import commands

TOTALS = "SELECT customer, count(*) AS orders, sum(amount) AS amount FROM orders GROUP BY customer"
LINES = "SELECT order_id, count(*) AS lines FROM order_lines GROUP BY order_id"
REPORT = "SELECT t.customer, t.amount, c.name FROM totals t JOIN customers c ON c.id = t.customer"
BOTH = "SELECT o.id, l.lines FROM orders o LEFT JOIN lines l ON l.order_id = o.id"
QUERIES = {"totals": TOTALS, "lines": LINES, "report": REPORT, "paired": BOTH}


def moment(minute: int) -> datetime:
    return datetime(2026, 1, 1, 12, tzinfo=UTC) + timedelta(minutes=minute)


def changed(shop: Shop, chance: random.Random) -> None:
    """Insert, update and delete orders, lines and customers in one transaction."""
    with shop.db.connect() as loader, loader.transaction():
        for _ in range(chance.randint(1, 6)):
            number, customer = chance.randint(1, 12), chance.randint(1, 3)
            statements = (
                f"INSERT INTO orders VALUES ({number}, {customer}, 10)"
                " ON CONFLICT (id) DO UPDATE SET amount = orders.amount + 1",
                f"DELETE FROM orders WHERE id = {number}",
                f"INSERT INTO order_lines VALUES ({number}, {customer}, 1) ON CONFLICT DO NOTHING",
                f"DELETE FROM order_lines WHERE order_id = {number}",
                f"INSERT INTO customers VALUES ({customer}, 'C')"
                " ON CONFLICT (id) DO UPDATE SET name = customers.name || '+'",
            )
            loader.execute(chance.choice(statements).encode())


@pytest.fixture
def retained(local_shop: Shop) -> Shop:
    """Stream tables over orders, lines and customers, which never advance; all changes are kept for a day."""
    for name, query in QUERIES.items():
        local_shop.pt.create_stream_table(name, query, watermark_retention=timedelta(days=1))
    local_shop.tick()
    return local_shop


def test_every_retained_watermark_gives_the_answer_of_its_time(retained: Shop) -> None:
    chance = random.Random(7)
    known: dict[datetime, dict[str, list[Any]]] = {}
    for minute in range(8):
        changed(retained, chance)
        advance = "SELECT pgtrickle.advance_watermark('order_lines', %s), pgtrickle.advance_watermark('orders', %s)"
        retained.db.execute(advance, moment(minute), moment(minute))
        plain = {"report": REPORT.replace("totals", f"({TOTALS})"), "paired": BOTH.replace("lines l", f"({LINES}) l")}
        known[moment(minute)] = {
            name: sorted(retained.db.execute({**QUERIES, **plain}[name]), key=repr) for name in QUERIES
        }
        changed(retained, chance)
        retained.tick()
    assert len({repr(answer) for answer in known.values()}) > 4
    for watermark, answers in known.items():
        for name, rows in answers.items():
            found = retained.pt.as_of(name, watermark + timedelta(seconds=30))
            assert sorted(found.rows, key=repr) == rows, (name, watermark)
    assert found.watermarks == {"public.order_lines": moment(7), "public.orders": moment(7)}
    assert found.columns == ("id", "lines")
    report = retained.pt.as_of("report", moment(3))
    assert report.watermarks == {"public.customers": None, "public.orders": moment(3)}
    retained.assert_verified()


def test_changes_are_kept_for_the_retention_and_no_longer(local_shop: Shop) -> None:
    local_shop.pt.create_stream_table("totals", TOTALS)
    local_shop.tick()
    local_shop.load("orders", "12:00", (1, 1, 10))
    local_shop.tick()
    local_shop.load("orders", "12:01", (2, 1, 10))
    local_shop.tick()
    with pytest.raises(NotRetained, match=r"public\.orders no longer reaches back to 2026-01-01 12:00") as refused:
        local_shop.pt.as_of("totals", moment(0))
    assert "watermark_retention" in str(refused.value.hint)

    local_shop.pt.alter_stream_table("totals", watermark_retention=timedelta(hours=1))
    for minute in range(2, 6):
        local_shop.load("orders", f"12:0{minute}", (minute + 1, 1, 10))
        local_shop.tick()
    assert [local_shop.pt.as_of("totals", moment(minute)).rows[0][1] for minute in range(2, 6)] == [3, 4, 5, 6]

    age = (
        "UPDATE pgtrickle.pgt_watermark_history SET advanced_at = advanced_at - interval '2 hours' WHERE watermark < %s"
    )
    local_shop.db.execute(age, moment(4))
    local_shop.load("orders", "12:06", (7, 1, 10))
    local_shop.tick()
    with pytest.raises(NotRetained):
        local_shop.pt.as_of("totals", moment(2))
    # What was the newest an hour ago is still within the retention.
    assert [local_shop.pt.as_of("totals", moment(minute)).rows[0][1] for minute in range(3, 7)] == [4, 5, 6, 7]
    local_shop.pt.alter_stream_table("totals", reset=["watermark_retention"])
    local_shop.load("orders", "12:07", (8, 1, 10))
    local_shop.tick()
    with pytest.raises(NotRetained):
        local_shop.pt.as_of("totals", moment(6))
    assert local_shop.db.value(f"SELECT count(*) FROM pgtrickle_changes.changes_{orders_oid(local_shop)}") == 0


def orders_oid(shop: Shop) -> int:
    return int(shop.db.value("SELECT 'orders'::regclass::oid::bigint"))


def test_trimming_keeps_the_advances_that_are_retained(local_shop: Shop) -> None:
    local_shop.pt.create_stream_table("totals", TOTALS, watermark_retention=timedelta(days=2))
    local_shop.tick()
    for minute in range(4):
        local_shop.load("orders", f"12:0{minute}", (minute + 1, 1, 10))
        local_shop.tick()
    local_shop.db.execute("UPDATE pgtrickle.pgt_watermark_history SET advanced_at = advanced_at - interval '1 day'")
    local_shop.db.execute("SELECT pgtrickle.trim_history('1 hour')")
    assert [local_shop.pt.as_of("totals", moment(minute)).rows[0][1] for minute in range(4)] == [1, 2, 3, 4]
    local_shop.pt.alter_stream_table("totals", watermark_retention=timedelta(hours=1))
    local_shop.db.execute("SELECT pgtrickle.trim_history('1 hour')")
    with pytest.raises(NotRetained, match="begins at 2026-01-01 12:03"):
        local_shop.pt.as_of("totals", moment(0))
    assert local_shop.pt.as_of("totals", moment(3)).rows == ((1, 4, 40),)


def test_what_has_no_past_is_refused(local_shop: Shop) -> None:
    local_shop.pt.create_stream_table("totals", TOTALS)
    with pytest.raises(NotRetained, match=r"No source of public\.totals has a watermark yet"):
        local_shop.pt.as_of("totals", moment(0))
    local_shop.load("orders", "12:05", (1, 1, 10))
    with pytest.raises(NotRetained, match="begins at 2026-01-01 12:05"):
        local_shop.pt.as_of("totals", moment(0))
    local_shop.pt.create_stream_table("today", "SELECT id FROM orders WHERE now() > '2020-01-01'")
    with pytest.raises(InvalidArgument, match="depends on the clock"):
        local_shop.pt.as_of("today", moment(5))
    with local_shop.db.connect() as other:
        other.execute("SET TimeZone = 'Asia/Tokyo'")
        other.execute("SELECT pgtrickle.create_stream_table('abroad', 'SELECT customer FROM totals')")
    with pytest.raises(InvalidArgument, match=r"public\.totals was created under other session settings"):
        local_shop.pt.as_of("abroad", moment(5))
    local_shop.db.execute("CREATE MATERIALIZED VIEW frozen AS SELECT 1 AS one")
    local_shop.pt.create_stream_table("over_frozen", "SELECT o.id, f.one FROM orders o, frozen f")
    with pytest.raises(InvalidArgument, match=r"public\.frozen, whose changes cannot be captured"):
        local_shop.pt.as_of("over_frozen", moment(5))


def test_a_source_whose_history_was_lost_in_a_restore_has_no_past(retained: Shop) -> None:
    for source in ("orders", "order_lines"):
        retained.db.execute("SELECT pgtrickle.advance_watermark(%s, %s)", source, moment(0))
    retained.tick()
    retained.db.execute("UPDATE pgtrickle.pgt_stream_tables SET system_identifier = 1")
    retained.tick()
    retained.db.execute("INSERT INTO orders VALUES (1, 1, 10)")
    retained.db.execute("SELECT pgtrickle.advance_watermark('order_lines', %s)", moment(1))
    retained.tick()
    assert retained.pt.as_of("lines", moment(1)).rows == ()
    with pytest.raises(NotRetained, match=r"public\.orders no longer reaches back to 2026-01-01 12:01"):
        retained.pt.as_of("paired", moment(1))
    retained.load("orders", "12:01")
    assert retained.pt.as_of("paired", moment(1)).rows == ((1, None),)


def test_a_batch_number_gives_the_answer_of_its_batch(local_shop: Shop) -> None:
    query = "SELECT o.id, c.name FROM orders o JOIN customers c ON c.id = o.customer"
    local_shop.pt.create_stream_table("named", query, watermark_retention=timedelta(days=1))
    local_shop.tick()
    for number in (-3, 5, 8):
        local_shop.db.execute("INSERT INTO orders VALUES (%s, 1, 10)", number)
        local_shop.pt.advance_watermark("orders", number)
        local_shop.db.execute("UPDATE customers SET name = name || '+'")
        local_shop.tick()
    with pytest.raises(NotRetained, match="begins at -3, after -4"):
        local_shop.pt.as_of("named", -4)
    assert local_shop.pt.as_of("named", -1).rows == ((-3, "Ada"),)
    found = local_shop.pt.as_of("named", 7)
    assert set(found.rows) == {(-3, "Ada+"), (5, "Ada+")}
    assert found.watermarks == {"public.customers": None, "public.orders": 5}
    assert len(local_shop.pt.as_of("named", 2**63 - 1).rows) == 3
    with pytest.raises(InvalidArgument, match=r"public\.orders goes by batch numbers, not by event time") as refused:
        local_shop.pt.as_of("named", moment(0))
    assert_explained(refused.value)


def test_a_batch_number_is_refused_where_sources_go_by_event_time(retained: Shop) -> None:
    retained.load("orders", "12:00", (1, 1, 10))
    with pytest.raises(InvalidArgument, match=r"public\.orders goes by event time, not by batch numbers") as refused:
        retained.pt.as_of("totals", 5)
    assert_explained(refused.value)
    with pytest.raises(NotRetained, match=r"No source of public\.lines has a watermark yet"):
        retained.pt.as_of("lines", 5)


@pytest.mark.parametrize("wanted", [moment(0), 7])
def test_sources_of_both_kinds_have_no_common_past(retained: Shop, wanted: datetime | int) -> None:
    retained.load("orders", "12:00", (1, 1, 10))
    retained.db.execute("INSERT INTO order_lines VALUES (1, 1, 1)")
    retained.pt.advance_watermark("order_lines", 7)
    retained.tick()
    with pytest.raises(InvalidArgument, match=r"orders, which goes by event time, and public\.order_lines") as refused:
        retained.pt.as_of("paired", wanted)
    assert_explained(refused.value)
    assert retained.pt.as_of("totals", moment(0)).rows == ((1, 1, 10),)
    assert retained.pt.as_of("lines", 7).rows == ((1, 1),)


def test_a_moment_without_an_offset_is_refused_and_no_zone_is_guessed(retained: Shop) -> None:
    noon = datetime(2026, 1, 1, 12)
    asked = (
        lambda: retained.pt.advance_watermark("orders", noon),
        lambda: retained.pt.wait_for("totals", noon, timedelta(0)),
        lambda: retained.pt.as_of("totals", noon),
    )
    for ask in asked:
        with pytest.raises(InvalidArgument, match="no UTC offset"):
            ask()
    assert retained.pt.watermarks() == ()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("ALTER TABLE orders DISABLE TRIGGER ALL", "changes of public.orders may have been missed"),
        ("UPDATE pgtrickle.pgt_clusters SET system_identifier = 1", "restored or copied from another cluster"),
    ],
    ids=["capture switched off", "restored"],
)
def test_what_may_have_been_missed_since_the_last_tick_is_not_guessed(retained: Shop, damage: str, said: str) -> None:
    retained.db.execute("INSERT INTO orders VALUES (1, 1, 10)")
    retained.db.execute("SELECT pgtrickle.advance_watermark('orders', %s)", moment(1))
    retained.tick()
    assert retained.pt.as_of("totals", moment(1)).rows == ((1, 1, 10),)
    retained.db.execute(damage)
    retained.db.execute("INSERT INTO orders VALUES (2, 1, 10)")
    with pytest.raises(NotRetained, match=said):
        retained.pt.as_of("totals", moment(1))
    assert said in str(retained.pt.verify("totals").pending)
    retained.tick()
    assert retained.pt.verify("totals").matches


def test_the_command_writes_every_value_as_postgresql_does_and_json_is_json(local_shop: Shop) -> None:
    values = {
        "double precision": ("NaN", "NaN"),
        "real": ("-Infinity", "-Infinity"),
        "interval": ("1 mon 2 days", "1 mon 2 days"),
        "timestamp": ("2026-07-01 00:00:00", "2026-07-01 00:00:00"),
        "timestamptz": ("2026-07-01T00:00:00Z", "2026-07-01T00:00:00+00:00"),
        "date": ("0044-03-15 BC", "0044-03-15 BC"),
        "time": ("24:00", "24:00:00"),
        "bytea": ("\\x00ff", "\\x00ff"),
        "int4range": ("[1,5)", "[1,5)"),
        "numeric": ("1.50", "1.50"),
        "integer[]": ("{1,NULL}", [1, None]),
        "date[]": ("{infinity}", ["infinity"]),
    }
    columns = ", ".join(f"c{number} {type_}" for number, type_ in enumerate(values))
    local_shop.db.execute(f"CREATE TABLE kinds (id integer, {columns})")
    named = ", ".join(f"c{number}" for number in range(len(values)))
    local_shop.pt.create_stream_table("copied", f"SELECT {named} FROM kinds", watermark_retention=timedelta(days=1))
    placeholders = ", ".join(["%s"] * len(values))
    local_shop.db.execute(f"INSERT INTO kinds VALUES (1, {placeholders})", *(given for given, _ in values.values()))
    local_shop.pt.advance_watermark("kinds", moment(0))
    local_shop.tick()
    run = commands(local_shop.db.dsn)
    shown = run("as-of", "copied", moment(0).isoformat(), "--json").stdout

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    (row,) = json.loads(shown, parse_constant=refuse)["rows"]
    assert row == [written for _, written in values.values()]
    table = run("as-of", "copied", moment(0).isoformat()).stdout
    assert all(text in table for text in ("1 mon 2 days", "0044-03-15 BC", "[1,5)", "2026-07-01 00:00:00+00:00"))
