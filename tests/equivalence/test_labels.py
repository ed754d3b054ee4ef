"""Labels that are renamed, added or dropped: of enums, and of the columns of rows, of composite types or tables."""

from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences
from tests.equivalence.played import assert_differential
from tests.repeats import in_parts

TABLES = """
    CREATE TYPE mood AS ENUM ('low', 'fair', 'high');
    CREATE TYPE note AS (mood mood, n int);
    CREATE DOMAIN spirit AS mood;
    CREATE TYPE spread AS RANGE (subtype = mood);
    CREATE TABLE place (town text, n int);
    CREATE FUNCTION spoken(mood) RETURNS text LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN $1 || ''!''; END';
    CREATE TABLE days (id int PRIMARY KEY, kind int, mood mood, moods mood[], note note, spirit spirit,
        spread spread, place place);
    INSERT INTO days
        SELECT n, n % 3, (enum_range(NULL::mood))[1 + n % 3], '{low,fair}', ROW('low'::mood, n)::note, 'low',
            spread('low', 'high'), ROW(n::text, n / 2)::place
        FROM generate_series(1, 9) AS n"""
SHOWN = {
    "text": "SELECT id, mood::text AS t FROM days",
    "grouped": "SELECT mood::text AS t, count(*) AS n FROM days GROUP BY 1",
    "list": "SELECT id, moods::text AS t FROM days",
    "texts": "SELECT id, moods::text[] AS t FROM days",
    "range": "SELECT id, spread::text AS t FROM days",
    "domain": "SELECT id, spirit::text AS t FROM days",
    "row": "SELECT id, note::text AS t FROM days",
    "json": "SELECT id, to_jsonb(mood) AS t FROM days",
    "object": "SELECT id, to_jsonb(note) AS t FROM days",
    "format": "SELECT id, format('%s', mood) AS t FROM days",
    "joined": "SELECT kind, string_agg(mood::text, ',' ORDER BY id) AS t FROM days GROUP BY kind",
    "all": "SELECT id, enum_range(mood) AS t FROM days",
    "function": "SELECT id, spoken(mood) AS t FROM days",
    "field": "SELECT (note).n AS t, count(*) AS n FROM days GROUP BY 1",
    "whole": "SELECT id, days::text AS t FROM days",
    "whole_json": "SELECT id, to_jsonb(days) AS t FROM days",
    "whole_null": "SELECT id, days IS NOT NULL AS t FROM days",
    "xml": "SELECT id, xmlforest(mood)::text AS t FROM days",
    "table_row": "SELECT id, to_jsonb(place) AS t FROM days",
    "row_of_nothing": "SELECT id, to_jsonb(jsonb_populate_record(NULL::place, '{\"n\": 1}')) AS t FROM days",
    "row_null": "SELECT id, note IS NOT NULL AS t FROM days",
    "row_itself": "SELECT id, note, place FROM days",
    "row_grouped": "SELECT note, count(*) AS n FROM days GROUP BY note",
    "row_distinct": "SELECT DISTINCT place FROM days",
    "rows_compared": "SELECT a.id, b.id AS other FROM days AS a JOIN days AS b ON a.place = b.place",
}
ITSELF = {
    "plain": "SELECT id, mood, moods, spirit FROM days",
    "group": "SELECT mood, count(*) AS n FROM days GROUP BY mood",
    "literal": "SELECT id FROM days WHERE mood = 'low' OR mood > 'fair'",
    "least": "SELECT kind, min(mood) AS least FROM days GROUP BY kind HAVING max(mood) >= 'fair'",
}
ALTERATIONS = (
    "ALTER TYPE mood RENAME VALUE 'low' TO 'bad'",
    "ALTER TYPE mood ADD VALUE 'awful' BEFORE 'bad'",
    "ALTER TYPE note RENAME ATTRIBUTE n TO number",
    "ALTER TABLE days ADD COLUMN extra int DEFAULT 4",
    "ALTER TABLE days ADD COLUMN remark text",
    "ALTER TABLE days DROP COLUMN extra",
    "ALTER TABLE place RENAME COLUMN n TO number",
    "ALTER TABLE place ADD COLUMN remark text; ALTER TYPE note ADD ATTRIBUTE remark text",
    "ALTER TABLE place DROP COLUMN town; ALTER TYPE note DROP ATTRIBUTE mood",
)
CHANGES = "UPDATE days SET kind = kind + 1, mood = 'fair' WHERE id = {0}; DELETE FROM days WHERE id = {0} + 5"


@in_parts(2)
def test_what_shows_labels_shows_those_of_now(db: Database, nth: int) -> None:
    db.execute(TABLES)
    queries = dict(list(SHOWN.items())[nth::2]) | ITSELF
    with local_client(db.dsn) as (client, _), db.connect() as connection:
        for name, query in queries.items():
            client.create_stream_table(f"st_{name}", query)
            db.execute(f"CREATE VIEW expected_{name} AS {query}")
        client.tick()
        for number, alteration in enumerate(ALTERATIONS):
            for change in (alteration, CHANGES.format(number), "UPDATE days SET mood = NULL WHERE id = 9"):
                db.execute(change)
                results = {result.stream_table: result for result in client.tick()}
                assert {result.error for result in results.values()} == {None}, change
                for name in queries:
                    assert not differences(connection, f"st_{name}", f"TABLE expected_{name}", True), (name, change)
                if change == alteration and "TYPE mood" in change:
                    assert {str(results[f"public.st_{name}"].action) for name in ITSELF} == {"NO_DATA"}


def test_first_rows_by_a_hidden_label_come_in_the_order_of_the_enumeration(db: Database) -> None:
    queries = {
        "firsts": "SELECT id FROM days ORDER BY mood DESC, id LIMIT 4",
        "tied": "SELECT kind FROM days ORDER BY mood FETCH FIRST 2 ROWS WITH TIES",
        "highest": "SELECT kind FROM days GROUP BY kind ORDER BY max(mood), kind LIMIT 2",
    }
    changes = (
        "DELETE FROM days WHERE id = 3",
        "ALTER TYPE mood ADD VALUE 'lowest' BEFORE 'low'",
        "INSERT INTO days VALUES (20, 3, 'lowest'), (21, 4, 'high'), (22, 1, NULL)",
        "ALTER TYPE mood RENAME VALUE 'fair' TO 'zenith'; UPDATE days SET mood = 'zenith' WHERE id < 4",
    )
    assert_differential(db, TABLES, queries, changes)
