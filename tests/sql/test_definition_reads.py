"""What a definition is read from: the trees of its own views, not those of all views in the database."""

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
