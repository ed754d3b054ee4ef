"""Migrations of Alembic create and drop stream tables, online and as a script, and autogenerate leaves them alone."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.operations import Operations

from pytrickle.catalog import install as migrate
from pytrickle.integrations.alembic import CreateStreamTable, CreateWatermarkGroup, include_name
from tests.conftest import Database
from tests.documents import ROOT, blocks

QUERY = "SELECT customer, count(*) AS n FROM orders WHERE note <> 'it''s 10% :off' GROUP BY customer"
MODELS = sa.MetaData()
sa.Table(
    "orders",
    MODELS,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("customer", sa.Integer),
    sa.Column("note", sa.Text),
)


def reached(db: Database) -> sa.Engine:
    return sa.create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(db.dsn), poolclass=sa.NullPool)


@pytest.fixture
def connection(db: Database) -> Iterator[sa.Connection]:
    engine = reached(db)
    with engine.connect() as connection:
        MODELS.create_all(connection)
        connection.commit()
        yield connection
    engine.dispose()


def migration(context: MigrationContext) -> dict[str, Any]:
    """Return the functions of the document's migration, and the operations that they use."""
    (text,) = (block.text for block in blocks(ROOT / "docs/howto/alembic.md") if "def upgrade" in block.text)
    names: dict[str, Any] = {"op": Operations(context)}
    exec(compile(text.replace("from alembic import op\n", ""), "migration", "exec"), names)
    return names


# What env.py has around the lines of the document.
BEFORE = """
import psycopg, sqlalchemy
from alembic import context
target_metadata = None
connectable = sqlalchemy.create_engine(
    "postgresql+psycopg://", creator=lambda: psycopg.connect({!r}), poolclass=sqlalchemy.NullPool)
"""
BEYOND = """
    with context.begin_transaction():
        context.run_migrations()
"""


def project(dsn: str, home: Path, migration: str) -> Config:
    """Write a project of Alembic with the document's env.py and one migration; return its settings."""
    (told,) = (block.text for block in blocks(ROOT / "docs/howto/alembic.md") if "include_name" in block.text)
    (home / "versions").mkdir()
    (home / "env.py").write_text(BEFORE.format(dsn) + told + BEYOND)
    (home / "versions" / "first.py").write_text(f"revision = 'first'\ndown_revision = None\n{migration}")
    config = Config()
    config.set_main_option("script_location", str(home))
    return config


def test_an_upgrade_with_the_filter_of_the_document_is_committed(
    db: Database, connection: sa.Connection, tmp_path: Path
) -> None:
    (text,) = (block.text for block in blocks(ROOT / "docs/howto/alembic.md") if "def upgrade" in block.text)
    config = project(db.dsn, tmp_path, text)
    command.upgrade(config, "head")
    assert db.execute("SELECT name FROM pgtrickle.pgt_status()") == [("public.per_customer",)]
    assert db.execute("TABLE alembic_version") == [("first",)]
    command.downgrade(config, "base")
    assert not db.execute("SELECT name FROM pgtrickle.pgt_status()")


def test_a_database_without_our_catalog_is_migrated_too(db: Database, tmp_path: Path) -> None:
    migrate.uninstall(db.connect())
    later = "from alembic import op\ndef upgrade(): op.execute('CREATE TABLE later (id int)')"
    command.upgrade(project(db.dsn, tmp_path, later), "head")
    with reached(db).connect() as connection:
        filtered = MigrationContext.configure(connection, opts={"include_name": include_name(connection)})
        assert [change[1].name for change in compare_metadata(filtered, sa.MetaData())] == ["later"]


def test_a_migration_creates_and_drops_what_is_ours(db: Database, connection: sa.Connection) -> None:
    context = MigrationContext.configure(connection)
    with context.begin_transaction():
        migration(context)["upgrade"]()
    assert db.execute("SELECT name, schedule, watermark_gating FROM pgtrickle.pgt_status()") == [
        ("public.per_customer", "20s", "hold_back")
    ]
    assert db.execute("SELECT sources, tolerance::text FROM pgtrickle.watermark_groups()") == [
        (["public.orders"], "00:05:00")
    ]
    with context.begin_transaction():
        migration(context)["downgrade"]()
    assert not db.execute("SELECT FROM pgtrickle.pgt_status()")
    assert not db.execute("SELECT FROM pgtrickle.watermark_groups()")


def test_a_migration_is_written_as_a_script(db: Database, connection: sa.Connection) -> None:
    written = io.StringIO()
    options = {"as_sql": True, "output_buffer": written, "literal_binds": True}
    offline = MigrationContext.configure(dialect_name="postgresql", dialect_opts={"paramstyle": "named"}, opts=options)
    Operations(offline).create_stream_table("quoted", QUERY)  # type: ignore[attr-defined]
    migration(offline)["upgrade"]()
    with db.connect() as plain:
        plain.execute(written.getvalue().encode())
    assert db.execute("SELECT pgt_name FROM pgtrickle.pgt_stream_tables ORDER BY 1") == [("per_customer",), ("quoted",)]
    assert db.value("SELECT defining_query FROM pgtrickle.pgt_stream_tables WHERE pgt_name = 'quoted'") == QUERY


def test_autogenerate_leaves_alone_what_is_ours(db: Database, connection: sa.Connection) -> None:
    context = MigrationContext.configure(connection)
    with context.begin_transaction():
        migration(context)["upgrade"]()
    assert compare_metadata(context, MODELS), "without the filter the stream table would be dropped"
    for schemas in (False, True):
        options = {"include_name": include_name(connection), "include_schemas": schemas}
        filtered = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(filtered, MODELS) == []
    db.execute("CREATE TABLE others (id int)")
    assert [change[0] for change in compare_metadata(filtered, MODELS)] == ["remove_table"]


def test_what_an_operation_made_is_reversed() -> None:
    made = CreateStreamTable("create_stream_table", {"name": "a", "query": "SELECT 1"})
    assert made.reverse().to_diff_tuple() == ("drop_stream_table", {"name": "a"})
    group = CreateWatermarkGroup("create_watermark_group", {"group_name": "g", "sources": ["a"]})
    assert group.reverse().to_diff_tuple() == ("drop_watermark_group", {"group_name": "g"})


def test_an_option_that_is_no_name_is_refused(connection: sa.Connection) -> None:
    context = MigrationContext.configure(connection)
    with pytest.raises(TypeError, match="has no option"):
        Operations(context).create_stream_table("a", "SELECT 1", **{"x => 1); DROP": 1})  # type: ignore[attr-defined]
