"""Hold back: the newest cut on which the sources agree, found in the history of advances."""

import pytest

from tests.conftest import Database
from tests.sql.checks import decide, pretend_refresh


def advance(db: Database, source: str, *times: str) -> None:
    for at in times:
        db.execute(
            "SELECT pgtrickle.advance_watermark(%s, %s)", source, at if at == "infinity" else f"2026-03-01 {at}+00"
        )


def test_interleaved_histories_agree_at_the_newest_common_time(shop: Database) -> None:
    advance(shop, "orders", "11:55", "12:00", "12:05")
    advance(shop, "order_lines", "11:55")
    decision = decide(shop, "report")
    assert (decision["gating"], decision["decision"], decision["effective_watermark"]) == ("hold_back", "run", "11:55")
    assert decision["caps"] == {"orders": "11:55", "order_lines": "11:55"}
    advance(shop, "order_lines", "12:05")
    assert decide(shop, "report")["caps"] == {"orders": "12:05", "order_lines": "12:05"}


@pytest.mark.parametrize(
    ("tolerance", "orders", "lines", "caps", "effective"),
    [
        ("0", ("11:55", "12:00"), ("11:54", "11:56"), None, None),
        ("1 minute", ("11:55", "12:00"), ("11:54", "11:56"), ("11:55", "11:56"), "11:55"),
        ("59 seconds", ("11:55", "12:00"), ("11:54", "11:56"), None, None),
        ("5 minutes", ("11:55", "12:00"), ("11:54", "11:56"), ("12:00", "11:56"), "11:56"),
        ("0", ("10:00", "11:00", "12:00"), ("10:00", "10:30", "11:00", "11:30"), ("11:00", "11:00"), "11:00"),
        ("0", ("12:00",), ("11:00", "12:00", "13:00"), ("12:00", "12:00"), "12:00"),
        ("0", ("12:00",), ("13:00",), None, None),
        ("0", ("11:00", "infinity"), ("11:30",), ("infinity", "11:30"), "11:30"),
        ("0", ("infinity",), ("infinity",), ("infinity", "infinity"), "infinity"),
        ("10 minutes", ("10:00", "10:20"), ("10:09", "10:31"), ("10:00", "10:09"), "10:00"),
    ],
)
def test_the_newest_agreement_is_found(
    shop: Database,
    tolerance: str,
    orders: tuple[str, ...],
    lines: tuple[str, ...],
    caps: tuple[str, str] | None,
    effective: str | None,
) -> None:
    shop.execute("SELECT pgtrickle.alter_watermark_group('pipeline', tolerance => %s)", tolerance)
    advance(shop, "orders", *orders)
    advance(shop, "order_lines", *lines)
    decision = decide(shop, "report")
    if caps is None:
        assert (decision["decision"], decision["caps"], decision["effective_watermark"]) == ("waiting", {}, None)
        assert "no event time at which its sources agree" in decision["reason"]
    else:
        shown = {
            name: None if at == "infinity" else at for name, at in zip(("orders", "order_lines"), caps, strict=True)
        }
        assert (decision["decision"], decision["caps"]) == ("run", shown)
        assert decision["effective_watermark"] == (None if effective == "infinity" else effective)


def test_random_histories_agree_with_a_naive_search(shop: Database) -> None:
    """The bounded search finds what trying every event time finds."""
    import random

    numbers = random.Random(3)
    times = {"orders": set(), "order_lines": set()}
    shop.execute("SELECT pgtrickle.alter_watermark_group('pipeline', tolerance => '7 minutes')")
    for _ in range(60):
        source = numbers.choice(list(times))
        minute = max(times[source], default=0) + numbers.randrange(1, 12)
        times[source].add(minute)
        advance(shop, source, f"{minute // 60:02}:{minute % 60:02}")
        expected = None
        for t in sorted(times["orders"] | times["order_lines"]):
            newest = [max((w for w in history if w <= t), default=None) for history in times.values()]
            if None not in newest and max(newest) - min(newest) <= 7:
                expected = {name: f"{w // 60:02}:{w % 60:02}" for name, w in zip(times, newest, strict=True)}
        assert decide(shop, "report")["caps"] == (expected or {})


