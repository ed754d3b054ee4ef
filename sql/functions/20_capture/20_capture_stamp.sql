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

-- Rows of the system catalogs carry the transaction that wrote them: what was altered and altered back looks the same
-- but for that. No column that is captured can be rewritten: the hidden view depends on it. A refresh may have read the
-- source while a partition was detached. Left to itself, PostgreSQL would look up all partitions for each of them.
CREATE OR REPLACE FUNCTION pgtrickle_private.capture_stamp(source regclass, mode text) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT concat_ws(' ', md5(concat_ws(';', string_agg(concat(t.oid, ' ', t.xmin), ',' ORDER BY t.oid), (
        SELECT string_agg(concat(i.inhparent, ' ', i.inhrelid, ' ', i.xmin), ',' ORDER BY i.inhparent, i.inhrelid)
        FROM pg_inherits AS i, (SELECT capture_relations(source) OFFSET 0) AS r(relids)
        WHERE i.inhparent = ANY (r.relids) AND i.inhrelid = ANY (r.relids)))),
        CASE WHEN mode = 'statement' THEN column_stamps(source) END)
    FROM capture_triggers(source, mode) AS e JOIN pg_trigger AS t ON t.tgrelid = e.relation
        AND t.tgname = e.trigger_name
$$;
COMMENT ON FUNCTION pgtrickle_private.capture_stamp(regclass, text) IS
    'A text that changes when a capture trigger is altered, or a partition or child detached and attached again, which '
    'its first word tells; the others are column_stamps().';

