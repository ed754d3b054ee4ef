"""What a definition is read from: the trees of its own views, not those of all views in the database."""

from pytrickle.catalog.past_refreshes import evidence
from pytrickle.catalog.stream_table import stream_tables
from tests.conftest import Database

TREES_READ = """
SELECT s.idx_scan FROM pg_stat_xact_sys_tables AS s JOIN pg_class AS c ON c.reltoastrelid = s.relid
WHERE c.oid = 'pg_rewrite'::regclass
"""


def test_a_definition_is_read_without_searching_the_views_of_others(db: Database) -> None:
    db.execute("CREATE TABLE t (a integer)")
    db.execute("CREATE VIEW v AS SELECT a + 1 AS a FROM t")
    pgt_id = db.value("SELECT pgtrickle.create_stream_table('totals', 'SELECT a, count(*) FROM v GROUP BY a')")
    others = db.value("SELECT count(*) FROM pg_views")
    with db.connect() as reader, reader.transaction():
        (before,) = reader.execute(TREES_READ).fetchone() or (0,)
        reader.execute("SELECT pgtrickle_private.planner_facts(%s)", (pgt_id,))
        ((after,),) = reader.execute(TREES_READ).fetchall()
    assert after - before < 20 < others


def test_neither_definition_nor_sizes_are_found_by_reading_whole_catalogs(db: Database) -> None:
    db.execute("CREATE TABLE t (a integer, b text) PARTITION BY LIST (a)")
    db.execute("CREATE TABLE t_1 PARTITION OF t FOR VALUES IN (1)")
    query = "SELECT a, b, count(*), generate_series(1, 2) FROM t GROUP BY a, b"
    db.execute("SELECT pgtrickle.create_stream_table('totals', $$" + query + "$$)")
    # Small catalogs are best read whole; a composite type is a row of two of them, and has no file.
    create = "EXECUTE format('CREATE TYPE of_others_%s AS (a integer)', n)"
    db.execute(f"DO $$ BEGIN FOR n IN 1..2000 LOOP {create}; END LOOP; END $$")
    db.execute("ANALYZE pg_class, pg_type, pg_proc")
    catalogs = "unnest('{pg_class,pg_type,pg_proc}'::regclass[]) AS c (oid)"
    scans = f"SELECT oid::text, pg_stat_get_xact_numscans(oid) FROM {catalogs}"
    with db.connect() as reader:
        (table,) = stream_tables(reader)
        reader.execute("SELECT pgtrickle_private.planner_facts(%s)", (table.pgt_id,))  # the first call fills caches
        with reader.transaction():
            before = reader.execute(scans).fetchall()
            reader.execute("SELECT pgtrickle_private.planner_facts(%s)", (table.pgt_id,))
            found = evidence(reader, table)
            assert reader.execute(scans).fetchall() == before
    assert found.source_rows == 0


def test_the_sizes_of_a_source_are_those_of_its_partitions(db: Database) -> None:
    db.execute("CREATE TABLE t (a integer) PARTITION BY LIST (a)")
    for part in (1, 2):
        db.execute(f"CREATE TABLE t_{part} PARTITION OF t FOR VALUES IN ({part})")
        db.execute(f"INSERT INTO t SELECT {part} FROM generate_series(1, {part} * 1000)")
    db.execute("ANALYZE t")
    db.execute("SELECT pgtrickle.create_stream_table('totals', 'SELECT a, count(*) FROM t GROUP BY a')")
    with db.connect() as reader:
        (table,) = stream_tables(reader)
        assert evidence(reader, table).source_rows == 3000
        ((pages,),) = reader.execute("SELECT pgtrickle_private.source_facts('t', NULL) -> 'pages'").fetchall()
    assert pages == db.value("SELECT sum(relpages) FROM pg_class WHERE relname IN ('t_1', 't_2')")


def test_unique_keys_are_those_by_which_an_index_finds_one_row(db: Database) -> None:
    """Not those of a part of the rows or of an expression; columns that an index only carries belong to no key."""
    db.execute("CREATE TABLE t (id int PRIMARY KEY, gone int, a int, b int, c text UNIQUE DEFERRABLE)")
    db.execute("ALTER TABLE t DROP COLUMN gone")
    db.execute("CREATE UNIQUE INDEX ON t (b, a) INCLUDE (c)")
    for others in ("(a) WHERE b > 0", "(lower(c))", "(b, (a + 1))"):
        db.execute(f"CREATE UNIQUE INDEX ON t {others}")
    db.execute("CREATE INDEX ON t (a)")
    found = db.value("SELECT pgtrickle_private.source_facts('t', NULL) -> 'unique'")
    assert sorted(map(sorted, found)) == [["a", "b"], ["c"], ["id"]]


def test_a_table_that_was_never_analyzed_has_the_rows_that_its_size_tells(db: Database) -> None:
    db.execute("CREATE TABLE plain (id int); CREATE TABLE parts (id int) PARTITION BY LIST (id)")
    db.execute("CREATE TABLE one PARTITION OF parts FOR VALUES IN (1); CREATE TABLE two PARTITION OF parts DEFAULT")
    db.execute("CREATE FOREIGN DATA WRAPPER nowhere; CREATE SERVER far FOREIGN DATA WRAPPER nowhere")
    db.execute("CREATE FOREIGN TABLE away (id int) SERVER far")
    sizes = "SELECT s.pages, s.rows FROM pgtrickle_private.size_of(%s) AS s"
    assert [db.execute(sizes, name) for name in ("plain", "parts", "away")] == [[(0, 1)], [(0, 2)], [(0, 0)]]
    db.execute("INSERT INTO plain SELECT generate_series(1, 500); INSERT INTO parts SELECT * FROM plain")
    assert [db.execute(sizes, name) for name in ("plain", "parts")] == [[(3, 240)], [(4, 320)]]
    db.execute("ANALYZE plain, one")
    assert [db.execute(sizes, name) for name in ("plain", "parts")] == [[(3, 500)], [(4, 241)]]
