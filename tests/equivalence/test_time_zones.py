"""Time zones and other settings: moments that are one in one zone and two in another; what a creator meant."""

import pytest

from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences

QUERIES = {
    "present": "SELECT f.id FROM f WHERE EXISTS (SELECT FROM g WHERE g.s = f.z)",
    "joined": "SELECT f.id, g.n FROM f LEFT JOIN g ON g.s = f.z",
    "counted": "SELECT f.id, (SELECT count(*) FROM g WHERE g.s = f.z) AS n FROM f",
}
# At 02:00 on 31 March 2024 clocks in Berlin went to 03:00: both of g's moments are 01:30 UTC.
CHANGES = (
    "INSERT INTO g VALUES ('2024-05-31 03:30', 5)",
    "DELETE FROM g WHERE n = 1",
    "INSERT INTO f VALUES (3, '2024-03-31 01:30Z')",
    "DELETE FROM g",
)


def test_moments_that_daylight_saving_makes_equal_match_once(db: Database) -> None:
    db.execute(
        "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET timezone = ''Europe/Berlin''', current_database()); END $$"
    )
    db.execute("CREATE TABLE f (id int PRIMARY KEY, z timestamptz)")
    db.execute("CREATE TABLE g (s timestamp, n int)")
    with local_client(db.dsn) as (client, _), db.connect() as connection:
        connection.autocommit = True
        connection.execute("INSERT INTO f VALUES (1, '2024-03-31 01:30Z'), (2, '2024-05-31 01:30Z')")
        connection.execute("INSERT INTO g VALUES ('2024-03-31 02:30', 1), ('2024-03-31 03:30', 2)")
        for name, query in QUERIES.items():
            client.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
        for change in ("SELECT", *CHANGES):
            connection.execute(change.encode())
            assert {result.error for result in client.tick()} == {None}
            for name, query in QUERIES.items():
                assert not differences(connection, name, query, exact=True), (name, change)


SETTINGS = (
    "TimeZone = 'Asia/Tokyo'",
    "DateStyle = 'ISO, DMY'",
    "IntervalStyle = 'iso_8601'",
    "default_text_search_config = 'german'",
    "timezone_abbreviations = 'India'",
)
SPOKEN = """
    SELECT id, ts::text AS ts, date_trunc('day', ts) AS day, said::date AS said, i::text AS i,
        called::timestamptz AS called, listed::text[] AS listed
    FROM spoken"""
SOUGHT = "SELECT id, to_tsvector(words) AS found FROM spoken"


def test_the_creators_settings_hold_whoever_refreshes(db: Database) -> None:
    db.execute(
        "CREATE TABLE spoken (id int, ts timestamptz, said text, i interval, called text, listed text, words text)"
    )
    with local_client(db.dsn) as (client, _), db.connect() as creator:
        for setting in SETTINGS:
            creator.execute(f"SET {setting}".encode())
        queries = {"st": SPOKEN, "sought": SOUGHT}
        for name, query in queries.items():
            creator.execute("SELECT pgtrickle.create_stream_table(%s, %s)", (name, query))
        for number in (1, 2):
            moments = "'2024-01-01 20:00Z', '03/04/2024', '1 day 02:00', '2024-01-01 10:00 IST'"
            db.execute(f"INSERT INTO spoken VALUES ({number}, {moments}, '{{a,NULL}}', 'laufende Hunde')")
            results = {result.stream_table: (result.action, result.error) for result in client.tick()}
            assert results == {
                "public.st": ("FULL" if number == 1 else "DIFFERENTIAL", None),
                "public.sought": ("FULL", None),
            }
            for name, query in queries.items():
                assert not differences(creator, name, query, exact=True)
        assert all(client.verify(name).matches for name in queries)


ODD = {
    "array_nulls = off": "SELECT id, items, listed::text[] AS listed FROM odd",
    "xmloption = document": "SELECT id, doc FROM odd",
}


@pytest.mark.parametrize("setting", ODD)
def test_rows_are_carried_as_they_are_whatever_the_creator_had_set(db: Database, setting: str) -> None:
    db.execute("CREATE TABLE odd (id int, items text[], listed text, doc xml)")
    row = "ARRAY[NULL, 'x'], '{NULL,y}', xmlparse(CONTENT 'two <b/>')"
    db.execute(f"INSERT INTO odd VALUES (1, {row})")
    with local_client(db.dsn) as (client, _), db.connect() as creator:
        creator.execute(f"SET {setting}".encode())
        creator.execute("SELECT pgtrickle.create_stream_table('kept', %s)", (ODD[setting],))
        for number in range(2, 5):
            results = client.tick()
            assert [(result.action, result.error) for result in results] == [("FULL", None)]
            assert number == 2 or f"{setting} where it was created" in results[0].reason
            assert not differences(creator, "kept", ODD[setting], exact=True)
            db.execute(f"INSERT INTO odd VALUES ({number}, {row})")
