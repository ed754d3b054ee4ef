"""The types of the catalog's columns that SQLAlchemy does not know, or knows under a longer name."""

from sqlalchemy import DateTime
from sqlalchemy.types import UserDefinedType


class PostgresType(UserDefinedType[str]):
    """A PostgreSQL type that SQLAlchemy does not know; its values travel as psycopg loads and dumps them."""

    cache_ok = True

    def __init__(self, name: str) -> None:
        self.name = name

    def get_col_spec(self, **_: object) -> str:
        return self.name


CUT = PostgresType("pgtrickle.cut")
PROGRESS = PostgresType("pgtrickle.progress")
XID8 = PostgresType("xid8")
NAME = PostgresType("name")
TIMESTAMP = DateTime(timezone=True)
