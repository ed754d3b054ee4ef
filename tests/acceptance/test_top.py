"""The live screen shows what goes on, does what keys ask, and leaves the terminal as it was."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from pytrickle.catalog import session_settings
from tests.acceptance.conftest import Shop
from tests.commands import commands
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.terminal import Terminal, terminal

LEFT = b"\x1b[?1049l"


@pytest.fixture
def shop(db: Database) -> Iterator[Shop]:
    """Two stream tables, of which one waits for its group."""
    db.execute("CREATE TABLE orders (id int); CREATE TABLE lines (id int); INSERT INTO orders VALUES (1)")
    with local_client(db.dsn) as (client, _):
        shop = Shop(db, client)
        client.create_watermark_group("pipeline", ["orders", "lines"])
        client.create_stream_table("counts", "SELECT count(*) FROM orders")
        client.create_stream_table("report", "SELECT count(*) FROM orders JOIN lines USING (id)")
        db.execute("SELECT pgtrickle.advance_watermark('orders', '2026-01-01 12:05Z')")
        db.execute("SELECT pgtrickle.advance_watermark('lines', '2026-01-01 12:00Z')")
        client.tick()
        yield shop


def left_as_it_was(screen: Terminal, before: list[object]) -> None:
    assert LEFT in screen.written, "the screen of before is not back"
    assert b"\x1b[?25h" in screen.written, "the cursor is hidden"
    assert screen.modes() == before


def test_the_screen_shows_all_states_and_keys_explain_pause_and_refresh(shop: Shop) -> None:
    with terminal("--dsn", shop.db.dsn, "top", "--interval", "0.2s") as screen:
        before = screen.modes()
        shown = screen.shows(
            "pipeline  apart", "5 min", "public.orders", "> public.counts  ok", "public.report", "gated"
        )
        assert "Nothing is being refreshed." in shown
        screen.press("j")
        screen.shows("> public.report", "public.report: pipeline: public.lines is 5 min behind public.orders,")
        screen.press("e")
        screen.shows("differential: yes", "Escape back")
        screen.press("\x1b")
        screen.shows("Stream tables")
        screen.press("p")
        screen.shows("> public.report  paused", "Paused public.report; p resumes it.")
        screen.press("p")
        screen.shows("Resumed public.report.", "> public.report  gated")
        screen.press("\x1b[Ar")
        screen.shows("Asked for a refresh of public.counts")
        assert shop.db.value("SELECT count(*) FROM pgtrickle.pgt_refresh_requests") == 1
        screen.press("q")
        assert screen.ended() == 0
        left_as_it_was(screen, before)


@pytest.mark.repeats
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_leaves_the_terminal_as_it_was(shop: Shop, number: signal.Signals) -> None:
    with terminal("--dsn", shop.db.dsn, "top") as screen:
        before = screen.modes()
        screen.shows("public.counts")
        screen.process.send_signal(number)
        assert screen.ended() == (0 if number is signal.SIGINT else 128 + number)
        left_as_it_was(screen, before)


@pytest.mark.repeats
def test_a_narrow_and_low_terminal_shows_the_chosen_table_and_its_state(shop: Shop) -> None:
    with terminal("--dsn", shop.db.dsn, "top", columns=100, lines=40) as screen:
        screen.shows("effective watermark")
        screen.resize(32, 10)
        shown = screen.shows("> public.counts  ok", "public.report  gated", "Keys: ? help   q quit")
        assert max(map(len, shown.splitlines())) <= 32
        assert "effective watermark" not in shown
        screen.press("G?")
        screen.shows("Up, Down, j, k")


@pytest.mark.repeats
def test_an_outage_is_said_and_waited_out(shop: Shop) -> None:
    name = shop.db.value("SELECT current_database()")
    shop.pt.close()
    with terminal("--dsn", shop.db.dsn, "top", "--interval", "0.2s") as screen:
        screen.shows("public.counts")
        with psycopg.connect(shop.db.dsn, dbname="postgres", autocommit=True) as outside:
            outside.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false".encode())
            outside.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,))
            shown = screen.shows("The database does not answer since", "trying again")
            assert "public.counts" in shown, "what was seen last is not shown any more"
            screen.press("p")
            screen.shows("Check that the server runs")
            outside.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true".encode())
        assert "does not answer" not in screen.shows("The database answers again.", "Nothing is being refreshed.")
        screen.press("q")
        assert screen.ended() == 0


@pytest.mark.repeats
def test_what_another_process_refreshes_is_shown(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_settings, "PATIENCE", "60s")
    shop.db.execute("INSERT INTO orders VALUES (2)")
    locker = shop.db.connect(autocommit=False)
    locker.execute("SELECT FROM pgtrickle.pgt_stream_tables WHERE pgt_id = 1 FOR UPDATE")
    with terminal("--dsn", shop.db.dsn, "top", "--interval", "0.2s") as screen, ThreadPoolExecutor(1) as thread:
        refresh = thread.submit(shop.pt.refresh, "counts")
        try:
            screen.shows("> public.counts  refreshing", "Refreshing public.counts for")
        finally:
            locker.rollback()
        assert refresh.result(timeout=30).rows_inserted == 1
        screen.shows("> public.counts  ok", "Nothing is being refreshed.")


@pytest.mark.repeats
def test_whoever_may_see_the_status_may_watch_and_is_told_where_keys_ask_for_more(shop: Shop) -> None:
    role = shop.db.create_role("watcher")
    with terminal("--dsn", shop.db.dsn.replace("postgres@", f"{role}@"), "top") as screen:
        screen.shows("> public.counts  ok")
        screen.press("p")
        screen.shows("The role of this connection may not pause stream tables.")
        screen.press("q")
        assert screen.ended() == 0


@pytest.mark.repeats
def test_drop_asks_on_a_terminal_and_does_nothing_without_a_yes(shop: Shop) -> None:
    for answer, left in (("n", 2), ("y", 1)):
        with terminal("--dsn", shop.db.dsn, "drop", "report") as screen:
            screen.shows("Drop stream table report? [y/N]:")
            screen.press(f"{answer}\n")
            assert screen.ended() == (0 if answer == "y" else 1)
        assert shop.db.value("SELECT count(*) FROM pgtrickle.pgt_stream_tables") == left


def test_without_a_terminal_it_names_the_command_that_needs_none(shop: Shop) -> None:
    run = commands(shop.db.dsn)
    refused = run("top")
    assert refused.exit_code == 2 and "pytrickle status prints the same once" in refused.output
