"""Every command and example of the documents is run, in document order, and what they claim to print is compared."""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from click.testing import CliRunner
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from sqlglot import tokenize
from sqlglot.tokens import TokenType

from tests.commands import COMMAND
from tests.conftest import Database
from tests.documents import ROOT, RUNNABLE, Block, blocks, documents
from tests.repeats import first

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHECK = doctest.OutputChecker().check_output


def runnable(path: Path) -> list[Block]:
    return [block for block in blocks(path) if block.language in RUNNABLE and not block.excuse]


EXAMPLES = {path: runnable(path) for path in documents() if runnable(path)}
# What these show of streams takes Spark as long as all other documents take together.
STREAMING = [path for path in EXAMPLES if path.name in {"load-from-spark.md", "read-from-spark.md"}]


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


class Reader:
    """Somebody who works through a document: one SQL session, one Python session, one shell."""

    def __init__(self, db: Database) -> None:
        self._session = db.connect(options="-c TimeZone=UTC")
        self._database = self._session.info.dbname
        self._names: dict[str, Any] = {"__name__": "__main__"}

    def run(self, block: Block) -> str:
        """Run a block and return what it prints."""
        return {"sql": self._sql, "python": self._python, "console": self._console}[block.language](block.text)

    def _sql(self, text: str) -> str:
        printed = ""
        for statement in statements(text):
            # In the documents the database is called shop.
            statement = statement.replace("DATABASE shop", f"DATABASE {self._database}")
            try:
                cursor = self._session.execute(statement.encode(), prepare=False)
            except psycopg.Error as error:
                return told(error.diag)
            printed = drawn(cursor) if cursor.description else ""
        return printed

    def _python(self, text: str) -> str:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(text, "example", "exec"), self._names)
        return printed.getvalue()

    @staticmethod
    def _console(text: str) -> str:
        return "".join(f"{line}\n{shell(line[2:])}" for line in commands(text))


def told(error: psycopg.errors.Diagnostic) -> str:
    """Write an error as psql does, but for its place in the text."""
    lines = {"ERROR": error.message_primary, "DETAIL": error.message_detail, "HINT": error.message_hint}
    return "".join(f"{name}:  {line}\n" for name, line in lines.items() if line)


def statements(text: str) -> Iterator[str]:
    """Split SQL as psql does, at semicolons outside of quotes and comments."""
    start = 0
    for token in tokenize(text, read="postgres"):
        if token.token_type is TokenType.SEMICOLON:
            yield text[start : token.start]
            start = token.end + 1
    if text[start:].strip():
        yield text[start:]


def drawn(cursor: psycopg.Cursor[Any]) -> str:
    """Draw a result as psql does, but for alignment, which is not compared."""
    result, columns = cursor.pgresult, range(len(cursor.description or ()))
    assert result is not None
    rows = [" | ".join((result.get_value(row, i) or b"").decode() for i in columns) for row in range(result.ntuples)]
    header = " | ".join(column.name for column in cursor.description or ())
    return "\n".join([header, *rows, f"({len(rows)} row{'' if len(rows) == 1 else 's'})"]) + "\n"


def commands(text: str) -> list[str]:
    """Return the lines with a prompt, continuation lines joined."""
    return [line for line in text.replace("\\\n", "").splitlines() if line.startswith("$ ")]


def shell(command: str) -> str:
    program, *arguments = shlex.split(command)
    if program == "pytrickle":
        return CliRunner().invoke(COMMAND, arguments, prog_name="pytrickle", catch_exceptions=False).output
    assert program == "python", command
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True, cwd=ROOT).stdout


def comparable(text: str) -> str:
    """Drop what is alignment only: the rule below psql's header, and doubled spaces."""
    lines = [line for line in text.splitlines() if line.strip("-+ ")]
    return "\n".join(" ".join(line.split()) for line in lines) + "\n"


@contextlib.contextmanager
def reader(db: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    """Let libpq's environment point to a database; at the end drop the roles that were made."""
    monkeypatch.delenv("PYTRICKLE_DSN", raising=False)
    for key, value in conninfo_to_dict(db.dsn).items():
        monkeypatch.setenv({"dbname": "PGDATABASE"}.get(key, f"PG{key.upper()}"), str(value))
    before = roles(db)
    try:
        yield Reader(db)
    finally:
        drop_roles(db, roles(db) - before)


def roles(db: Database) -> set[str]:
    return {role for (role,) in db.execute("SELECT rolname FROM pg_roles")}


def drop_roles(db: Database, added: set[str]) -> None:
    for role in map(sql.Identifier, sorted(added)):
        with db.connect() as connection:
            connection.execute(sql.SQL("DROP OWNED BY {} CASCADE").format(role))
            connection.execute(sql.SQL("DROP ROLE {}").format(role))


@pytest.mark.parametrize(
    "path", [*first(0, STREAMING), *(path for path in EXAMPLES if path not in STREAMING)], ids=name
)
def test_examples_do_what_the_document_says(
    path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    installs = any("pytrickle install" in block.text or "pytrickle.install(" in block.text for block in EXAMPLES[path])
    db = request.getfixturevalue("empty_db" if installs else "db")
    with reader(db, monkeypatch) as someone:
        for block in EXAMPLES[path]:
            printed, wanted = someone.run(block), expected(block)
            where = f"{name(path)}:{block.line} printed\n{printed}"
            if wanted is None:
                assert not printed.startswith("ERROR:") and "\nerror: " not in printed, where
            else:
                assert CHECK(comparable(wanted), comparable(printed), doctest.ELLIPSIS), where


def expected(block: Block) -> str | None:
    """Return what a block must print, or None where the document does not say."""
    if block.language != "console":
        return block.output
    text = block.text.replace("\\\n", "")
    return text if commands(block.text) != text.splitlines() else None


def test_the_reference_of_sql_is_up_to_date(db: Database) -> None:
    written = subprocess.run(
        [sys.executable, str(ROOT / "scripts/sql_reference.py"), db.dsn],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={**os.environ, "PGTZ": "UTC"},
    ).stdout
    assert (ROOT / "docs/reference/sql.md").read_text(encoding="utf-8") == written, "run scripts/sql_reference.py"
