"""What a loader may do to its own source, it may not do to that of others, and nobody else may do it at all."""

import pytest

from tests.security.roles import House, ask
from tests.sql.checks import refused

ADVANCE = "SELECT pgtrickle.advance_watermark('public.orders', %s)"
CLAIM = "SELECT pgtrickle.claim_sink_batch('public.orders', 'files', 'q', %s)"


def test_a_temporary_table_leaves_no_rows_in_the_catalog(house: House) -> None:
    mallory = house.session("mallory")
    mallory.execute("CREATE TEMPORARY TABLE mine (id integer)")
    for call in ("advance_watermark('mine', now())", "gate_source('mine')", "claim_sink_batch('mine', 'x', 'q', 0)"):
        with refused("42809", "gone with its session"):
            mallory.execute(f"SELECT pgtrickle.{call}".encode())
    for table in ("pgt_watermarks", "pgt_watermark_history", "pgt_source_gates", "pgt_sink_batches"):
        assert house.db.value(f"SELECT count(*) FROM pgtrickle.{table}") == 0


def test_one_loader_neither_drops_the_staging_of_another_nor_forgets_its_sink(house: House) -> None:
    loader, other = (house.session(role, "INSERT ON orders") for role in ("loader", "other"))
    assert ask(loader, CLAIM, 0) == [(True,)]
    ask(loader, "SELECT pgtrickle.create_sink_staging('public.orders', 'files', ARRAY['id'])")
    for call in ("drop_sink_staging('public.orders', 'files')", "drop_sink('public.orders', 'files')",
                 "claim_sink_batch('public.orders', 'files', 'q', 1)",
                 "create_sink_staging('public.orders', 'files', ARRAY['id'])"):  # fmt: skip
        with refused("42501", "another name", "insufficient_privilege"):
            other.execute(f"SELECT pgtrickle.{call}".encode())
    assert ask(loader, CLAIM, 0) == [(False,)], "batch 0 is not loaded twice"
    assert ask(loader, "SELECT pgtrickle.drop_sink_staging('public.orders', 'files')") == [(1,)]
    ask(other, "SELECT pgtrickle.claim_sink_batch('public.orders', 'mine', 'q', 0)")
    ask(house.etl, "SELECT pgtrickle.drop_sink('public.orders', 'files')")


def test_insert_into_some_columns_does_not_speak_for_the_table(house: House) -> None:
    loader = house.session("loader", "INSERT (id) ON orders")
    with refused("42501", "GRANT INSERT ON public.orders TO loader"):
        loader.execute(ADVANCE, ("2026-03-01",))
    house.etl.execute("SELECT pgtrickle.grant_loader('orders', 'loader')")
    loader.execute(ADVANCE, ("2026-03-01",))
    house.etl.execute("SELECT pgtrickle.revoke_loader('orders', 'loader')")
    with refused("42501", "GRANT INSERT"):
        loader.execute(ADVANCE, ("2026-03-02",))


def test_who_loads_is_said_by_the_owner_of_the_source_or_of_the_catalog(house: House) -> None:
    mallory, keeper = house.session("mallory", "INSERT ON orders"), house.session("keeper")
    for call in ("grant_loader('public.orders', 'mallory')", "revoke_loader('public.orders', 'mallory')"):
        with refused("42501", "etl, which owns it"):
            mallory.execute(f"SELECT pgtrickle.{call}".encode())
    keeper.execute("CREATE TABLE keeper.items (id integer)")
    keeper.execute("SELECT pgtrickle.grant_loader('keeper.items', 'mallory')")
    mallory.execute("SELECT pgtrickle.advance_watermark((SELECT oid FROM pg_class WHERE relname = 'items'), now())")
    with refused("22023", "role that exists"):
        keeper.execute("SELECT pgtrickle.grant_loader('keeper.items', 'nobody at all')")


def test_a_grant_to_a_group_is_one_to_its_members_and_ends_with_the_role(house: House) -> None:
    house.db.execute("CREATE ROLE movers")
    house.etl.execute("SELECT pgtrickle.grant_loader('orders', 'movers')")
    mover = house.session("mover")
    house.db.execute("GRANT movers TO mover")
    mover.execute(ADVANCE, ("2026-03-01",))
    house.db.execute("DROP ROLE movers")
    with refused("42501", "GRANT INSERT"):
        mover.execute(ADVANCE, ("2026-03-02",))
    house.etl.execute("SELECT pgtrickle.trim_history('1 day')")
    assert house.db.value("SELECT count(*) FROM pgtrickle.pgt_loaders") == 0


@pytest.mark.parametrize(
    "query",
    [
        "SELECT 1 AS a); CREATE TABLE public.planted (); (SELECT 2",
        "SELECT 1 AS a); DROP TABLE public.orders; (SELECT 2 AS a;",
        "SELECT 1 AS a) /* ; */ ; SELECT pg_catalog.set_config('x.y', 'z', false); (SELECT ';' AS b",
    ],
)
def test_a_query_text_holds_one_statement(house: House, query: str) -> None:
    with refused("0A000", "one SELECT", "query_refused", "more than one statement"):
        house.etl.execute("SELECT pgtrickle.create_stream_table('s', %s)", (query,))
    assert house.db.value("SELECT to_regclass('public.planted') IS NULL AND to_regclass('public.orders') IS NOT NULL")
    house.etl.execute(
        "SELECT pgtrickle.create_stream_table('s', %s)", ("SELECT ';' AS a, id FROM orders; -- the end;",)
    )
    with refused("0A000", "one SELECT"):
        house.etl.execute("SELECT pgtrickle.alter_stream_table('s', query => %s)", (query,))
