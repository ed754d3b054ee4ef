"""Bad input and missing rights through Python: the right class, one sentence, a hint, and nothing changed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import pytrickle
from pytrickle import errors
from pytrickle.catalog import install as migrate
from pytrickle.errors import PytrickleError
from tests.acceptance.conftest import Shop, advance, assert_explained
from tests.conftest import Database

if TYPE_CHECKING:
    pass

NOON = datetime.fromisoformat("2026-01-01 12:00+00:00")


@pytest.fixture
def shop(local_shop: Shop) -> Shop:
    """What is refused never comes to an engine."""
    return local_shop


def catalog(db: Database) -> dict[str, list[Any]]:
    """Return all that a refused call could have left behind."""
    queries = {
        "tables": "SELECT pgt_id, pgt_name, status, watermark_gating, schedule FROM pgtrickle.pgt_stream_tables",
        "groups": "SELECT group_name, sources::text, tolerance FROM pgtrickle.pgt_watermark_groups",
        "watermarks": "SELECT source_name, watermark, cut::text FROM pgtrickle.pgt_watermarks",
        "history": "SELECT source_relid::text, watermark FROM pgtrickle.pgt_watermark_history",
        "captured": "SELECT source_name, captured_columns FROM pgtrickle.pgt_change_tracking",
        "relations": "SELECT oid::regclass::text FROM pg_class WHERE relkind IN ('r', 'v') AND oid > 16384",
        "triggers": "SELECT tgrelid::regclass::text, tgname::text FROM pg_trigger",
        "report": "SELECT * FROM report",
        "orders": "SELECT * FROM orders",
    }
    return {name: sorted(db.execute(query), key=repr) for name, query in queries.items()}


Call = Callable[[pytrickle.Client], object]


def create(query: str, name: str = "other", **options: Any) -> Call:
    return lambda pt: pt.create_stream_table(name, query, **options)


REFUSED: dict[str, tuple[type[PytrickleError], str | None, Call]] = {
    "unknown table in a query": (errors.InvalidArgument, "42P01", create("SELECT * FROM nowhere")),
    "unknown column in a query": (errors.QueryRefused, "42703", create("SELECT nothing FROM orders")),
    "syntax error": (errors.QueryRefused, "42601", create("SELEC id FROM orders")),
    "two statements": (errors.QueryRefused, "42601", create("SELECT 1; DROP TABLE orders")),
    "not a query": (errors.QueryRefused, "42601", create("DELETE FROM orders")),
    "volatile function": (errors.QueryRefused, "0A000", create("SELECT id, random() AS r FROM orders")),
    "system table": (
        errors.NotDifferentiable,
        "0A000",
        create("SELECT relname FROM pg_class", refresh_mode="DIFFERENTIAL"),
    ),
    "no delta rule": (
        errors.NotDifferentiable,
        None,
        create(
            "WITH RECURSIVE r AS (SELECT id FROM orders UNION SELECT id + 1 FROM r WHERE id < 3) SELECT id FROM r",
            refresh_mode="DIFFERENTIAL",
        ),
    ),
    "name that is taken": (errors.StreamTableExists, "42P07", create("SELECT id FROM orders", "report")),
    "unknown schema": (errors.InvalidArgument, "3F000", create("SELECT id FROM orders", "nowhere.other")),
    "bad mode": (errors.InvalidArgument, "22023", create("SELECT id FROM orders", watermark_gating="sometimes")),
    "bad refresh mode": (errors.InvalidArgument, "22023", create("SELECT id FROM orders", refresh_mode="OFTEN")),
    "bad schedule": (errors.InvalidArgument, "22023", create("SELECT id FROM orders", schedule="soon")),
    "hold_back over a table that shows more": (
        errors.InvalidArgument,
        "55000",
        create("SELECT id FROM report", watermark_gating="hold_back"),
    ),
    "alter an unknown table": (
        errors.UnknownStreamTable,
        "42704",
        lambda pt: pt.alter_stream_table("nothing", schedule="1 hour"),
    ),
    "drop an unknown table": (errors.UnknownStreamTable, "42704", lambda pt: pt.drop_stream_table("nothing")),
    "drop an ordinary table": (errors.UnknownStreamTable, "42704", lambda pt: pt.drop_stream_table("orders")),
    "refresh an unknown table": (errors.UnknownStreamTable, "42704", lambda pt: pt.refresh("nothing")),
    "explain an unknown table": (errors.UnknownStreamTable, "42704", lambda pt: pt.explain("nothing")),
    "history of an unknown table": (errors.UnknownStreamTable, "42704", lambda pt: pt.history("nothing")),
    "watermark of an unknown table": (
        errors.InvalidArgument,
        "42P01",
        lambda pt: pt.advance_watermark("nothing", NOON),
    ),
    "watermark of a stream table": (errors.PytrickleError, "42809", lambda pt: pt.advance_watermark("report", NOON)),
    "watermark moved back": (
        errors.WatermarkMovedBack,
        "22000",
        lambda pt: pt.advance_watermark("orders", NOON - timedelta(microseconds=1)),
    ),
    "no watermark": (errors.InvalidArgument, "22004", lambda pt: pt.advance_watermark("orders", None)),  # type: ignore[arg-type]
    "watermark before all time": (
        errors.InvalidArgument,
        "22023",
        lambda pt: pt.advance_watermark("orders", datetime.min.replace(tzinfo=NOON.tzinfo)),
    ),
    "negative tolerance": (
        errors.InvalidArgument,
        "22023",
        lambda pt: pt.create_watermark_group("other", ["orders"], timedelta(seconds=-1)),
    ),
    "altered to a negative tolerance": (
        errors.InvalidArgument,
        "22023",
        lambda pt: pt.alter_watermark_group("pipeline", tolerance="-1 second"),
    ),
    "duplicate group": (errors.InvalidArgument, "42710", lambda pt: pt.create_watermark_group("pipeline", ["orders"])),
    "unknown group": (
        errors.UnknownWatermarkGroup,
        "42704",
        lambda pt: pt.alter_watermark_group("nothing", ["orders"]),
    ),
    "dropped unknown group": (errors.UnknownWatermarkGroup, "42704", lambda pt: pt.drop_watermark_group("nothing")),
    "repeated source in a group": (
        errors.InvalidArgument,
        "22023",
        lambda pt: pt.create_watermark_group("other", ["orders", "public.orders"]),
    ),
    "unknown source in a group": (
        errors.InvalidArgument,
        "42P01",
        lambda pt: pt.create_watermark_group("other", ["orders", "nothing"]),
    ),
    "empty group": (errors.InvalidArgument, "22023", lambda pt: pt.create_watermark_group("other", [])),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_refused_in_plain_words_and_changes_nothing(steady: Shop, case: str) -> None:
    kind, sqlstate, call = REFUSED[case]
    before = catalog(steady.db)
    with pytest.raises(kind) as refused:
        call(steady.pt)
    assert refused.value.sqlstate == sqlstate
    assert_explained(refused.value)
    assert catalog(steady.db) == before
    assert steady.tick()["report"].action == "NO_DATA"


def test_temporary_table_is_refused(filled: Shop) -> None:
    filled.pt._connection().execute("CREATE TEMP TABLE passing (id int)")
    before = catalog(filled.db)
    with pytest.raises(errors.QueryRefused, match="passing") as refused:
        filled.pt.create_stream_table("other", "SELECT id FROM passing")
    assert refused.value.sqlstate == "0A000"
    assert_explained(refused.value)
    assert catalog(filled.db) == before


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO report VALUES (7, 7)",
        "UPDATE report SET amount = 7",
        "DELETE FROM report",
        "TRUNCATE report",
        "COPY report FROM STDIN",
        "MERGE INTO report USING orders ON false WHEN NOT MATCHED THEN INSERT VALUES (7, 7)",
    ],
)
def test_direct_writes_to_a_stream_table_are_refused(filled: Shop, statement: str) -> None:
    with filled.db.connect() as connection, pytest.raises(psycopg.Error) as refused:
        if statement.startswith("COPY"):
            with connection.cursor().copy(statement) as copy:
                copy.write("7\t7\n")
        else:
            connection.execute(statement)
    assert refused.value.sqlstate == "55000"
    assert refused.value.diag.message_hint == "Change the tables its defining query reads."
    assert filled.rows("report") == {(1, 10)}


def test_role_without_rights_is_told_which_grant_it_lacks(filled: Shop) -> None:
    stranger = filled.db.create_role("stranger")
    with pytrickle.connect(f"{filled.db.dsn}?user={stranger}") as pt:
        assert [row.stream_table for row in pt.stream_tables()] == ["public.report"]
        for call in (
            lambda: pt.create_stream_table("other", "SELECT id FROM orders"),
            lambda: pt.advance_watermark("orders", NOON),
            lambda: pt.drop_stream_table("report"),
            lambda: pt.refresh("report"),
            lambda: pt.tick(),
        ):
            with pytest.raises(errors.InsufficientPrivilege) as refused:
                call()
            assert refused.value.sqlstate == "42501"
            assert_explained(refused.value)
    assert filled.rows("report") == {(1, 10)}


def test_loader_needs_insert_on_its_table_and_nothing_on_the_catalog(filled: Shop) -> None:
    loader = filled.db.create_role("loader")
    filled.db.execute("GRANT INSERT ON orders TO loader")
    with psycopg.connect(filled.db.dsn, user=loader) as connection:
        connection.execute("INSERT INTO orders VALUES (2, 1, 20)")
        advance(connection, "orders", "12:05")
        with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.transaction():
            connection.execute("UPDATE pgtrickle.pgt_watermarks SET watermark = 'infinity'")
    assert filled.tick()["report"].rows_inserted == 1
    with pytrickle.connect(f"{filled.db.dsn}?user={loader}") as pt:
        pt.advance_watermark("orders", NOON + timedelta(minutes=10))
        assert [row.advanced_by for row in pt.watermarks()] == ["loader"]


def test_database_without_catalog_says_what_to_run(empty_db: Database) -> None:
    with pytest.raises(errors.NotInstalled) as refused, pytrickle.connect(empty_db.dsn):
        pass
    assert refused.value.hint == "Run pytrickle install against this database."


@pytest.mark.parametrize(
    ("change", "remedy"),
    [
        ("UPDATE pgtrickle.pgt_schema_version SET checksum = 'other' WHERE version = 0", "Run pytrickle install"),
        ("INSERT INTO pgtrickle.pgt_schema_version VALUES (9000, 'later', 'x')", "Upgrade the package"),
    ],
    ids=["older", "newer"],
)
def test_catalog_of_another_version_is_refused_with_the_remedy(db: Database, change: str, remedy: str) -> None:
    db.execute(change)
    with pytest.raises(errors.CatalogVersionMismatch, match="version") as refused, pytrickle.connect(db.dsn):
        pass
    assert remedy in (refused.value.hint or "")


def test_server_that_is_too_old_is_refused(empty_db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrate, "OLDEST_SERVER", empty_db.version + 1)
    with pytest.raises(errors.MigrationError, match="too old") as refused:
        pytrickle.install(empty_db.dsn)
    assert refused.value.sqlstate == "0A000"
    assert_explained(refused.value)
    assert empty_db.value("SELECT to_regnamespace('pgtrickle') IS NULL")
