"""Earlier versions of a source are read back whatever its columns, and without a loop over what changed."""

import pytest

from tests.conftest import Database

VERSIONS = "SELECT array_agg(version ORDER BY version) FROM pgtrickle.versions('d')"
READ = "SELECT d.*::text FROM pgtrickle.as_of_version(NULL::d, %s, 2, 0) AS d UNION ALL"
READ += " SELECT d.*::text FROM pgtrickle.as_of_version(NULL::d, %s, 2, 1) AS d ORDER BY 1"


@pytest.mark.parametrize(
    ("type_name", "one", "other"),
    [("json", '{"a": 1}', "[]"), ("point", "(1,2)", "(2,1)"), ("json[]", "{1}", "{2}")],
)
def test_rows_of_types_without_equality_are_read_back(db: Database, type_name: str, one: str, other: str) -> None:
    db.execute(f"CREATE TABLE d (id integer, v {type_name})")
    db.execute("SELECT pgtrickle.create_feed('f', 'd')")
    known = {}
    for hour, change in enumerate(
        (
            "INSERT INTO d SELECT n %% 3, %s FROM generate_series(1, 7) AS n",
            "UPDATE d SET v = %s WHERE id = 1",
            "DELETE FROM d WHERE id = 2 OR v::text = %s",
        )
    ):
        db.execute(change, other if hour == 1 else one)
        db.execute("INSERT INTO d VALUES (1, NULL)")
        db.execute("SELECT pgtrickle.advance_watermark('d', %s)", f"2026-01-01 {hour:02}:00Z")
        known[db.value(VERSIONS)[-1]] = db.execute("SELECT d.*::text FROM d ORDER BY 1")
    db.execute("UPDATE d SET id = id + 10")
    assert len(known) == 3
    for version, rows in known.items():
        assert db.execute(READ, version, version) == rows != []


def test_no_row_is_compared_with_each_row_that_changed(db: Database) -> None:
    """A list that does not fit the memory of a query is read anew for each row that is looked for in it."""
    db.execute("CREATE TABLE d (id integer); INSERT INTO d SELECT generate_series(1, 1000)")
    db.execute("SELECT pgtrickle.create_feed('f', 'd'), pgtrickle.advance_watermark('d', '2026-01-01')")
    (version,) = db.value(VERSIONS)
    cut = db.value("SELECT pgtrickle_private.cut_of_version('d', %s)::text", version)
    query = db.value("SELECT pgtrickle_private.as_of_query('d')")
    for place, value in ((1, f"CAST('{cut}' AS pgtrickle.cut)"), (2, "1"), (3, "0")):
        query = query.replace(f"(${place})", f"({value})").replace(f"${place}", value)
    settings = db.value("SELECT proconfig FROM pg_proc WHERE proname = 'as_of_version'")
    assert "enable_nestloop=off" in settings
    db.execute("SET enable_nestloop = off; SET work_mem = '64kB'")
    plan = "\n".join(line for (line,) in db.execute(f"EXPLAIN {query}"))
    assert "SubPlan" not in plan
    assert "Anti Join" in plan
