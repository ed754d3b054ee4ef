"""Virtual generated columns are computed by whoever reads them: no writer's settings or values come between."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

import pytrickle
from tests.conftest import Database
from tests.repeats import only_on_18
from tests.sql.checks import buffer_of

# Every function in it counts as immutable, though most go by settings. The last column raises an error for some rows.
TABLE = r"""
CREATE TABLE s (
    id integer PRIMARY KEY, x float8, b bytea, a text[], at timestamptz,
    shown text GENERATED ALWAYS AS (x::text) VIRTUAL,
    bytes text GENERATED ALWAYS AS (b::text) VIRTUAL,
    has_none boolean GENERATED ALWAYS AS (a = '{k,NULL}'::text[]) VIRTUAL,
    late boolean GENERATED ALWAYS AS (at > '2026-01-01 00:00+00'::timestamptz) VIRTUAL,
    slashed text GENERATED ALWAYS AS ('\d' || id) VIRTUAL,
    share integer GENERATED ALWAYS AS (100 / id) VIRTUAL
)
"""
QUERY = "SELECT id, shown, bytes, has_none, late, slashed FROM s"
SETTINGS = """
SET extra_float_digits = 0;
SET bytea_output = escape;
SET array_nulls = off;
SET TimeZone = 'Asia/Tokyo';
SET DateStyle = 'German';
SET IntervalStyle = 'iso_8601';
SET standard_conforming_strings = off
"""
ROW = "0.1::float8 + 0.2, decode('ff', 'hex'), ARRAY['k', NULL], '2026-01-01 05:00+09'::timestamptz"


@dataclass(frozen=True, slots=True)
class Computed:
    """A table with virtual columns, and a client that keeps what reads them."""

    db: Database
    client: pytrickle.Client

    def create(self, session: Any, query: str = QUERY) -> None:
        """Create and load the stream table from a session."""
        session.execute("SELECT pgtrickle.create_stream_table('kept', %s)", [query])
        assert self.tick().action == "FULL"

    def tick(self) -> pytrickle.RefreshResult:
        """Refresh the one stream table."""
        (result,) = self.client.tick()
        return result

    def assert_taken_in(self, rows: int) -> None:
        """The changes are taken in as such, and the stream table shows so many rows, those of its query."""
        result = self.tick()
        assert result.action == "DIFFERENTIAL", result.reason
        assert self.db.value("SELECT count(*) FROM kept") == rows
        assert self.client.verify("kept").matches


@pytest.fixture
def computed(every_db: Database) -> Iterator[Computed]:
    every_db.execute(TABLE)
    with pytrickle.connect(every_db.dsn, engine="postgres") as client:
        yield Computed(every_db, client)


def odd_session(db: Database) -> Any:
    """Return a session with settings of its own."""
    connection = db.connect()
    for setting in SETTINGS.split(";"):
        connection.execute(setting)
    return connection


@only_on_18
@pytest.mark.parametrize("odd_creator", [False, True], ids=["", "and of the creator"])
def test_the_settings_of_a_writer_do_not_matter(computed: Computed, odd_creator: bool) -> None:
    db, odd = computed.db, odd_session(computed.db)
    creator = odd_session(db) if odd_creator else db.connect()
    creator.execute("SET array_nulls = on")  # what is created without has no delta rules
    computed.create(creator)
    for change, rows in (
        (f"INSERT INTO s SELECT n, {ROW} FROM generate_series(1, 3) AS n", 3),
        ("UPDATE s SET x = x + 0.1, at = at - interval '1 day' WHERE id > 1", 3),
        ("DELETE FROM s WHERE id = 3", 2),
        ("TRUNCATE s", 0),
    ):
        odd.execute(change)
        for session in (odd, db.connect()):
            assert session.execute("SELECT pgtrickle.capture_problem('s')").fetchone() == (None,)
        computed.assert_taken_in(rows)


@only_on_18
def test_a_value_that_cannot_be_computed_stops_who_reads_it_and_no_writer(computed: Computed) -> None:
    computed.create(computed.db.connect(), "SELECT id, share FROM s")
    computed.db.execute("INSERT INTO s (id) VALUES (0), (5)")
    failed = computed.tick()
    assert (failed.action, failed.error) == ("FAILED", "division by zero")
    computed.db.execute("DELETE FROM s WHERE id = 0")
    while computed.tick().action != "NO_DATA":
        pass
    assert computed.db.execute("TABLE kept") == [(5, 20)]


@only_on_18
def test_what_virtual_columns_are_computed_from_is_captured_as_long_as_they_are(computed: Computed) -> None:
    db = computed.db
    captured = "SELECT array(SELECT jsonb_object_keys(captured_columns) ORDER BY 1) FROM pgtrickle.pgt_change_tracking"
    computed.create(db.connect(), "SELECT late, slashed FROM s")
    assert db.value(captured) == ["at", "id", "late", "slashed"]
    db.execute("SELECT pgtrickle.create_stream_table('other', 'SELECT shown FROM s')")
    assert db.value(captured) == ["at", "id", "late", "shown", "slashed", "x"]
    db.execute("SELECT pgtrickle.drop_stream_table('kept')")
    assert db.value(captured) == ["shown", "x"]
    assert db.value("SELECT pgtrickle.capture_problem('s')") is None


@only_on_18
def test_a_virtual_column_that_was_captured_by_its_values_is_captured_anew(computed: Computed) -> None:
    db = computed.db
    computed.create(db.connect(), "SELECT id, late FROM s")
    buffer = buffer_of(db, "s")
    db.execute(f"ALTER TABLE {buffer} DROP COLUMN late, ADD COLUMN late boolean")
    assert computed.tick().action == "REINITIALIZE"
    db.execute(f"INSERT INTO s VALUES (1, {ROW})")
    computed.assert_taken_in(1)


@only_on_18
def test_a_table_that_computes_where_its_rows_are_is_not_captured(computed: Computed) -> None:
    db = computed.db
    db.execute("ALTER TABLE s ADD place oid GENERATED ALWAYS AS (tableoid) VIRTUAL")
    computed.create(db.connect(), "SELECT id, place FROM s")
    db.execute("INSERT INTO s (id) VALUES (1)")
    result = computed.tick()
    assert result.action == "FULL"
    assert db.execute("SELECT place FROM kept") == db.execute("SELECT tableoid FROM s")


@only_on_18
def test_children_that_compute_otherwise_are_read_as_their_parent_computes(computed: Computed) -> None:
    db = computed.db
    db.execute("CREATE TABLE kid (share integer GENERATED ALWAYS AS (-id) VIRTUAL) INHERITS (s)")
    computed.create(db.connect(), "SELECT id, share FROM s")
    db.execute("INSERT INTO kid (id) VALUES (4)")
    computed.assert_taken_in(1)
    assert db.execute("TABLE kept") == db.execute("SELECT id, share FROM s") == [(4, 25)]
    db.execute("TRUNCATE kid")
    computed.assert_taken_in(0)
