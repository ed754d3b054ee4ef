-- The leader holds a lock on a view, which VACUUM of the whole database passes over. Run once and never edited afterwards.

DROP TABLE pgtrickle.pgt_leader;
CREATE VIEW pgtrickle.pgt_leader AS SELECT;
COMMENT ON VIEW pgtrickle.pgt_leader IS
    'The refresher that leads holds a lock on this view, which nobody else may lock. It is none on a table: VACUUM, '
    'ANALYZE and REINDEX of the whole database would wait for that.';
