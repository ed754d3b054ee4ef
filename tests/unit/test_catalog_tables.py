"""The catalog as Python spells it is the catalog as it is installed."""

from __future__ import annotations

import re
from pathlib import Path

from sqlalchemy.dialects import postgresql

import pytrickle
from pytrickle.catalog import source_tables, tables
from tests.conftest import Database
from tests.repeats import on_both_servers

INSTALLED = """
    SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), NOT a.attnotnull
    FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
    WHERE c.relnamespace = 'pgtrickle'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
    ORDER BY c.relname, a.attnum
"""


@on_both_servers
def test_python_spells_every_table_column_type_and_nullability_as_installed(every_db: Database) -> None:
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    spelled = [
        (table.name, column.name, column.type.compile(dialect=dialect).lower(), bool(column.nullable))
        for table in sorted(source_tables.catalog.tables.values(), key=lambda table: table.name)
        for column in table.columns
    ]
    assert spelled == every_db.execute(INSTALLED)


def test_only_the_modules_that_its_docstring_names_spell_catalog_tables_as_text() -> None:
    package = Path(pytrickle.__file__).parent
    spelling = {
        ".".join(path.relative_to(package).with_suffix("").parts)
        for path in package.rglob("*.py")
        if re.search(r"\bpgtrickle\.pgt_\w+\b(?!\()", path.read_text(encoding="utf-8"))
    }
    assert spelling == set(re.findall(r"``([\w.]+)``", tables.__doc__ or ""))
