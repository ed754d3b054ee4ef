"""The demo's own PostgreSQL: it starts for anybody, takes its settings, and leaves nothing behind."""

from pathlib import Path

import psycopg
import pytest

from pytrickle.demo import server
from pytrickle.errors import ConfigError


@pytest.fixture
def homes(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The directories that servers are made in, as they are made."""
    made: list[Path] = []
    make = server.tempfile.mkdtemp

    def recorded(**options: str) -> str:
        made.append(Path(make(**options)))
        return str(made[-1])

    monkeypatch.setattr(server.tempfile, "mkdtemp", recorded)
    return made


def test_the_server_is_reachable_by_tcp_and_gone_afterwards() -> None:
    with server.postgres_server(settings={"work_mem": "5MB"}) as running:
        with psycopg.connect(running.dsn) as connection:
            row = connection.execute("SELECT inet_server_addr()::text, current_setting('work_mem')").fetchone()
        assert row == ("127.0.0.1/32", "5MB")
        assert running.home.exists()
    assert not running.home.exists()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(running.dsn)


def test_the_server_ends_with_a_block_that_fails() -> None:
    with pytest.raises(KeyboardInterrupt), server.postgres_server() as running:
        raise KeyboardInterrupt
    assert not running.home.exists()


def test_the_password_is_not_in_the_representation() -> None:
    assert "password" not in repr(server.Server("host=localhost password=secret", "18.4", Path("/tmp")))


def test_a_server_that_cannot_start_says_why_and_leaves_nothing(homes: list[Path]) -> None:
    with pytest.raises(ConfigError, match="no_such_setting"), server.postgres_server(settings={"no_such_setting": "1"}):
        raise AssertionError("the server started")
    assert [home for home in homes if not home.exists()] == homes != []


def test_without_the_extra_the_hint_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "find_spec", lambda name: None)
    with pytest.raises(ConfigError) as caught:
        server.embedded_binaries()
    assert "embedded" in (caught.value.hint or "")
