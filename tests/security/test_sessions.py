"""Every session that pytrickle opens finds names in PostgreSQL itself, and what a user names as the user does."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy
import typer.main
from typer.testing import CliRunner

from pytrickle.catalog import install as migrate
from pytrickle.cli import app
from pytrickle.streaming.sink.commit import commit_batch, drop_staged
from pytrickle.streaming.sink.stage import Part, Target, session
from pytrickle.watermarks import event_time
from pytrickle.watermarks.loading.load import load
from tests.conftest import Database
from tests.equivalence.local_engine import LocalEngine
from tests.security.traps import PATH, set_traps

NOON = "2026-03-02T12:00Z"
LATER = "2026-03-02T13:00Z"
DIRECTORY = "a directory"

# In the order of a life: each needs what those before it did.
BEFORE: tuple[tuple[str, ...], ...] = (
    ("install",),
    ("doctor",),
    ("create", "kept", "SELECT id, at FROM orders", "--watermark-gating", "gate", "--watermark-tolerance", "1 minute"),
    ("create", "passed", "SELECT id, at FROM kept", "--refresh-mode", "DIFFERENTIAL"),
    ("create", "counted", "SELECT id FROM lines"),
    ("alter", "kept", "--reset", "watermark_tolerance", "--watermark-retention", "1 hour", "--fuse-ceiling", "1000"),
    ("source", "event-time", "orders", "at", "--too-late", "1 minute"),
    ("source", "event-times"),
    ("group", "create", "pair", "orders", "lines", "--tolerance", "1 hour"),
    ("group", "create", "lost", "lines", "made_again", "gone"),
    ("group", "alter", "pair", "--tolerance", "2 hours", "--reset", "idle_after"),
    ("group", "list"),
    ("group", "status"),
    ("source", "limits", "orders", "--stale-after", "1 hour"),
    ("watermark", "advance", "orders", NOON),
    ("watermark", "advance", "lines", NOON),
    ("watermark", "list"),
    ("watermark", "history", "orders"),
    ("watermark", "metrics"),
    ("gate", "orders", "--reason", "for a while"),
    ("gates",),
    ("ungate", "orders"),
    ("source", "idle", "lines"),
    ("source", "checks", "orders", "--max-ahead", "2d", "--on-doubt", "error"),
    ("source", "status"),
    ("pause", "kept"),
    ("resume", "--all"),
    ("refresh", "kept"),
    ("tick",),
    ("run", "--once"),
    ("watermark", "advance", "orders", LATER),
)
AFTER: tuple[tuple[str, ...], ...] = (
    ("source", "adopt", "made_again"),
    ("source", "forget", "gone"),
    ("group", "drop", "lost"),
    ("tick",),
    ("refresh-group", "create", "together", "kept", "counted"),
    ("refresh-group", "list"),
    ("explain", "passed"),
    ("verify",),
    ("verify", "kept"),
    ("refresh-group", "drop", "together"),
    ("status",),
    ("history", "kept"),
    ("alerts",),
    ("freshness",),
    ("alert", "limits"),
    ("alert", "set", "--lag", "1h"),
    ("alert", "reset"),
    ("late-rows", "orders"),
    ("replay", "orders"),
    ("discard", "orders", "--id", "1"),
    ("wait", "kept", NOON),
    ("assert-fresh", "kept", "1 hour"),
    ("as-of", "kept", NOON),
    ("advise", "orders"),
    ("advise", "pair"),
    ("dag",),
    ("reset-fuse", "kept", "--reinitialize"),
    ("metrics",),
    ("export", "shop", DIRECTORY),
    ("apply", DIRECTORY),
    ("plan", DIRECTORY),
    ("feed", "create", "shipping", "orders"),
    ("feed", "advance", "shipping", "1"),
    ("feed", "list"),
    ("feed", "drop", "shipping"),
    ("source", "unset-event-time", "orders"),
    ("group", "drop", "pair"),
    ("watermark", "reset", "orders", NOON),
    ("watermark", "withdrawn"),
    ("watermark", "reset", "lines"),
    ("drop", "passed"),
    ("drop", "kept", "--cascade"),
    ("uninstall", "--yes"),
)
# What would go with the traps if anything of the catalog were made of one.
MADE = """
SELECT d.classid, count(*) FROM pg_depend AS d
WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid::regnamespace::text LIKE 'pgtrickle%'
    OR d.refobjid IN (SELECT oid FROM pg_class WHERE relnamespace::regnamespace::text LIKE 'pgtrickle%')
