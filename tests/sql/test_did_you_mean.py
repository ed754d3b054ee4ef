"""Whoever misspells a name is asked whether the one most like it was meant, in SQL and on the command line."""

from __future__ import annotations

import psycopg
import pytest

from tests.commands import commands
from tests.conftest import Database


@pytest.fixture(scope="module")
def shop(steady_db: Database) -> Database:
    db = steady_db
    db.execute("CREATE TABLE orders (id int)")
    db.execute("SELECT pgtrickle.create_stream_table('per_region', 'SELECT count(*) FROM orders')")
    db.execute("SELECT pgtrickle.create_watermark_group('pipeline', ARRAY['orders'])")
    db.execute("SELECT pgtrickle.create_feed('shipping', 'orders')")
    return db


@pytest.mark.parametrize(
    ("name", "known", "sentence"),
    [
        ("ordrs", "{lines,orders}", "Did you mean orders? "),
        ("ORDERS", "{lines,orders}", "Did you mean orders? "),
        ("ordesr", "{lines,orders}", "Did you mean orders? "),
        ("customers", "{lines,orders}", ""),
        ("x", "{}", ""),
        ("", "{orders}", ""),
        ("orders", "{orders}", ""),
        (None, "{orders}", ""),
        ("orders", None, ""),
    ],
)
def test_the_name_most_like_it_is_named_if_it_is_like_it_at_all(
    shop: Database, name: str | None, known: str | None, sentence: str
) -> None:
    assert shop.value("SELECT pgtrickle_private.did_you_mean(%s, %s)", name, known) == sentence


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        ("refresh_stream_table('per_reigon')", "per_region"),
        ("refresh_stream_table('public.per_regio')", "public.per_region"),
        ("drop_watermark_group('pipelin')", "pipeline"),
        ("advance_watermark('ordrs', '2026-01-01Z')", "orders"),
        ("gate_source('public.ordrs')", "public.orders"),
        ("create_watermark_group('other', ARRAY['ordrs'])", "orders"),
        ("drop_feed('shiping')", "shipping"),
    ],
)
def test_sql_asks_and_names_the_call_that_lists_what_there_is(shop: Database, call: str, meant: str) -> None:
    with pytest.raises(psycopg.Error) as raised:
        shop.execute(f"SELECT pgtrickle.{call}")
    assert (raised.value.diag.message_hint or "").startswith(f"Did you mean {meant}? ")


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("explain", "per_regon"), "Did you mean per_region? pytrickle status lists those that exist;"),
        (("group", "drop", "pipelin"), "Did you mean pipeline? pytrickle group list lists those that exist."),
        (("watermark", "advance", "ordrs", "2026-01-01T00:00Z"), "Did you mean orders? Qualify the name"),
        (("source", "limits", "ordrs"), "Did you mean orders? Qualify the name"),
        (("gate", "ordrs"), "Did you mean orders? Qualify the name"),
        (("group", "create", "other", "ordrs"), "Did you mean orders? Qualify the name"),
        (("feed", "create", "other", "ordrs"), "Did you mean orders? Qualify the name"),
        (("feed", "advance", "shiping", "1"), "Did you mean shipping? pytrickle feed list lists those that exist."),
    ],
)
def test_the_command_line_asks_and_names_its_own_commands(
    shop: Database, arguments: tuple[str, ...], hint: str
) -> None:
    result = commands(shop.dsn)(*arguments)
    assert (result.exit_code, f"hint: {hint}" in result.stderr) == (1, True), result.stderr


@pytest.mark.parametrize("name", ["My table", "", '"', "a.b.c.d"])
@pytest.mark.parametrize("call", ["refresh_stream_table", "gate_source", "drop_stream_table", "watermark_history"])
def test_what_is_no_name_is_said_to_be_none_on_every_version(every_db: Database, call: str, name: str) -> None:
    with pytest.raises(psycopg.Error) as raised:
        every_db.execute(f"SELECT pgtrickle.{call}(%s)", name)
    assert raised.value.diag.sqlstate == "42602" and "double quotes" in (raised.value.diag.message_hint or "")
    result = commands(every_db.dsn)("refresh", name)
    assert (result.exit_code, "is no name" in result.stderr, "psql" in result.stderr) == (1, True, False)
