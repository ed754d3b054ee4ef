"""Whoever lacks a right is told in plain words what his role may not do, and what gives the right."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

import pytrickle
from pytrickle import Client
from pytrickle.errors import InsufficientPrivilege
from tests.commands import commands
from tests.security.roles import House, ask

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
QUERY = "SELECT 1 AS a"
CALLS: dict[str, Callable[[Client], object]] = {
    "create stream tables": lambda pt: pt.create_stream_table("made", QUERY),
    "alter stream tables": lambda pt: pt.alter_stream_table("totals", schedule="5m"),
    "drop stream tables": lambda pt: pt.drop_stream_table("totals"),
    "refresh stream tables": lambda pt: pt.refresh("totals"),
    "refresh stream tables, whole": lambda pt: pt.refresh("totals", full=True),
    "refresh stream tables, in a tick": lambda pt: pt.tick(),
    "refresh stream tables, until stopped": lambda pt: pt.run(),
    "explain or verify stream tables": lambda pt: pt.explain("totals"),
    "explain queries": lambda pt: pt.explain(query=QUERY),
    "explain or verify stream tables, one": lambda pt: pt.verify("totals"),
    "explain or verify stream tables, all": lambda pt: pt.verify(),
    "explain or verify stream tables, or read them as of": lambda pt: pt.as_of("totals", NOON),
    "create, alter or drop watermark groups": lambda pt: pt.create_watermark_group("alone", ["orders"]),
    "create, alter or drop watermark groups, here alter": lambda pt: pt.alter_watermark_group("a", on_stale="warn"),
    "create, alter or drop watermark groups, here drop": lambda pt: pt.drop_watermark_group("alone"),
    "create or drop refresh groups": lambda pt: pt.create_refresh_group("both", ["totals", "others"]),
    "create or drop refresh groups, here drop": lambda pt: pt.drop_refresh_group("both"),
    "create or drop feeds": lambda pt: pt.create_feed("reader", "totals"),
    "create or drop feeds, here drop": lambda pt: pt.drop_feed("reader"),
    "say where a source has its event times": lambda pt: pt.set_event_time("orders", "at"),
    "say where a source has its event times, no more": lambda pt: pt.unset_event_time("orders"),
    "set limits of sources": lambda pt: pt.set_source_limits("orders", stale_after=timedelta(hours=1)),
    "set limits of alerts": lambda pt: pt.set_alert_limits("orders", lag=timedelta(hours=1)),
    "set limits of alerts, no more": lambda pt: pt.reset_alert_limits("orders"),
    "have dropped sources forgotten": lambda pt: pt.forget_source("orders"),
    "use the tables of pytrickle's catalog, as export does": lambda pt: pt.export("shop", "out"),
}
OF_OPERATORS: dict[str, Callable[[Client], object]] = {
    "pause stream tables": lambda pt: pt.pause("totals"),
    "pause stream tables, all": lambda pt: pt.pause(),
    "resume stream tables": lambda pt: pt.resume("totals"),
    "resume stream tables, all": lambda pt: pt.resume(),
    "request refreshes": lambda pt: pt.request_refresh("totals"),
    "decide about fuses": lambda pt: pt.reset_fuse("totals"),
}
# The owner of the catalog is named by the doctor; a group exists where the install was told to make it.
OWNER = "Grant it membership in the owner of the catalog, whom pytrickle doctor names; docs/howto/permissions.md"
OPERATOR = "Grant it pytrickle_operator, a group that pytrickle install --roles creates, or membership in the owner"


@pytest.fixture
def reader(home: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """A client of a role that may read the stream table and its source, and nothing else."""
    monkeypatch.chdir(tmp_path)
    home.session("reader", "SELECT ON totals", "SELECT ON orders")
    with pytrickle.connect(make_conninfo(home.db.dsn, user="reader")) as client:
        yield client


def test_every_call_says_what_the_role_may_not_do_and_names_no_function(reader: Client) -> None:
    for calls, hint in ((CALLS, OWNER), (OF_OPERATORS, OPERATOR)):
        for deed, call in calls.items():
            with pytest.raises(InsufficientPrivilege) as denied:
                call(reader)
            sentence = f"The role of this connection may not {deed.partition(', ')[0]}"
            assert denied.value.message.startswith(sentence), (deed, denied.value.message)
            assert (denied.value.hint or "").startswith(hint), deed
            assert not re.search("function|[a-z]_[a-z]|permission denied", denied.value.message), deed
            assert denied.value.sqlstate == "42501"


def test_a_member_of_the_owner_may_do_all_that_the_hint_is_about(home: House, reader: Client) -> None:
    home.db.execute("GRANT steward TO reader")
    assert reader.refresh("totals").action == "FULL"
    assert reader.explain("totals").data["differential"]
    assert reader.verify("totals").matches and [result.matches for result in reader.verify()] == [True]
    assert reader.pause("totals") == 1


def test_the_command_line_says_of_all_stream_tables_at_once_that_the_role_may_not_verify(home: House) -> None:
    home.session("reader", "SELECT ON totals")
    result = commands(make_conninfo(home.db.dsn, user="reader"))("verify")
    assert result.exit_code == 1
    assert "error: The role of this connection may not explain or verify stream tables" in result.stderr


def test_whoever_may_not_even_look_is_told_which_schemas_to_grant(home: House) -> None:
    home.session("stranger")
    home.etl.execute("REVOKE USAGE ON SCHEMA pgtrickle, pgtrickle_private, pgtrickle_sinks FROM PUBLIC")
    address = make_conninfo(home.db.dsn, user="stranger")
    with pytest.raises(InsufficientPrivilege, match=r"^The role of this connection may not use pytrickle's catalog\."):
        pytrickle.connect(address)
    home.etl.execute("GRANT USAGE ON SCHEMA pgtrickle, pgtrickle_private, pgtrickle_sinks TO stranger")
    with pytrickle.connect(address) as client:
        assert [row.stream_table for row in client.stream_tables()] == ["public.totals"]


def test_a_right_on_an_object_of_the_user_is_told_in_the_words_of_postgresql(home: House) -> None:
    """Whatever a view or a function of a query lacks is no part of the catalog."""
    home.session("reader")
    with pytrickle.connect(make_conninfo(home.db.dsn, user="reader")) as client:
        with pytest.raises(InsufficientPrivilege, match=r"stream table public\.totals") as denied:
            client.assert_fresh("totals", timedelta(days=1))
        assert denied.value.hint == "GRANT SELECT ON public.totals TO reader."


def test_a_reader_reads_versions_of_what_he_may_read_but_not_as_of_a_watermark(home: House, reader: Client) -> None:
    """As the documentation says who may: a version is SQL with the rights of its caller, `as_of` needs the owner."""
    ask(home.etl, "SELECT pgtrickle.create_feed('dashboard', 'totals')")
    ask(home.etl, "INSERT INTO orders VALUES (1, 10, NULL)")
    with pytrickle.connect(home.refresher) as owner:
        owner.tick()
    session = home.session("reader")
    ((version,),) = ask(session, "SELECT max(version) FROM pgtrickle.versions('totals') WHERE readable")
    assert ask(session, "SELECT * FROM pgtrickle.as_of_version(NULL::totals, %s)", version) == [(1, 10)]
    home.db.execute("REVOKE SELECT ON totals FROM reader")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        ask(session, "SELECT * FROM pgtrickle.as_of_version(NULL::totals, %s)", version)
    with pytest.raises(InsufficientPrivilege, match="as of an earlier watermark"):
        reader.as_of("totals", NOON)
