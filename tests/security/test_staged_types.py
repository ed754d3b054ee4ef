"""What a loader stages may be of types of his own: nobody runs their functions with other rights than his."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.security.roles import House, Session, ask
from tests.waiting import wait_for

# PostgreSQL subtracts the bounds of ranges when it gathers statistics of them, as the owner of their table.
TYPES = (
    "CREATE TABLE caught (who name)",
    "GRANT USAGE ON SCHEMA mallory TO PUBLIC",
    "GRANT ALL ON caught TO PUBLIC",
    "CREATE FUNCTION minus(a int, b int) RETURNS float8 LANGUAGE sql IMMUTABLE AS 'SELECT (a - b)::float8'",
    "CREATE TYPE span AS RANGE (subtype = int4, subtype_diff = minus, multirange_type_name = spans)",
    "CREATE DOMAIN long_span AS span CHECK (upper(VALUE) > 0)",
    """CREATE OR REPLACE FUNCTION minus(a int, b int) RETURNS float8 LANGUAGE plpgsql AS $$
    BEGIN INSERT INTO mallory.caught SELECT current_user WHERE NOT EXISTS (SELECT FROM mallory.caught); RETURN a - b;
    END $$""",
    "CREATE TABLE mine (one span, many spans, several span[], long long_span)",
)
FILL = """
INSERT INTO {} SELECT span(n, n + n % 7 + 1), spans(span(n, n + n % 7 + 1)), ARRAY[span(n, n + 1)],
    span(n, n + n % 7 + 1)
FROM generate_series(1, 2000) AS n
"""
CAUGHT = "SELECT DISTINCT who FROM mallory.caught"


@pytest.fixture
def mallory(home: House) -> Session:
    """A stranger who stages rows of his own types into a table of his own."""
    session = home.session("mallory")
    session.execute("SET search_path = mallory")
    for statement in TYPES:
        session.execute(statement.encode())
    return session


@pytest.fixture
def often(home: House) -> Iterator[None]:
    """Have the server look once a second for tables that changed."""
    home.db.execute("ALTER SYSTEM SET autovacuum_naptime = '1s'")
    home.db.execute("SELECT pg_reload_conf()")
    yield
    home.db.execute("ALTER SYSTEM RESET autovacuum_naptime")
    home.db.execute("SELECT pg_reload_conf()")


def staged(mallory: Session) -> str:
    """Return the staging table that was made and filled."""
    columns = "ARRAY['one', 'many', 'several', 'long']"
    ((name,),) = ask(mallory, f"SELECT pgtrickle.create_sink_staging('mallory.mine', 's', {columns})")
    mallory.execute(FILL.format(f"pgtrickle_sinks.{name}").encode())
    return f"pgtrickle_sinks.{name}"


def test_nobody_who_analyzes_staged_rows_runs_functions_of_their_types(home: House, mallory: Session) -> None:
    name = staged(mallory)
    home.etl.execute(f"ANALYZE {name}".encode())
    home.db.execute("ANALYZE")
    home.db.execute(f"VACUUM ANALYZE {name}")
    assert home.db.execute(CAUGHT) == []
    mallory.execute(FILL.format("mine").encode())
    home.db.execute("ANALYZE mallory.mine")
    assert home.db.execute(CAUGHT) == [("mallory",)], "these types do run functions, as whoever owns the table"


@pytest.mark.usefixtures("often")
def test_autovacuum_runs_no_functions_of_the_types_of_staged_rows(home: House, mallory: Session) -> None:
    name = staged(mallory)
    done = "SELECT last_autoanalyze IS NOT NULL FROM pg_stat_all_tables WHERE relid = '{}'::regclass"
    wait_for(lambda: home.db.value(done.format(name)), "autovacuum to analyze the staging table")
    assert home.db.execute(CAUGHT) == []
