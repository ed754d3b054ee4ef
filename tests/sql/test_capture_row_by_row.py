"""Where PostgreSQL does not show all there is of its own: changes through other parents, what partitions generate."""

import pytest

from pytrickle.catalog.install import render
from tests.conftest import Database
from tests.repeats import on_both_servers
from tests.sql.checks import remember, replays_each

TWO_PARENTS = """
CREATE TABLE m (a integer);
CREATE TABLE n (a integer);
CREATE TABLE kid () INHERITS (m, n);
CREATE TABLE below () INHERITS (kid);
INSERT INTO m VALUES (1);
INSERT INTO kid VALUES (2), (3);
INSERT INTO below VALUES (4)
"""
THROUGH_PARENTS = {
    "insert into the child": "INSERT INTO kid VALUES (5)",
    "update through the other parent": "UPDATE n SET a = a + 1",
    "update through the child": "UPDATE kid SET a = a + 1",
    "update through the source": "UPDATE m SET a = a + 1",
    "delete through the other parent": "DELETE FROM n WHERE a > 2",
    "merge into the other parent": "MERGE INTO n USING (VALUES (2)) AS v ON a = column1 "
    "WHEN MATCHED THEN UPDATE SET a = 9",
    "truncate the other parent": "TRUNCATE n",
}
# The partitions have a column less than the table, which once had another one.
GENERATED = """
CREATE TABLE p (gone integer, g integer, x integer, twice integer GENERATED ALWAYS AS (x * 2) STORED)
    PARTITION BY LIST (g);
ALTER TABLE p DROP COLUMN gone;
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2);
INSERT INTO p (g, x) VALUES (1, 1), (2, 2), (1, 3)
"""
INTO_PARTITIONS = {
    "insert": "INSERT INTO p (g, x) VALUES (2, 5), (1, 6)",
    "insert into a partition": "INSERT INTO p1 (g, x) VALUES (1, 5)",
    "copy": "COPY p (g, x) FROM PROGRAM 'echo 2,5' WITH (FORMAT csv)",
    "insert or update": "INSERT INTO p (g, x) VALUES (2, 5) ON CONFLICT DO NOTHING",
    "update": "UPDATE p SET x = x + 1",
    "move": "UPDATE p SET g = 3 - g",
    "move and change": "UPDATE p SET g = 3 - g, x = x + 1",
    "merge": "MERGE INTO p USING (VALUES (8), (1)) AS v (i) ON x = i "
    "WHEN MATCHED THEN UPDATE SET x = 7 WHEN NOT MATCHED THEN INSERT (g, x) VALUES (2, i)",
    "delete": "DELETE FROM p WHERE x > 1",
    "truncate": "TRUNCATE p",
}
# From there on only the functions are made anew.
ANY_MIGRATION = 10_000
MODE = "SELECT capture_mode FROM pgtrickle.pgt_change_tracking"


def build(db: Database, script: str, source: str, columns: str) -> None:
    for statement in script.split(";\n"):
        db.execute(statement)
    db.execute("SELECT pgtrickle.create_stream_table('copied', %s)", f"SELECT {columns} FROM {source}")
    remember(db, source)


def test_changes_through_another_parent_of_a_child_are_captured(db: Database) -> None:
    build(db, TWO_PARENTS, "m", "a")
    assert replays_each(db, "m", "a", THROUGH_PARENTS) == {}


def test_another_parent_that_comes_later_is_noticed(db: Database) -> None:
    build(db, TWO_PARENTS.replace("INHERITS (m, n)", "INHERITS (m)"), "m", "a")
    assert db.value(MODE) == "statement"
    db.execute("ALTER TABLE kid INHERIT n")
    assert db.value("SELECT pgtrickle.capture_problem('m')") == "it needs row triggers now"
    db.execute("SELECT pgtrickle.repair_capture('m')")
    assert db.value(MODE) == "row"
    assert replays_each(db, "m", "a", THROUGH_PARENTS) == {}


@on_both_servers
def test_what_partitions_of_another_layout_generate_is_captured(every_db: Database) -> None:
    build(every_db, GENERATED, "p", "g, x, twice")
    assert every_db.value(MODE) == "statement"
    assert replays_each(every_db, "p", "g, x, twice", INTO_PARTITIONS) == {}