def test_until_every_source_advanced_nothing_is_capped(shop: Database) -> None:
    advance(shop, "orders", "12:00")
    decision = decide(shop, "report")
    assert (decision["decision"], decision["caps"], decision["effective_watermark"]) == ("run", {}, None)
    assert decision["reason"] == "pipeline: public.order_lines never advanced"
    shop.execute("SELECT pgtrickle.alter_stream_table('report', require_watermark => true)")
    assert decide(shop, "report")["decision"] == "waiting"


def test_a_cut_from_before_capture_is_not_readable(db: Database) -> None:
    for name in ("orders", "order_lines"):
        db.execute(f"CREATE TABLE {name} (id integer)")
    db.execute("SELECT pgtrickle.create_watermark_group('pipeline', ARRAY['orders', 'order_lines'])")
    advance(db, "orders", "11:00")
    advance(db, "order_lines", "11:00")
    db.execute(
        "SELECT pgtrickle.create_stream_table('report', 'SELECT id FROM orders JOIN "
        "order_lines USING (id)', watermark_gating => 'hold_back')"
    )
    decision = decide(db, "report")
    assert (decision["decision"], decision["caps"]) == ("run", {})
    assert decision["waiting_for"] == "public.orders"
    assert "has not advanced since its changes are captured" in decision["reason"]
    advance(db, "orders", "12:00")
    assert decide(db, "report")["waiting_for"] == "public.order_lines"
    advance(db, "order_lines", "12:00")
    assert decide(db, "report")["caps"] == {"orders": "12:00", "order_lines": "12:00"}


def test_a_source_read_only_through_others_needs_no_readable_cut(db: Database) -> None:
    for name in ("orders", "order_lines"):
        db.execute(f"CREATE TABLE {name} (id integer)")
    db.execute("SELECT pgtrickle.create_watermark_group('pipeline', ARRAY['orders', 'order_lines'])")
    advance(db, "order_lines", "12:00")
    db.execute(
        "SELECT pgtrickle.create_stream_table('summary', 'SELECT id FROM orders', watermark_gating => 'hold_back')"
    )
    advance(db, "orders", "12:00")
    assert decide(db, "summary")["caps"] == {"orders": "12:00"}


def test_it_stays_where_it_is_until_a_cut_covers_what_it_shows(shop: Database) -> None:
    pretend_refresh(shop, "report")
    shop.execute("INSERT INTO orders VALUES (1)")
    shop.execute("SELECT pgtrickle.drop_watermark_group('pipeline')")
    advance(shop, "orders", "11:00")
    advance(shop, "order_lines", "11:00")
    shop.execute("INSERT INTO orders VALUES (2)")
    pretend_refresh(shop, "report")
    shop.execute("SELECT pgtrickle.create_watermark_group('pipeline', ARRAY['orders', 'order_lines'])")
    decision = decide(shop, "report")
    assert (decision["decision"], decision["waiting_for"]) == ("run", "public.orders")
    assert "stays where it is until a watermark of public.orders covers what it shows" in decision["reason"]
    assert set(decision["caps"]) == {"orders", "order_lines"}
    frontiers = dict(shop.execute("SELECT source_relid::oid::text, to_jsonb(frontier) FROM pgtrickle.pgt_dependencies"))
    assert shop.value("SELECT caps FROM pgtrickle.gating_decision(1)") == frontiers
    advance(shop, "orders", "12:00")
    advance(shop, "order_lines", "12:00")
    assert decide(shop, "report")["caps"] == {"orders": "12:00", "order_lines": "12:00"}


def test_where_nothing_agrees_a_filled_table_stays_and_an_empty_one_waits(shop: Database) -> None:
    advance(shop, "orders", "11:00")
    advance(shop, "order_lines", "11:00")
    pretend_refresh(shop, "report")
    shop.execute("DELETE FROM pgtrickle.pgt_watermark_history")
    advance(shop, "orders", "12:00")
    advance(shop, "order_lines", "12:30")
    decision = decide(shop, "report")
    assert (decision["decision"], set(decision["caps"]), decision["effective_watermark"]) == (
        "run",
        {"orders", "order_lines"},
        "11:00",
    )
    shop.execute("UPDATE pgtrickle.pgt_dependencies SET frontier = NULL")
    shop.execute("UPDATE pgtrickle.pgt_stream_tables SET status = 'INITIALIZING'")
    assert decide(shop, "report")["decision"] == "waiting"


