"""Creating a stream table: what its creator's session means by names and by settings is recorded."""

import pytest

from pytrickle.catalog.session_settings import PINNED, PINNED_WHERE_KEPT
from tests.conftest import Database
from tests.sql.checks import create


def test_names_and_the_query_mean_what_they_mean_to_the_caller(tables: Database) -> None:
    tables.execute("CREATE SCHEMA mine")
    tables.execute("CREATE TABLE mine.t (mine integer)")
    connection = tables.connect()
    connection.execute("SET search_path = mine, public")
    connection.execute(
        "SELECT pgtrickle.create_stream_table('\"My table\"', 'SELECT mine FROM t JOIN u ON "
        "u.a = mine -- ends in a comment')"
    )
    assert connection.execute("SHOW search_path").fetchone() == ("mine, public",)
    assert tables.execute("SELECT pgt_schema, pgt_name, defining_query FROM pgtrickle.pgt_stream_tables") == [
        ("mine", "My table", "SELECT mine FROM t JOIN u ON u.a = mine -- ends in a comment")
    ]
    assert tables.execute("SELECT source_name FROM pgtrickle.pgt_dependencies ORDER BY 1") == [
        ("mine.t",),
        ("public.u",),
    ]


def test_settings_that_change_the_meaning_are_recorded(tables: Database) -> None:
    connection = tables.connect()
    for setting in (
        "TimeZone = 'Asia/Tokyo'",
        "DateStyle = 'German, DMY'",
        "IntervalStyle = iso_8601",
        "extra_float_digits = 0",
        "lc_monetary = 'POSIX'",
        "lc_numeric = 'POSIX'",
        "lc_time = 'POSIX'",
        "array_nulls = off",
        "default_text_search_config = 'german'",
        "xmlbinary = hex",
        "xmloption = document",
        "timezone_abbreviations = 'India'",
    ):
        connection.execute(f"SET {setting}")
    connection.execute("SELECT pgtrickle.create_stream_table('s', 'SELECT a FROM t')")
    connection.execute("SELECT pgtrickle.create_stream_table('l', $$SELECT to_char(a, '999') AS a FROM t$$)")
    (plain,), (localized,) = tables.execute("SELECT session_settings FROM pgtrickle.pgt_stream_tables ORDER BY pgt_id")
    assert plain == {
        "TimeZone": "Asia/Tokyo",
        "DateStyle": "ISO, DMY",
        "IntervalStyle": "iso_8601",
        "array_nulls": "off",
        "xmlbinary": "hex",
        "xmloption": "document",
        "timezone_abbreviations": "India",
        "search_path": "pg_catalog, public",
    }
    assert localized == plain | {
        "lc_monetary": "POSIX",
        "lc_numeric": "POSIX",
        "lc_time": "POSIX",
        "default_text_search_config": "pg_catalog.german",
    }
    assert set(plain) == {*PINNED, "timezone_abbreviations", "search_path"}
    assert set(localized) == {*PINNED, *PINNED_WHERE_KEPT, "search_path"}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT b::money AS m FROM t",
        "SELECT to_tsvector(b) AS v FROM t",
        "SELECT to_date(b, 'DD TMMonth') AS d FROM t",
        "SELECT said(a) AS t FROM t",
    ],
)
def test_locales_are_recorded_with_a_query_that_may_go_by_them(tables: Database, query: str) -> None:
    tables.execute("CREATE FUNCTION said(a int) RETURNS text LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN a; END'")
    tables.execute("CREATE VIEW w AS SELECT b::text AS c FROM t")
    number = create(tables, query)
    above = create(tables, "SELECT * FROM w", name="above")
    recorded = "SELECT session_settings ? 'lc_time' FROM pgtrickle.pgt_stream_tables WHERE pgt_id = %s"
    assert (tables.value(recorded, number), tables.value(recorded, above)) == (True, False)

    tables.execute("CREATE OR REPLACE VIEW w AS SELECT to_char(a, '999') AS c FROM t")
    tables.execute("SELECT pgtrickle_private.adopt_definition(%s)", above)
    assert tables.value(recorded, above)
