-- The numbers of captured columns tell two apart that swap their names. Run once and never edited afterwards.

UPDATE pgtrickle.pgt_change_tracking AS t
SET captured_columns = (
    SELECT jsonb_object_agg(c.key, c.value || jsonb_strip_nulls(jsonb_build_object('attnum', a.attnum)))
    FROM jsonb_each(t.captured_columns) AS c
        LEFT JOIN pg_catalog.pg_attribute AS a ON a.attrelid = t.source_relid AND a.attname = c.key)
WHERE t.captured_columns <> '{}';
COMMENT ON COLUMN pgtrickle.pgt_change_tracking.captured_columns IS
    'By the name of a captured column: since which transaction, and position in it, it is captured, and its number in '
    'the table.';
