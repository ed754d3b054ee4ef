"""Declared refresh groups, as a pass reads them."""

from dataclasses import dataclass

import psycopg
from sqlalchemy import BigInteger, cast, select
from sqlalchemy.dialects.postgresql import ARRAY, OID

from pytrickle.catalog.tables import refresh_groups as groups
from pytrickle.database.statement import statement

REFRESH_GROUPS = statement(
    select(
        groups.c.group_name,
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


def refresh_groups(connection: psycopg.Connection) -> tuple[RefreshGroup, ...]:
    """Read the refresh groups."""
    rows = connection.execute(REFRESH_GROUPS)
    return tuple(RefreshGroup(name, frozenset(members), atomic) for name, members, atomic in rows)
