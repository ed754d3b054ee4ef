-- What was altered, and altered back, before anybody looked.

-- To have a table inherit, and to end that, PostgreSQL writes its columns anew, but for the rest leaves them as they
-- were; what else writes a column changes something of it, or writes the whole table anew. A partition inherits from
-- nothing but its table.
CREATE OR REPLACE FUNCTION pgtrickle_private.column_stamps(source regclass) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT string_agg(format('%s.%s:%s:%s', a.attrelid, a.attnum, hash_record_extended(ROW(
            a.attname, a.atttypid, a.atttypmod, a.attcollation, a.attnotnull, a.atthasdef, a.atthasmissing,
            a.attidentity, a.attgenerated, a.attstattarget, a.attstorage, a.attcompression, a.attoptions, a.attacl,
            d.oid, d.xmin, c.relfilenode), 0), a.xmin), ' ' ORDER BY a.attrelid, a.attnum)
    FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE c.oid = ANY (capture_relations(source)) AND (c.oid = source OR NOT c.relispartition)
$$;
COMMENT ON FUNCTION pgtrickle_private.column_stamps(regclass) IS
    'The columns of a source and of its children, each with what it is like and the transaction that wrote it last.';

CREATE OR REPLACE FUNCTION pgtrickle_private.was_part_of_another(before text, now text) RETURNS boolean
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
    WITH columns AS MATERIALIZED (
        SELECT string_to_array(b.word, ':') AS before, string_to_array(n.word, ':') AS now
        FROM string_to_table(before, ' ') WITH ORDINALITY AS b(word, place)
            JOIN string_to_table(now, ' ') AS n(word) ON split_part(n.word, ':', 1) = split_part(b.word, ':', 1)
        WHERE b.place > 1)
    SELECT COALESCE(bool_or(r.unchanged OR r.complete), false)
    FROM (SELECT bool_or(before[2] = now[2] AND before[3] <> now[3]), bool_and(before[3] <> now[3]) FROM columns
        GROUP BY split_part(now[1], '.', 1)) AS r(unchanged, complete)
$$;
COMMENT ON FUNCTION pgtrickle_private.was_part_of_another(text, text) IS
    'By two capture stamps, whether a column was written anew without anything of it being changed, or all columns of '
    'a relation were written, so that nobody can tell.';

-- PostgreSQL lets nobody alter the type of a column that a hidden view names, but one that it only shows within whole
-- rows; and nothing but the rows themselves tells of ALTER TYPE ... USING with the type that the column had.
CREATE OR REPLACE FUNCTION pgtrickle_private.unguarded_columns(source regclass) RETURNS smallint[]
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN ARRAY(
        SELECT DISTINCT a.attnum
        FROM pgt_dependencies AS d JOIN pgt_stream_tables AS s USING (pgt_id)
            JOIN pg_attribute AS a ON a.attrelid = source AND a.attname = ANY (d.columns_used)
        WHERE d.source_relid = source AND NOT EXISTS (
            SELECT FROM views_below(s.view_relid) AS v(oid) JOIN pg_rewrite AS r ON r.ev_class = v.oid
                JOIN pg_depend AS p ON p.classid = 'pg_rewrite'::regclass AND p.objid = r.oid
            WHERE p.refclassid = 'pg_class'::regclass AND p.refobjid = source AND p.refobjsubid = a.attnum));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.unguarded_columns(regclass) IS
    'The columns of a source that a stream table reads, of which PostgreSQL lets its owner alter the type.';

CREATE OR REPLACE FUNCTION pgtrickle_private.was_rewritten(source regclass, before text, now text) RETURNS boolean
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    -- The file of its table is part of what a column is like: of a table that was written anew none is as it was.
    SELECT COALESCE(bool_and(b.word <> n.word)
        AND bool_or(split_part(b.word, ':', 3) <> split_part(n.word, ':', 3)
            AND split_part(substr(b.word, position('.' IN b.word) + 1), ':', 1)::smallint = ANY (u.numbers)), false)
    FROM (SELECT unguarded_columns(source) OFFSET 0) AS u(numbers),
        string_to_table(before, ' ') WITH ORDINALITY AS b(word, place)
        JOIN string_to_table(now, ' ') AS n(word) ON split_part(n.word, ':', 1) = split_part(b.word, ':', 1)
    WHERE b.place > 1 AND b.word LIKE source::oid || '.%'
$$;
COMMENT ON FUNCTION pgtrickle_private.was_rewritten(regclass, text, text) IS
    'By two capture stamps, whether a column that PostgreSQL does not keep as it is was altered, and the table written '
    'anew.';

-- Since PostgreSQL 17 an expression may be set, and set back, also in a child or a partition alone.
CREATE OR REPLACE FUNCTION pgtrickle_private.expression_stamps(source regclass) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT md5(string_agg(concat(d.oid, ' ', d.xmin), ',' ORDER BY d.oid))
    FROM pg_attrdef AS d JOIN pg_attribute AS a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
        JOIN pgt_change_tracking AS t ON t.source_relid = source AND t.captured_columns ? a.attname::text
    WHERE d.adrelid = ANY (capture_relations(source)) AND a.attgenerated = 's'
$$;
COMMENT ON FUNCTION pgtrickle_private.expression_stamps(regclass) IS
    'The expressions of captured columns that a source, its partitions and children store; NULL if there are none.';

-- Rows of the system catalogs carry the transaction that wrote them: what was altered and altered back looks the same
-- but for that. A refresh may have read the source while a partition was detached. Left to itself, PostgreSQL would
-- look up all partitions for each of them.
CREATE OR REPLACE FUNCTION pgtrickle_private.capture_stamp(source regclass, mode text) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT concat_ws(' ', md5(concat_ws(';', string_agg(concat(t.oid, ' ', t.xmin), ',' ORDER BY t.oid), (
        SELECT string_agg(concat(i.inhparent, ' ', i.inhrelid, ' ', i.xmin), ',' ORDER BY i.inhparent, i.inhrelid)
        FROM pg_inherits AS i, (SELECT capture_relations(source) OFFSET 0) AS r(relids)
        WHERE i.inhparent = ANY (r.relids) AND i.inhrelid = ANY (r.relids)))) || COALESCE(
            '/' || expression_stamps(source), ''), column_stamps(source))
    FROM capture_triggers(source, mode) AS e JOIN pg_trigger AS t ON t.tgrelid = e.relation
        AND t.tgname = e.trigger_name
$$;
COMMENT ON FUNCTION pgtrickle_private.capture_stamp(regclass, text) IS
    'A text that changes when a capture trigger is altered, or a partition or child detached and attached again, which '
    'its first word tells, behind a slash also with expression_stamps(); the others are column_stamps().';

