"""Values that say how something is named: as its creator sees it, under the search_path of the query's creator."""

import pytest

from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences
from tests.repeats import first

TABLES = """
    CREATE SCHEMA tools; CREATE TABLE tools.hammers (id int DEFAULT 7); CREATE EXTENSION tablefunc SCHEMA public;
    CREATE COLLATION tools.plain (provider = icu, locale = 'und');
    CREATE VIEW tools.heavy AS SELECT id FROM tools.hammers WHERE id > 1;
    CREATE TABLE seen (id int, relid regclass, owned regclass[]);
    INSERT INTO seen VALUES (1, 'tools.hammers', '{tools.hammers}'), (2, 'seen', '{seen,tools.heavy}')"""
QUERIES = {
    "described": "SELECT id, pg_describe_object('pg_class'::regclass, relid::oid, 0) AS t FROM seen",
    "collation": "SELECT id, pg_collation_for((relid::oid::text) COLLATE tools.plain) AS t FROM seen",
    "read by an extension": "SELECT * FROM crosstab('SELECT id, id, id FROM hammers') AS c (id int, n int)",
    "definition": "SELECT id, pg_get_viewdef('heavy') AS d FROM seen",
    "relation": "SELECT id, pg_get_viewdef(r.oid) AS d FROM seen, pg_class AS r WHERE relname = 'heavy'",
    "itself": "SELECT id, relid, owned, pg_typeof(owned) AS kind, relid::text AS t FROM seen",
    "whole row": "SELECT id, to_jsonb(seen) AS t FROM seen",
    "xml": "SELECT id, xmlforest(relid)::text AS t FROM seen",
    "text": "SELECT id, relid::text AS t FROM seen",
    "texts": "SELECT id, owned::text[] AS t FROM seen",
    "format": "SELECT id, format('%s', relid) AS t FROM seen",
    "json": "SELECT json_agg(relid ORDER BY id) AS t FROM seen",
    "joined": "SELECT relid || '!' AS t FROM seen",
    "schema": "SELECT id, relid::oid::regnamespace::text AS t FROM seen",
    "role": "SELECT id, relid::oid::regrole::text AS t FROM seen",
    "privilege": "SELECT id, has_table_privilege(current_user, 'heavy', 'SELECT') AS t FROM seen",
}


@pytest.mark.parametrize("case", first(8, QUERIES))
def test_names_look_as_their_creator_sees_them(db: Database, case: str) -> None:
    db.execute(TABLES)
    dsn = f"{db.dsn}?options=-csearch_path%3Dtools,public"
    with local_client(dsn) as (client, _), Database(dsn, db.version).connect() as connection:
        client.create_stream_table("public.st", QUERIES[case])
        for change in (
            "SELECT 1",
            "INSERT INTO seen VALUES (3, 'tools.heavy', '{}')",
            "ALTER VIEW tools.heavy RENAME TO hefty",
        ):
            if case not in {"definition", "privilege"} or "RENAME" not in change:
                db.execute(change)
            (result,) = client.tick()
            assert (result.action, result.error) == ("FULL", None)
            assert not differences(connection, "st", QUERIES[case], True)


def test_identifiers_themselves_are_differential(db: Database) -> None:
    query = "SELECT relid, count(*) AS n FROM seen WHERE relid <> 'seen'::regclass GROUP BY relid"
    db.execute(TABLES)
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("st", query)
        client.tick()
        db.execute("INSERT INTO seen VALUES (3, 'tools.heavy', '{}'), (4, 'tools.hammers', '{}')")
        (result,) = client.tick()
        assert (result.action, result.error) == ("DIFFERENTIAL", None)
        assert not differences(db.connect(), "st", query, True)


SEARCHED = "to_tsvector('simple', array_to_string(names, ' '))"


@pytest.mark.parametrize(
    ("shown", "action"),
    (
        (SEARCHED, "DIFFERENTIAL"),
        (f"{SEARCHED} @@ websearch_to_tsquery('english', array_to_string(names, ' or '))", "DIFFERENTIAL"),
        (f"format('%s', 'simple'::regconfig) || {SEARCHED}::text", "FULL"),
        ("to_tsvector(config, array_to_string(names, ' '))", "FULL"),
        ("to_json('simple'::regconfig)::text", "FULL"),
    ),
)
def test_a_search_configuration_that_is_only_used_is_not_shown(db: Database, shown: str, action: str) -> None:
    query = f"SELECT id, {shown} AS v FROM pages"
    db.execute("CREATE TABLE pages (id int, names text[], config regconfig)")
    db.execute("INSERT INTO pages VALUES (1, '{The,Rats}', 'simple'), (2, '{rat}', 'english'), (3, NULL, NULL)")
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("st", query, initialize=True)
        db.execute("INSERT INTO pages VALUES (4, '{cats,running}', 'english'); DELETE FROM pages WHERE id = 2")
        (result,) = client.tick()
        assert (result.action, result.error) == (action, None)
        assert not differences(db.connect(), "st", query, True)
