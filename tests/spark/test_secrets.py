"""The password stands in no value, plan, error, log, page, file or process list that somebody else might read."""

from __future__ import annotations

import os
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from pytrickle.catalog.install import install
from tests.certificates import make_certificates
from tests.documents import ROOT
from tests.servers import OLDEST, Server

# Letters and digits stay as they are in URLs, HTML and JSON; what stands around them shows that quoting is no way out.
CORE = "Xq7HiddenFromAll9Z"
PASSWORD = f"a'b \"&<%{CORE}+/=é"
SECRETS_SESSION = Path(__file__).with_name("secrets_session.py")
SHOWN = (
    "first: [('public.per_id', 'FULL'), ('public.shares', 'FULL')]",
    "second: ('public.per_id', 'DIFFERENTIAL', None)",
    "second: ('public.shares', 'FAILED', ",
    "division by zero",
    "explained: ",
    "target: (JdbcTarget(",
    "JDBCRelation",
    "failed: ",
    "command line: ",
    "page SQL/ 200",
    "page environment/ 200",
    "page SQL/execution/?id=1 200",
    "planDescription=true 200",
    "stream: (1,",
)


def forms() -> dict[str, bytes]:
    """Return how the password may be written: as it is, wide, in hexadecimal digits, in base64 wherever it begins."""
    core = CORE.encode()
    shifted = {f"base64 {n}": b64encode(b"x" * n + core)[(4 if n else 0) : -4] for n in range(3)}
    return {"plain": core, "wide": CORE.encode("utf-16-le"), "hexadecimal": core.hex().encode(), **shifted}


def found(text: bytes) -> list[str]:
    """Return in which forms the password stands in a text, each with what surrounds it."""
    places = {name: text.lower().find(form.lower()) for name, form in forms().items()}
    return [f"{name}: {text[max(0, at - 300) : at + 60]!r}" for name, at in places.items() if at >= 0]


@pytest.fixture
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The DSN, with its password, of an empty database that takes no other way to log in."""
    certificates = make_certificates(tmp_path_factory.mktemp("certificates"))
    server = Server(OLDEST)
    try:
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            connection.execute(psycopg.sql.SQL("CREATE ROLE plain LOGIN PASSWORD {}").format(PASSWORD))
            connection.execute("GRANT pg_read_all_stats TO plain")
            connection.execute("CREATE DATABASE shop OWNER plain")
            port = str(connection.info.port)
        server.secure(certificates, ["host all plain 127.0.0.1/32 scram-sha-256"])
        dsn = make_conninfo(host="127.0.0.1", port=port, dbname="shop", user="plain", password=PASSWORD)
        with psycopg.connect(dsn, autocommit=True) as connection:
            install(connection)
        yield dsn
    finally:
        server.stop()


@pytest.mark.parametrize("around", ["", "p", "pa", "pas"])
def test_the_search_would_find_the_password(around: str) -> None:
    assert found(f"{around}{PASSWORD}".encode())
    assert found(b64encode(f"{around}{PASSWORD}".encode()))
    assert found(f"{around}{PASSWORD}".encode("utf-16-le"))
    assert found(f"{around}{PASSWORD}".encode().hex().encode())


@pytest.mark.long
def test_no_password_is_shown_by_anything_that_works_with_it(shop: str, tmp_path: Path) -> None:
    directory = tmp_path / "work"
    directory.mkdir()
    own = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, "PYTRICKLE_DSN": shop}
    command = [sys.executable, str(SECRETS_SESSION), str(directory)]
    done = subprocess.run(command, capture_output=True, timeout=400, cwd=ROOT, env=own)
    written = done.stdout
    assert done.returncode == 0, written[-3000:].decode()
    assert not [sign for sign in SHOWN if sign.encode() not in written]
    assert not found(written) + found(done.stderr)
    files = {file: file.read_bytes() for file in directory.rglob("*") if file.is_file()}
    kinds = {file.relative_to(directory).parts[0] for file in files}
    assert kinds >= {"events", "checkpoint 0", "checkpoint 1"}
    assert any(b"SparkListenerSQLExecutionStart" in text for text in files.values())
    assert not {str(file): found(text) for file, text in files.items() if found(text)}
