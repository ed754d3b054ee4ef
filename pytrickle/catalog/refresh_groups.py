"""Declared refresh groups, as a pass reads them."""

from dataclasses import dataclass

import psycopg
from sqlalchemy import BigInteger, cast, func, select
from sqlalchemy.dialects.postgresql import ARRAY, OID

from pytrickle.catalog.tables import refresh_groups as groups
from pytrickle.database.statement import statement

REFRESH_GROUPS = statement(
    select(
        func.pgtrickle_private.readable_text(groups.c.group_name),
        cast(cast(groups.c.members, ARRAY(OID)), ARRAY(BigInteger)),
        groups.c.isolation == "repeatable_read",
    ).order_by(groups.c.group_id)
)


@dataclass(frozen=True, slots=True)
class RefreshGroup:
    """A declared refresh group: its members, by relid, are due together and, where `atomic`, committed together."""

    name: str
    members: frozenset[int]
    atomic: bool


def ask_refresh_groups(connection: psycopg.Connection) -> psycopg.Cursor:
    """Ask for the refresh groups; see `refresh_groups`."""
    return connection.execute(REFRESH_GROUPS)


def refresh_groups(asked: psycopg.Cursor) -> tuple[RefreshGroup, ...]:
    """Return the refresh groups that were asked for."""
    return tuple(RefreshGroup(name, frozenset(members), atomic) for name, members, atomic in asked)
