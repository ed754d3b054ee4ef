-- What an earlier version computed otherwise is computed anew once. Run once and never edited afterwards.

-- A group whose key has equal values that look different, such as 1 and 1.00, keeps the value that it shows beside the
-- key now. And min() and max() of texts of which a collation holds different ones for equal may have stayed behind.
-- INTERSECT and EXCEPT ALL show the value that the left side has.
UPDATE pgtrickle.pgt_stream_tables AS t
SET reinitialize_reason = COALESCE(t.reinitialize_reason, 'an earlier version computed some of it otherwise')
WHERE t.status <> 'INITIALIZING' AND (pg_get_viewdef(t.view_relid::oid) ~ '\mINTERSECT\M|\mEXCEPT ALL\M' OR EXISTS (
    SELECT FROM pg_attribute AS a LEFT JOIN pg_collation AS l ON l.oid = a.attcollation
    WHERE a.attrelid = to_regclass(format('pgtrickle_state.state_%s', t.pgt_id)) AND a.attnum > 0
        AND NOT a.attisdropped AND (
            (a.attname ~ '^k\d+$' AND (
                l.collname <> 'default'
                OR (a.atttypid::regtype NOT IN (
                        'smallint', 'integer', 'bigint', 'boolean', 'date', 'timestamp', 'timestamptz', 'time', 'uuid',
                        'bytea', 'oid', 'text', 'varchar', 'name')
                    AND NOT (a.atttypid::regtype IN ('numeric', 'bpchar') AND a.atttypmod <> -1))))
            OR (a.attname ~ '^c\d+_v$' AND NOT l.collisdeterministic))));
