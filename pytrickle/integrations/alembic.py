"""Alembic: operations for stream tables and watermark groups, and a filter for autogenerate.

Import it in `env.py`; then `op.create_stream_table` and the others are there in every migration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import sqlalchemy as sa
from alembic.operations import MigrateOperation, Operations


class _Call(MigrateOperation):
    """A call of one of the catalog's functions, with its arguments by name."""

    def __init__(self, function: str, arguments: dict[str, Any]) -> None:
        self.function = function
        self.arguments = arguments

    def to_diff_tuple(self) -> tuple[Any, ...]:
        return (self.function, self.arguments)


@Operations.register_operation("create_stream_table")
class CreateStreamTable(_Call):
    """`op.create_stream_table(name, query, **options)`; the options are those of the SQL function, by their names."""

    @classmethod
    def create_stream_table(cls, operations: Operations, name: str, query: str, **options: Any) -> None:
        """Create a stream table; the next refresh fills it."""
        operations.invoke(cls("create_stream_table", {"name": name, "query": query, **options}))

    def reverse(self) -> MigrateOperation:
        """Return what takes the stream table away again."""
        return DropStreamTable("drop_stream_table", {"name": self.arguments["name"]})


@Operations.register_operation("alter_stream_table")
class AlterStreamTable(_Call):
    """`op.alter_stream_table(name, **options)`."""

    @classmethod
    def alter_stream_table(cls, operations: Operations, name: str, **options: Any) -> None:
        """Change a stream table's options, or its query to another one with the same columns."""
        operations.invoke(cls("alter_stream_table", {"name": name, **options}))


@Operations.register_operation("drop_stream_table")
class DropStreamTable(_Call):
    """`op.drop_stream_table(name, cascade=False)`."""

    @classmethod
    def drop_stream_table(cls, operations: Operations, name: str, cascade: bool = False) -> None:
        """Drop a stream table; with `cascade` also what reads it."""
        operations.invoke(cls("drop_stream_table", {"name": name, "cascade": cascade}))


@Operations.register_operation("create_watermark_group")
class CreateWatermarkGroup(_Call):
    """`op.create_watermark_group(name, sources, **options)`."""

    @classmethod
    def create_watermark_group(cls, operations: Operations, name: str, sources: Sequence[str], **options: Any) -> None:
        """Create a watermark group over sources, with a `tolerance` if one is given."""
        operations.invoke(cls("create_watermark_group", {"group_name": name, "sources": list(sources), **options}))

    def reverse(self) -> MigrateOperation:
        """Return what takes the group away again."""
        return DropWatermarkGroup("drop_watermark_group", {"group_name": self.arguments["group_name"]})


@Operations.register_operation("drop_watermark_group")
class DropWatermarkGroup(_Call):
    """`op.drop_watermark_group(name)`."""

    @classmethod
    def drop_watermark_group(cls, operations: Operations, name: str) -> None:
        """Drop a watermark group."""
        operations.invoke(cls("drop_watermark_group", {"group_name": name}))


@Operations.implementation_for(_Call)
def _call(operations: Operations, operation: _Call) -> None:
    given = {name: value for name, value in operation.arguments.items() if value is not None}
    if unfit := [name for name in given if not name.isidentifier()]:
        raise TypeError(f"{operation.function} has no option {unfit[0]!r}")
    arguments = ", ".join(f"{name} => {_value(name, value)}" for name, value in given.items())
    values = {name: _bound(value) for name, value in given.items()}
    operations.execute(sa.text(f"SELECT pgtrickle.{operation.function}({arguments})").bindparams(**values))


def _value(name: str, value: object) -> str:
    # An array goes as its text, so that every driver, and a script that is written offline, says it alike.
    return f"CAST(:{name} AS text[])" if isinstance(value, list) else f":{name}"


def _bound(value: object) -> object:
    if not isinstance(value, list):
        return value
    quoted = ('"' + str(item).replace("\\", "\\\\").replace('"', '\\"') + '"' for item in value)
    return "{" + ",".join(quoted) + "}"


def include_name(connection: sa.Connection) -> Callable[..., bool]:
    """Return a filter for `context.configure(include_name=...)`: autogenerate leaves alone what is pytrickle's.

    That is its schemas, and the stream tables, which no model declares: autogenerate would drop them. The database is
    asked by autogenerate alone: a connection that is in a transaction before Alembic begins one is not committed by it.
    """

    @cache
    def stream_tables() -> frozenset[tuple[str, str]]:
        if connection.scalar(sa.text("SELECT to_regclass('pgtrickle.stream_tables_info') IS NULL")):
            return frozenset()
        known = sa.text("SELECT pgt_schema, pgt_name FROM pgtrickle.stream_tables_info")
        return frozenset((schema, name) for schema, name in connection.execute(known))

    def included(name: str | None, type_: str, parents: Mapping[str, str | None]) -> bool:
        if type_ == "schema":
            return not (name or "").startswith("pgtrickle")
        schema = parents.get("schema_name") or connection.dialect.default_schema_name
        return type_ != "table" or (schema, name) not in stream_tables()

    return included