def test_a_source_in_two_groups_is_read_at_the_lower_cut(shop: Database) -> None:
    shop.execute("CREATE TABLE rates (id integer)")
    shop.execute(
        "SELECT pgtrickle.create_stream_table('wide', 'SELECT o.id FROM orders AS o, "
        "order_lines AS l, rates AS r', watermark_gating => 'hold_back')"
    )
    shop.execute("SELECT pgtrickle.create_watermark_group('pricing', ARRAY['orders', 'rates'])")
    advance(shop, "orders", "11:00", "12:00")
    advance(shop, "order_lines", "12:00")
    advance(shop, "rates", "11:00")
    decision = decide(shop, "wide")
    assert decision["caps"] == {"orders": "11:00", "order_lines": "12:00", "rates": "11:00"}
    assert decision["effective_watermark"] == "11:00"


def test_sources_in_no_group_are_not_capped(shop: Database) -> None:
    shop.execute("CREATE TABLE notes (id integer)")
    shop.execute(
        "SELECT pgtrickle.create_stream_table('noted', 'SELECT o.id FROM orders AS o, "
        "order_lines AS l, notes AS n', watermark_gating => 'hold_back')"
    )
    advance(shop, "orders", "11:00")
    advance(shop, "order_lines", "11:00")
    advance(shop, "notes", "10:00")
    assert decide(shop, "noted")["caps"] == {"orders": "11:00", "order_lines": "11:00"}


def test_the_effective_watermark_never_asks_for_less_than_is_shown(shop: Database) -> None:
    shop.execute("SELECT pgtrickle.alter_watermark_group('pipeline', tolerance => '10 minutes')")
    advance(shop, "orders", "11:00", "11:20")
    advance(shop, "order_lines", "11:00", "11:10")
    pretend_refresh(shop, "report")
    assert decide(shop, "report")["effective_watermark"] == "11:10"
    shop.execute("SELECT pgtrickle.alter_watermark_group('pipeline', tolerance => '0')")
    decision = decide(shop, "report")
    assert decision["effective_watermark"] == "11:10"
    assert decision["caps"] == {"orders": "11:20", "order_lines": "11:10"}


def test_held_back_tables_of_one_chain_choose_the_same_time(db: Database) -> None:
    for name in ("orders", "lines"):
        db.execute(f"CREATE TABLE {name} (id integer)")
    for name, source in (("a", "orders"), ("b", "lines")):
        db.execute(
            f"SELECT pgtrickle.create_stream_table('{name}', 'SELECT id FROM {source}', "
            f"watermark_gating => 'hold_back')"
        )
    db.execute(
        "SELECT pgtrickle.create_stream_table('d', 'SELECT id FROM a JOIN b USING (id)', "
        "watermark_gating => 'hold_back')"
    )
    db.execute("SELECT pgtrickle.create_watermark_group('g', ARRAY['orders', 'lines'])")
    advance(db, "orders", "11:00", "12:00", "13:00")
    advance(db, "lines", "11:00", "12:00")
    assert decide(db, "a")["caps"] == {"orders": "12:00"}
    assert decide(db, "b")["caps"] == {"lines": "12:00"}
    assert decide(db, "d")["caps"] == {}
    assert {decide(db, name)["effective_watermark"] for name in "abd"} == {"12:00"}
    db.execute("UPDATE pgtrickle.pgt_stream_tables SET effective_watermark = '2026-03-01 12:30+00', status = 'ACTIVE'")
    decision = decide(db, "d")
    assert (decision["decision"], decision["effective_watermark"]) == ("run", "12:30"), "it never moves back"
    assert "no event time at which its sources agree" in decision["reason"]
