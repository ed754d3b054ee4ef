"""What a query names is renamed or moved, or the rows that a function returns get another column."""

from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences
from tests.repeats import on_both_servers

TABLES = """
    CREATE SCHEMA tools;
    CREATE TYPE mood AS ENUM ('low', 'high'); CREATE DOMAIN small AS int; CREATE TYPE note AS (x int, y text);
    CREATE COLLATION plain FROM "C";
    CREATE FUNCTION plus(int, int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 + $2';
    CREATE OPERATOR #+# (leftarg = int, rightarg = int, function = plus);
    CREATE AGGREGATE total(int) (sfunc = int4pl, stype = int, initcond = '0');
    CREATE TABLE t (id int PRIMARY KEY, k int, v text, w text COLLATE plain, notes note[]);
    INSERT INTO t SELECT n, n % 3, 'low', n::text, ARRAY[ROW(n, 'a')::note, ROW(2, NULL)::note]
        FROM generate_series(1, 9) AS n"""
QUERIES = {
    "type": "SELECT id FROM t WHERE v::mood = 'low'",
    "domain": "SELECT k::small AS k, count(*) AS n FROM t GROUP BY 1",
    "collation": "SELECT v COLLATE plain AS v, count(*) AS n FROM t GROUP BY 1",
    "column_collation": "SELECT a.id, b.w FROM t AS a LEFT JOIN t AS b ON b.w > a.v",
    "operator": "SELECT id, k #+# 1 AS k FROM t",
    "function": "SELECT plus(k, 1) AS k, count(*) AS n FROM t GROUP BY 1",
    "aggregate": "SELECT total(k) AS s FROM t",
}
MOVED = (
    "ALTER {kind} {name} RENAME TO {new}",
    "ALTER {kind} {new} SET SCHEMA tools",
)
NAMES = (
    ("TYPE", "mood", "spirit"), ("DOMAIN", "small", "little"), ("COLLATION", "plain", "bytewise"),
    ("FUNCTION", "plus", "sum_of"), ("AGGREGATE", "total(int)", "added"),
)  # fmt: skip
CHANGES = "UPDATE t SET k = k + 1, w = w || 'x' WHERE id < 4; UPDATE t SET v = 'high' WHERE id = 5"
WITH_COLUMNS = {
    "numbered": "SELECT t.id, n.x, n.place FROM t, unnest(t.notes) WITH ORDINALITY AS n (x, y, place)",
    "beside": "SELECT t.id, n.x, n.no FROM t, ROWS FROM (unnest(t.notes), generate_series(1, 3)) AS n (x, y, no)",
    "alone": "SELECT t.id, n.x FROM t, unnest(t.notes) AS n",
    "whole": "SELECT t.id, n FROM t, unnest(t.notes) AS n",
    "below": "SELECT id, place, count(*) AS n FROM numbered GROUP BY 1, 2",
}

# Of the last one the names of a join's columns show, which PostgreSQL keeps as they were and does not print.
OF_ROWS = {
    "row": "SELECT id, ROW(w, k)::text AS r FROM t",
    "implicit": "SELECT k, count(DISTINCT (w, v)) AS n FROM t GROUP BY k",
    "grouped": "SELECT ROW(w, k)::text AS r, count(*) AS n FROM t GROUP BY 1",
    "whole": "SELECT id, to_jsonb(t) AS j FROM t",
    "joined": "SELECT to_jsonb(j) AS j FROM (t AS a JOIN t AS b USING (id)) AS j",
}


def test_what_a_query_names_may_be_renamed_and_moved(db: Database) -> None:
    db.execute(TABLES)
    renamed = "; ".join(MOVED[0].format(kind=kind, name=name, new=new) for kind, name, new in NAMES)
    moved = [MOVED[1].format(kind=kind, new=f"{new}(int)" if kind == "AGGREGATE" else new) for kind, _, new in NAMES]
    moves = "; ".join([*moved, "ALTER OPERATOR #+# (int, int) SET SCHEMA tools"])
    with local_client(db.dsn) as (client, _), db.connect() as connection:
        for name, query in QUERIES.items():
            client.create_stream_table(f"st_{name}", query)
            db.execute(f"CREATE VIEW expected_{name} AS {query}")
        client.tick()
        for alteration in ("SELECT 1", renamed, moves, "ALTER SCHEMA tools RENAME TO shed"):
            for change in (f"{alteration}; {CHANGES}", CHANGES, "UPDATE t SET v = 'low'"):
                db.execute(change)
                assert {result.error for result in client.tick()} == {None}, change
                for name in QUERIES:
                    assert not differences(connection, f"st_{name}", f"TABLE expected_{name}", True), (name, change)


@on_both_servers
def test_columns_may_be_renamed_that_rows_are_made_of(every_db: Database) -> None:
    every_db.execute(TABLES)
    actions = set()
    with local_client(every_db.dsn) as (client, _), every_db.connect() as connection:
        for name, query in OF_ROWS.items():
            client.create_stream_table(f"st_{name}", query)
            every_db.execute(f"CREATE VIEW expected_{name} AS {query}")
        client.tick()
        renaming = "ALTER TABLE t RENAME COLUMN w TO written"
        for change in (renaming, "UPDATE t SET k = k + 1", "UPDATE t SET written = v"):
            every_db.execute(change)
            actions = {result.stream_table.partition("st_")[2]: result.action for result in client.tick()}
            for name in OF_ROWS:
                assert not differences(connection, f"st_{name}", f"TABLE expected_{name}", True), (name, change)
    assert actions == {name: "FULL" if name == "joined" else "DIFFERENTIAL" for name in OF_ROWS}


def test_a_function_may_return_rows_with_another_column(db: Database) -> None:
    db.execute(TABLES)
    db.execute(f"CREATE VIEW numbered AS {WITH_COLUMNS['numbered']}")
    actions = {}
    with local_client(db.dsn) as (client, _), db.connect() as connection:
        for name, query in WITH_COLUMNS.items():
            client.create_stream_table(f"st_{name}", query)
            db.execute(f"CREATE VIEW expected_{name} AS {query}")
        client.tick()
        for change in (CHANGES, "ALTER TYPE note ADD ATTRIBUTE z int", "UPDATE t SET notes = notes || notes[1]"):
            db.execute(change)
            actions = {result.stream_table: (str(result.action), result.error) for result in client.tick()}
            for name in WITH_COLUMNS:
                assert not differences(connection, f"st_{name}", f"TABLE expected_{name}", True), (name, change)
    assert actions == {
        "public.st_numbered": ("FULL", None), "public.st_beside": ("FULL", None), "public.st_below": ("FULL", None),
        "public.st_alone": ("DIFFERENTIAL", None), "public.st_whole": ("DIFFERENTIAL", None),
    }  # fmt: skip
