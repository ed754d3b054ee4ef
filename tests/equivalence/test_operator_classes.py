"""Types made of others whose own operator classes hold different values for equal: groups show one that is there."""

import pytest

from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences
from tests.equivalence.runs import disable_jit
from tests.repeats import on_both_servers

KEY = "COALESCE(lower(({}).s), '')"
COMPARED = """
CREATE FUNCTION word_{name}(word, word) RETURNS {type} IMMUTABLE STRICT LANGUAGE sql RETURN {body};
"""
OPERATOR = "CREATE OPERATOR {sign} (LEFTARG = word, RIGHTARG = word, FUNCTION = word_{name}{more});"
SIGNS = {"lt": "<", "le": "<=", "eq": "=", "ge": ">=", "gt": ">"}
CLASS = """
CREATE OPERATOR CLASS word_ops DEFAULT FOR TYPE word USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =,
    OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 word_cmp(word, word);
"""
HASHED = """
CREATE FUNCTION word_hash(word) RETURNS int IMMUTABLE STRICT LANGUAGE sql RETURN hashtext(COALESCE(lower(($1).s), ''));
CREATE FUNCTION word_hash(word, bigint) RETURNS bigint IMMUTABLE STRICT LANGUAGE sql
    RETURN hashtextextended(COALESCE(lower(($1).s), ''), $2);
CREATE OPERATOR CLASS word_hash_ops DEFAULT FOR TYPE word USING hash
    AS OPERATOR 1 =, FUNCTION 1 word_hash(word), FUNCTION 2 word_hash(word, bigint);
"""
QUERIES = {
    "rows": "SELECT id, c FROM t",
    "whole_rows": "SELECT t FROM t",
    "groups": "SELECT c, count(*) AS n FROM t GROUP BY c",
    "rows_in_groups": "SELECT t, count(*) AS n FROM t GROUP BY t",
    "arrays": "SELECT ARRAY[c] AS a, count(*) AS n FROM t GROUP BY 1",
    "once": "SELECT DISTINCT c FROM t",
    "totals": "SELECT c, count(*) AS n FROM t GROUP BY ROLLUP (c)",
    "told_apart": "SELECT x.c::text AS w, x.n FROM (SELECT c, count(*) AS n FROM t GROUP BY c) AS x",
}
BATCHES = (
    "UPDATE t SET c = '(A)' WHERE id = 1",
    "INSERT INTO t VALUES (3, '(C)'); DELETE FROM t WHERE id = 2",
    "UPDATE t SET c = ROW(lower((c).s))",
)


def _type(hashed: bool) -> str:
    one, other = KEY.format("$1"), KEY.format("$2")
    order = f"CASE WHEN {one} < {other} THEN -1 WHEN {one} > {other} THEN 1 ELSE 0 END"
    parts = ["CREATE TYPE word AS (s text);", COMPARED.format(name="cmp", type="int", body=order)]
    for name, sign in SIGNS.items():
        parts.append(COMPARED.format(name=name, type="boolean", body=f"{one} {sign} {other}"))
        more = f", COMMUTATOR = =, MERGES{', HASHES' if hashed else ''}" if sign == "=" else ""
        parts.append(OPERATOR.format(sign=sign, name=name, more=more))
    return "".join((*parts, CLASS, HASHED if hashed else ""))


@on_both_servers
@pytest.mark.parametrize("hashed", (False, True), ids=("sorted", "hashed"))
def test_groups_by_an_operator_class_of_its_own_show_a_value_that_is_there(every_db: Database, hashed: bool) -> None:
    db = every_db
    disable_jit(db)
    db.execute(_type(hashed))
    db.execute("CREATE TABLE t (id int PRIMARY KEY, c word); INSERT INTO t VALUES (1, '(a)'), (2, '(b)')")
    with local_client(db.dsn) as (client, _), db.connect() as connection:
        for name, query in QUERIES.items():
            mode = "AUTO" if name == "told_apart" else "DIFFERENTIAL"
            client.create_stream_table(f"st_{name}", query, refresh_mode=mode)
        for batch in ("SELECT", *BATCHES):
            db.execute(batch)
            assert [result.error for result in client.tick() if result.error] == [], batch
            wrong = {name for name, query in QUERIES.items() if differences(connection, f"st_{name}", query, True)}
            assert wrong == set(), batch
