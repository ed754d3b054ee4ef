"""The stamp of a definition: whether it must be read and analysed again, at a fraction of the cost of doing so."""

from dataclasses import dataclass

import psycopg

from pytrickle.cut import Cut

# Catalog rows carry the transaction that wrote them, so nothing needs to be printed or parsed to see that nothing
# changed. Those of relations are written by TRUNCATE too, and so by every first load: of them the columns count that a
# definition can depend on, and sizes by powers of two, from 16 pages on. As a prepared statement this takes a tenth of
# what an SQL function would, which is planned anew at every call. PostgreSQL does not see the number while it plans: or
# else it would plan the statement anew for each one.
STAMP = """
WITH given AS MATERIALIZED (
    SELECT %(pgt_id)s::bigint AS number
), stream_table AS MATERIALIZED (
    SELECT pgt_relid::oid AS storage, view_relid AS view, full_reason, view_stamp
    FROM pgtrickle.pgt_stream_tables WHERE pgt_id = (SELECT number FROM given)
), views AS MATERIALIZED (
    SELECT below.relid FROM stream_table, pgtrickle_private.views_below(view) AS below (relid)
), dependencies AS MATERIALIZED (
    SELECT d.source_relid::oid AS relid, d.source_type, d.columns_used, t.buffer
    FROM pgtrickle.pgt_dependencies AS d LEFT JOIN pgtrickle.pgt_change_tracking AS t USING (source_relid)
    WHERE d.pgt_id = (SELECT number FROM given)
), relations AS MATERIALIZED (
    SELECT storage AS relid FROM stream_table UNION SELECT relid FROM views UNION SELECT relid FROM dependencies
)
SELECT md5(concat_ws('|',
    (SELECT string_agg(concat_ws(' ', c.oid, c.relname, c.relnamespace, c.relowner, c.relkind, c.relpersistence,
                                 c.relispartition, c.relhassubclass, c.relrowsecurity, c.relforcerowsecurity,
                                 c.relreplident, c.reloptions, n.xmin,
                                 floor(ln(greatest(c.relpages, 15) + 1) / ln(2))), ',' ORDER BY c.oid)
     FROM relations AS r JOIN pg_class AS c ON c.oid = r.relid JOIN pg_namespace AS n ON n.oid = c.relnamespace),
    (SELECT string_agg(concat_ws(' ', a.attrelid, a.attnum, a.xmin), ',' ORDER BY a.attrelid, a.attnum)
     FROM relations AS r JOIN pg_attribute AS a ON a.attrelid = r.relid AND a.attnum > 0),
    (SELECT string_agg(concat_ws(' ', i.indexrelid, i.xmin), ',' ORDER BY i.indexrelid)
     FROM dependencies AS r JOIN pg_index AS i ON i.indrelid = r.relid),
    (SELECT string_agg(concat_ws(' ', w.oid, w.xmin), ',' ORDER BY w.oid)
     FROM relations AS r JOIN pg_rewrite AS w ON w.ev_class = r.relid),
    (SELECT string_agg(concat_ws(' ', relid, source_type, columns_used, buffer), ',' ORDER BY relid) FROM dependencies),
    (SELECT string_agg(concat_ws(' ', t.oid, t.xmin, e.oid, e.xmin), ',' ORDER BY t.oid, e.oid)
     FROM pg_type AS t LEFT JOIN pg_enum AS e ON e.enumtypid IN (t.oid, t.typelem, t.typbasetype)
     WHERE t.oid IN (SELECT a.atttypid FROM relations AS r JOIN pg_attribute AS a ON a.attrelid = r.relid
                     WHERE a.attnum > 0 AND a.atttypid >= 16384)),
    (SELECT string_agg(concat_ws(' ', d.refobjid, t.xmin, o.xmin), ',' ORDER BY d.refobjid)
     FROM views JOIN pg_rewrite AS w ON w.ev_class = views.relid
         JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
         LEFT JOIN pg_type AS t ON d.refclassid = 'pg_type'::regclass AND t.oid = d.refobjid
         LEFT JOIN pg_operator AS o ON d.refclassid = 'pg_operator'::regclass AND o.oid = d.refobjid
     WHERE d.refclassid IN ('pg_type'::regclass, 'pg_operator'::regclass)),
    (SELECT string_agg(concat_ws(' ', oid, xmin), ',' ORDER BY oid) FROM pg_collation WHERE oid >= 16384),
    (SELECT string_agg(concat_ws(' ', oid, nspname), ',' ORDER BY oid) FROM pg_namespace
     WHERE oid >= 16384 AND NOT starts_with(nspname::text, 'pg_')),
    (SELECT string_agg(oid::text, ',' ORDER BY oid) FROM pg_extension
     WHERE extnamespace = 'pgtrickle_state'::regnamespace),
    (SELECT full_reason FROM stream_table), (SELECT view_stamp FROM stream_table)))
"""

# The same beside what else is asked at the beginning of a refresh in one transaction.
STANDING = f"""
WITH asked AS MATERIALIZED (
    SELECT %(cut)s::boolean AS cut, %(needed)s::text[] AS needed
)
SELECT s.stamp,
    (SELECT bool_and(to_regclass(name) IS NOT NULL) FROM asked, unnest(asked.needed) AS name) IS NOT FALSE,
    c.snapshot::text, c.xid::text, c.pos, c.lsn::text
FROM ({STAMP}) AS s (stamp) LEFT JOIN pgtrickle.current_cut() AS c ON (SELECT asked.cut FROM asked)
"""


@dataclass(frozen=True, slots=True)
class Standing:
    """The stamp of a definition, whether all tables that its refresh needs are there, and the cut, if asked for."""

    stamp: str
    complete: bool
    cut: Cut | None


def definition_stamp(connection: psycopg.Connection, pgt_id: int) -> str:
    """Return a text that differs whenever the definition of a stream table would."""
    row = connection.execute(STAMP, {"pgt_id": pgt_id}, prepare=True).fetchone()
    return str(row[0]) if row else ""


def ask_standing(connection: psycopg.Connection, pgt_id: int, needed: list[str], cut: bool) -> psycopg.Cursor:
    """Ask for the stamp, whether the tables that are `needed` are there, and the current `cut`; see `standing`."""
    return connection.execute(STANDING, {"pgt_id": pgt_id, "needed": needed, "cut": cut}, prepare=True)


def standing(asked: psycopg.Cursor) -> Standing:
    """Return what was asked for."""
    stamp, complete, *cut = asked.fetchone() or (None, False, None)
    return Standing(str(stamp or ""), complete, Cut(*cut) if cut[0] else None)
