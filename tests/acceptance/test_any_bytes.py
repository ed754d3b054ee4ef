"""Databases in the encoding SQL_ASCII, whose texts may have bytes that are no UTF-8."""

from collections.abc import Callable, Iterator

import psycopg
import pytest

import pytrickle
from pytrickle.errors import CatalogError
from tests.commands import commands
from tests.equivalence.local_engine import local_client
from tests.servers import OLDEST, Server

Loader = psycopg.Connection[tuple[object, ...]]


@pytest.fixture
def loader(servers: Callable[[int], Server]) -> Iterator[Loader]:
    """A session that writes bytes as they are, in a database with stream tables over two sources."""
    server = servers(OLDEST)
    with psycopg.connect(server.dsn(), autocommit=True) as administrator:
        administrator.execute("CREATE DATABASE bytewise ENCODING 'SQL_ASCII' TEMPLATE template0 LOCALE 'C'")
        pytrickle.install(server.dsn("bytewise"))
        with psycopg.connect(server.dsn("bytewise"), autocommit=True, client_encoding="sql_ascii") as connection:
            for number in (1, 2):
                connection.execute(f"CREATE TABLE items{number} AS SELECT 1 AS id".encode())
                create = f"SELECT pgtrickle.create_stream_table('st{number}', 'SELECT id FROM items{number}')"
                connection.execute(create.encode())
            yield connection
        administrator.execute("DROP DATABASE bytewise WITH (FORCE)")


def dsn_of(loader: Loader) -> str:
    info = loader.info
    return f"postgresql://{info.user}@{info.host}:{info.port}/{info.dbname}"


@pytest.mark.parametrize(
    ("name", "query"),
    [
        (b"caf\xe9", b"SELECT id FROM items1"),
        (b"new", b"SELECT id, 'caf\xe9'::text AS name FROM items1"),
        (b"new", b'SELECT id AS "caf\xe9" FROM items1'),
        (b"new", b"SELECT id FROM items1 -- caf\xe9"),
        (b"new", b'SELECT id FROM "caf\xe9"'),
        (b"new", b"SELECT id FROM odd"),
    ],
)
def test_what_is_no_utf8_is_refused_at_creation(loader: Loader, name: bytes, query: bytes) -> None:
    loader.execute(b'CREATE TABLE "caf\xe9" (id int)')
    loader.execute(b'CREATE TABLE odd (id int, "caf\xe9" int)')
    with pytest.raises(psycopg.Error, match=r"has bytes that are no UTF-8: .*caf") as refused:
        loader.execute(b"SELECT pgtrickle.create_stream_table($n$" + name + b"$n$, $q$" + query + b"$q$)")
    assert (refused.value.sqlstate, refused.value.diag.constraint_name) == ("0A000", "query_refused")
    assert "rename what is called so" in str(refused.value.diag.message_hint)
    assert loader.execute("SELECT count(*) FROM pgtrickle.pgt_status()").fetchall() == [(2,)]


def test_text_in_utf8_is_as_good_as_elsewhere(loader: Loader) -> None:
    query = "SELECT id, '10 €'::text AS p FROM items1"
    loader.execute(f"SELECT pgtrickle.create_stream_table('café', $${query}$$)".encode())
    with local_client(dsn_of(loader)) as (client, _):
        assert {result.error for result in client.tick()} == {None}
        assert 'public."café"' in {row.stream_table for row in client.status().stream_tables}
        assert client.verify('public."café"').matches


@pytest.mark.parametrize(
    "statement", [b'ALTER TABLE st2 RENAME TO "caf\xe9"', b'ALTER TABLE items2 RENAME TO "caf\xe9"']
)
def test_one_table_that_was_renamed_harms_no_other(loader: Loader, statement: bytes) -> None:
    dsn = dsn_of(loader)
    with local_client(dsn) as (client, _):
        client.tick()
        loader.execute(statement)
        loader.execute("INSERT INTO items1 VALUES (2)")
        good, bad = client.tick()
        assert (good.stream_table, good.action, good.rows_inserted) == ("public.st1", "DIFFERENTIAL", 1)
        assert 'has bytes that are no UTF-8: public."caf\N{REPLACEMENT CHARACTER}"' in str(bad.error)
        assert "Rename it" in {str(row.remedy)[:9] for row in client.problems()}
        assert len(client.status().stream_tables) == 2
        assert "caf\N{REPLACEMENT CHARACTER}" in str(client.dag())
    for command in ("status", "dag", "history", "metrics", "freshness"):
        assert commands(dsn)(command).exit_code == 0, command


def test_what_was_renamed_back_is_refreshed_again(loader: Loader) -> None:
    with local_client(dsn_of(loader)) as (client, _):
        client.tick()
        loader.execute(b'ALTER TABLE items2 RENAME COLUMN id TO "caf\xe9"')
        with pytest.raises(CatalogError, match=r"a column of public\.items2 has bytes that are no UTF-8") as refused:
            client.refresh("st2")
        assert "Rename it" in str(refused.value.hint)
        loader.execute(b'ALTER TABLE items2 RENAME COLUMN "caf\xe9" TO id')
        loader.execute("INSERT INTO items2 VALUES (2)")
        assert client.refresh("st2").rows_inserted == 1


def test_notes_are_shown_and_end_no_session_that_listens(loader: Loader) -> None:
    dsn = dsn_of(loader)
    with psycopg.connect(dsn, autocommit=True, client_encoding="utf8") as listener:
        listener.execute("LISTEN pgtrickle_alert")
        loader.execute(b"SELECT pgtrickle.gate_source('items1', 'caf\xe9')")
        loader.execute(b"SELECT pgtrickle.alert('kind', 'caf\xe9', true, 'it is caf\xe9')")
        (notice,) = listener.notifies(timeout=10, stop_after=1)
        assert "it is caf\N{REPLACEMENT CHARACTER}" in notice.payload
    with local_client(dsn) as (client, _):
        held, filled = client.tick()
        assert "caf\N{REPLACEMENT CHARACTER}" in held.reason
        assert filled.action == "FULL"
        assert client.alerts()[0].sentence == "it is caf\N{REPLACEMENT CHARACTER}"


def test_only_what_is_no_utf8_is_replaced(loader: Loader) -> None:
    valid = "a\n\x7f é € 😀 \ud7ff\ue000\U0010ffff"
    broken = [b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\xff", b"\x80", b"\xf0\x8f\xbf\xbf"]
    readable = "SELECT pgtrickle_private.readable_text(%s)"
    with psycopg.connect(dsn_of(loader), client_encoding="utf8") as reader:
        assert reader.execute(readable, (valid,)).fetchall() == [(valid,)]
        for piece in broken:
            given = b"x" + piece + valid.encode()
            ((found,),) = reader.execute(
                "SELECT pgtrickle_private.readable_text(convert_from(%s, 'SQL_ASCII'))", (given,)
            ).fetchall()
            assert found == "x" + "\N{REPLACEMENT CHARACTER}" * len(piece) + valid