PART, CHILD = (
    "CREATE TABLE above (a integer, b integer) PARTITION BY LIST (a)",
    "CREATE TABLE above (a integer, b integer)",
)
VISITS = {
    "a partition": (PART, "ALTER TABLE above ATTACH PARTITION m DEFAULT", "ALTER TABLE above DETACH PARTITION m"),
    "a child": (CHILD, "ALTER TABLE m INHERIT above", "ALTER TABLE m NO INHERIT above"),
    "a child of a child": (CHILD, "ALTER TABLE kid INHERIT above", "ALTER TABLE kid NO INHERIT above"),
}


@on_both_servers
@pytest.mark.parametrize("visit", VISITS)
def test_a_parent_that_comes_and_goes_before_anybody_looks_is_noticed(every_db: Database, visit: str) -> None:
    below = "" if visit == "a partition" else ";\nCREATE TABLE kid () INHERITS (m)"
    build(every_db, "CREATE TABLE m (a integer, b integer);\nINSERT INTO m VALUES (1, 1)" + below, "m", "a")
    above, comes, goes = VISITS[visit]
    every_db.execute(above)
    every_db.execute("ALTER TABLE m ALTER COLUMN b SET DEFAULT 3")
    assert every_db.value("SELECT pgtrickle.capture_problem('m')") is None
    every_db.execute(comes)
    every_db.execute("UPDATE above SET a = 2")
    every_db.execute(goes)
    assert "for a while" in every_db.value("SELECT pgtrickle.capture_problem('m')")
    every_db.execute("SELECT pgtrickle.repair_capture('m')")
    assert every_db.value("SELECT pgtrickle.capture_problem('m')") is None


@pytest.mark.parametrize("table", ["m", "kid"])
def test_where_all_columns_were_altered_nobody_can_tell(db: Database, table: str) -> None:
    build(db, "CREATE TABLE m (a integer, b integer);\nCREATE TABLE kid () INHERITS (m)", "m", "a")
    db.execute(f"ALTER TABLE {table} ALTER COLUMN a SET NOT NULL")
    assert db.value("SELECT pgtrickle.capture_problem('m')") is None
    db.execute(f"ALTER TABLE {table} ALTER COLUMN b SET NOT NULL")
    assert "for a while" in db.value("SELECT pgtrickle.capture_problem('m')")


LOOK = "SELECT pgtrickle_private.remember_alterations(a) FROM pgtrickle_private.altered_harmlessly() AS a"


def test_what_was_altered_before_anybody_looked_is_no_part_of_a_later_visit(db: Database) -> None:
    build(db, "CREATE TABLE m (a integer, b integer)", "m", "a")
    nulls = ("ALTER a SET NOT NULL", "ALTER b SET NOT NULL", "ALTER a DROP NOT NULL", "ALTER a SET NOT NULL")
    for alteration in (*nulls, "ALTER b TYPE bigint", "ALTER b TYPE bigint USING 2"):
        db.execute(f"ALTER TABLE m {alteration}")
        assert db.value("SELECT pgtrickle.capture_problem('m')") is None
        assert len(db.execute(LOOK)) == 1 and db.execute(LOOK) == []
    db.execute("ALTER TABLE m ALTER a DROP NOT NULL")
    db.execute("ALTER TABLE m ALTER a SET NOT NULL")
    assert db.execute(LOOK) == []
    db.execute("SELECT pgtrickle_private.remember_alterations('m')")
    assert "for a while" in db.value("SELECT pgtrickle.capture_problem('m')")


def test_what_an_older_version_remembered_is_completed_unless_it_tells_of_something(db: Database) -> None:
    for table in ("m", "n"):
        db.execute(f"CREATE TABLE {table} (a integer)")
        db.execute("SELECT pgtrickle.create_stream_table(%s, %s)", f"of_{table}", f"SELECT a FROM {table}")
    db.execute("UPDATE pgtrickle.pgt_change_tracking SET trigger_stamp = split_part(trigger_stamp, ' ', 1)")
    db.execute("UPDATE pgtrickle.pgt_change_tracking SET trigger_stamp = 'other' WHERE source_relid = 'n'::regclass")
    assert db.value("SELECT pgtrickle.capture_problem('m')") is None
    with db.connect() as connection, connection.transaction():
        connection.execute(render(ANY_MIGRATION).encode(), prepare=False)
    stamps = dict(db.execute("SELECT source_name, trigger_stamp FROM pgtrickle.pgt_change_tracking"))
    assert " " in stamps["public.m"] and stamps["public.n"] == "other"
