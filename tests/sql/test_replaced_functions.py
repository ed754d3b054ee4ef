"""Functions and aggregates of queries that are replaced by others of the same text."""

import pytest

from tests.conftest import Database

FUNCTION = "FUNCTION shown(amount integer, more integer DEFAULT {more}) RETURNS integer IMMUTABLE {strict} LANGUAGE sql"
FUNCTION = f"CREATE OR REPLACE {FUNCTION} AS 'SELECT coalesce(amount, 0) + more'"
AGGREGATE = "CREATE OR REPLACE AGGREGATE shown(integer) (sfunc = {sfunc}, stype = int4, initcond = '{start}')"
REPLACED = {
    "strict": (FUNCTION.format(more=1, strict=""), FUNCTION.format(more=1, strict="STRICT")),
    "default": (FUNCTION.format(more=1, strict=""), FUNCTION.format(more=2, strict="")),
    "aggregate's start": (AGGREGATE.format(sfunc="int4pl", start=0), AGGREGATE.format(sfunc="int4pl", start=9)),
    "aggregate's step": (AGGREGATE.format(sfunc="int4pl", start=0), AGGREGATE.format(sfunc="int4larger", start=0)),
}


@pytest.mark.parametrize("case", REPLACED)
def test_a_function_replaced_by_one_of_the_same_text_is_noticed(db: Database, case: str) -> None:
    before, after = REPLACED[case]
    db.execute("CREATE TABLE t (k integer, a integer)")
    db.execute(before)
    query = f"SELECT k, shown(a) AS a FROM t{' GROUP BY k' if 'AGGREGATE' in before else ''}"
    db.execute("SELECT pgtrickle.create_stream_table('computed', %s)", query)
    db.execute("GRANT EXECUTE ON FUNCTION shown TO PUBLIC")
    assert db.execute("SELECT * FROM pgtrickle_private.changed_definitions()") == []
    db.execute(after)
    assert db.value("SELECT count(*) FROM pgtrickle_private.changed_definitions()") == 1