GROUP BY 1 ORDER BY 1
"""
# One row is on time, one comes too late. One source goes, another one goes and comes.
MEANWHILE = (
    f"INSERT INTO orders VALUES (2, '{LATER}', '{{}}'), (3, '2026-03-02T11:00Z', '{{}}')",
    "DROP TABLE made_again, gone",
    "CREATE TABLE made_again (id integer)",
)
# Nothing is wrong with these; they end by what they found.
REFUSED = {
    ("discard", "orders", "--id", "1"): "late row",
    ("reset-fuse", "kept", "--reinitialize"): "has not blown",
    ("advise", "orders"): "fewer than 20 say nothing",
    ("advise", "pair"): "fewer than 20 say nothing",
    ("feed", "advance", "shipping", "1"): "version",
}


@pytest.fixture
def trapped(every_db: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Database, str]]:
    """A database with traps, and the address of a superuser who meets them."""
    every_db.execute("CREATE TABLE orders (id integer PRIMARY KEY, at timestamptz, note json)")
    for name in ("lines", "made_again", "gone"):
        every_db.execute(f"CREATE TABLE {name} (id integer)")
    every_db.execute(f"INSERT INTO orders VALUES (1, '{NOON}')")
    dsn = set_traps(every_db)
    monkeypatch.setattr("pytrickle.client.client.LazyEngine", lambda settings, *_: LocalEngine(settings.dsn))
    yield every_db, dsn


def test_the_traps_would_catch_what_names_no_schema(trapped: tuple[Database, str]) -> None:
    with psycopg.connect(trapped[1], autocommit=True) as careless:
        for statement in (
            "SELECT to_regclass('orders')",
            "SELECT id FROM orders WHERE id = 1",
            "SELECT 'orders'::regclass",
            "SELECT count(*) FROM orders",
            "SELECT relname FROM pg_class",
            "SELECT x.n FROM unnest(ARRAY[1]) AS x (n)",
        ):
            with pytest.raises(psycopg.errors.RaiseException, match="trapped"):
                careless.execute(statement.encode())


def test_no_command_uses_what_others_put_into_the_path_of_who_gives_it(
    trapped: tuple[Database, str], tmp_path: Path
) -> None:
    for arguments in (*BEFORE, MEANWHILE, *AFTER):
        if arguments == MEANWHILE:
            for statement in arguments:
                trapped[0].execute(statement)
            continue
        given = [str(tmp_path / "definitions") if argument == DIRECTORY else argument for argument in arguments]
        result = CliRunner().invoke(app, ["--dsn", trapped[1], *given], prog_name="pytrickle")
        said = f"{arguments}: {result.output} {result.stderr} {result.exception!r}"
        assert "trapped" not in said
        assert result.exit_code in {0, 3} or REFUSED.get(arguments, "?") in said, said


def _names(command: Any, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if not hasattr(command, "commands"):
        yield before
        return
    for name, inner in command.commands.items():
        yield from _names(inner, (*before, name))


def test_every_command_is_given_above_but_the_demo_and_the_import() -> None:
    """The import reads the catalog of another program, the demo has a server of its own, what is of dbt has none.

    The live screen needs a terminal, and asks what the status asks; the console is asked in its own tests.
    """
    given = {arguments[:length] for arguments in BEFORE + AFTER for length in (1, 2)}
    assert {name for name in _names(typer.main.get_command(app)) if name not in given} == {
        ("demo",),
        ("import-from-pg-trickle",),
        ("dbt", "init"),
        ("dbt", "path"),
        ("top",),
        ("console",),
    }


def test_a_load_on_a_connection_of_ones_own_leaves_the_path_and_uses_nothing_of_it(
    trapped: tuple[Database, str],
) -> None:
    db, dsn = trapped
    moment, generator = datetime(2026, 3, 2, 12, tzinfo=UTC), event_time(timedelta(0))
    with psycopg.connect(dsn, autocommit=True) as own:
        with load(own, "orders", generator=generator, event_time="at") as loading:
            list(loading.rows([{"at": moment}]))
        assert own.execute("SHOW search_path").fetchone() == (PATH,)
    pool = sqlalchemy.create_engine(db.dsn.replace("postgresql", "postgresql+psycopg", 1))
    with pool.connect() as borrowed:
        borrowed.exec_driver_sql(f"SET search_path = {PATH}")
        borrowed.commit()
        with load(borrowed, "orders", generator=generator, event_time="at") as loading:
            list(loading.rows([{"at": moment + timedelta(hours=1)}]))
        assert borrowed.exec_driver_sql("SHOW search_path").scalar_one().replace(" ", "") == PATH
    pool.dispose()
    assert db.value("SELECT watermark = %s FROM pgtrickle.watermarks()", moment + timedelta(hours=1))


def test_a_sink_finds_its_table_by_the_path_of_its_loader_and_nothing_else(trapped: tuple[Database, str]) -> None:
    db, dsn = trapped
    target = Target(dsn, "orders", "files", ("id", "at"))
    with session(dsn) as task:
        create = "SELECT pgtrickle.create_sink_staging('orders', 'files', ARRAY['id', 'at'])"
        ((staging,),) = task.execute(create).fetchall()
        with task.cursor().copy(f"COPY pgtrickle_sinks.{staging} FROM STDIN (FORMAT csv)".encode()) as rows:
            rows.write(f"5,{LATER}\n")
    assert commit_batch(target, 0, [Part(staging, 1, "a query")], event_time(timedelta(0)), "at")
    drop_staged(target)
    assert db.value("SELECT watermark = %s::timestamptz FROM pgtrickle.watermarks()", LATER)


def test_an_install_by_hand_uses_nothing_of_the_path_of_who_runs_it(trapped: tuple[Database, str]) -> None:
    db, dsn = trapped
    removed = (migrate._sql_directory() / "uninstall.sql").read_text()
    with psycopg.connect(dsn, autocommit=True) as psql:
        for script in (removed, migrate.render(roles=True)):
            psql.execute(f"BEGIN;\n{script}\nCOMMIT".encode(), prepare=False)
    migrate.verify(db.connect())
    made = db.execute(MADE)
    db.execute("DROP SCHEMA open CASCADE")
    assert db.execute(MADE) == made
