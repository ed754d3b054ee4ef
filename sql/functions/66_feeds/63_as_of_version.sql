-- A source or stream table as of an earlier version: its rows now, without what came since.

-- The name of a table would mean its column of that name, if it has one, so a row is written as its columns.
-- A row in the buffer that is not covered came or went since the version. What nets to more than nothing is left out of
-- the rows, copy by copy, and what nets to less is added. Rows have no equality where a column has none, such as json,
-- so only their texts are compared. PostgreSQL does not know how many have changed: it must not loop over them.
CREATE OR REPLACE FUNCTION pgtrickle_private.as_of_query(relation regclass) RETURNS text
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT format($template$
        WITH since AS MATERIALIZED (
            SELECT c.pgt_text, sum(c.pgt_weight) AS copies, (array_agg(c.pgt_row))[1] AS pgt_row
            FROM (SELECT c.pgt_weight, ROW(%1$s)::%2$s AS pgt_row, (ROW(%1$s)::%2$s)::text AS pgt_text FROM %3$s AS c
                WHERE c.pgt_xid >= pg_snapshot_xmin(($1).snapshot)::text::xid8
                    AND NOT pgtrickle.covers($1, c.pgt_xid, c.pgt_pos)) AS c
            WHERE $2 = 1 OR mod(hashtextextended(c.pgt_text, 0) & 9223372036854775807, $2) = $3
            GROUP BY c.pgt_text HAVING sum(c.pgt_weight) <> 0),
        now AS NOT MATERIALIZED (
            SELECT ROW(%1$s)::%2$s AS pgt_row, (ROW(%1$s)::%2$s)::text AS pgt_text FROM %2$s AS c
            WHERE $2 = 1 OR mod(hashtextextended((ROW(%1$s)::%2$s)::text, 0) & 9223372036854775807, $2) = $3)
        SELECT (n.pgt_row).* FROM now AS n
        WHERE NOT EXISTS (SELECT FROM since AS s WHERE s.pgt_text = n.pgt_text AND s.copies > 0)
        UNION ALL
        SELECT (k.pgt_row).* FROM (
            SELECT (array_agg(s.pgt_row))[1] AS pgt_row, count(*) - min(s.copies) AS copies
            FROM now AS n JOIN since AS s USING (pgt_text) WHERE s.copies > 0 GROUP BY s.pgt_text) AS k
            CROSS JOIN generate_series(1, k.copies)
        UNION ALL
        SELECT (s.pgt_row).* FROM since AS s CROSS JOIN generate_series(1, -s.copies) WHERE s.copies < 0$template$,
        (SELECT string_agg(format('c.%I', a.attname), ', ' ORDER BY a.attnum) FROM pg_attribute AS a
            WHERE a.attrelid = relation AND a.attnum > 0 AND NOT a.attisdropped),
        relation, feed_view(relation))
$$;
COMMENT ON FUNCTION pgtrickle_private.as_of_query(regclass) IS
    'Query for the rows of a relation at the cut $1; of $2 parts, by the text of the rows, only part $3.';

CREATE OR REPLACE FUNCTION pgtrickle_private.cut_of_version(relation regclass, wanted bigint) RETURNS pgtrickle.cut
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT v.cut FROM versions_of(relation) AS v WHERE v.version = wanted
$$;
COMMENT ON FUNCTION pgtrickle_private.cut_of_version(regclass, bigint) IS
    'The changes that lead to a version.';

-- TRUNCATE and what rewrites a table empties it for older snapshots too. The relation is locked by now.
CREATE OR REPLACE FUNCTION pgtrickle_private.check_not_rewritten(relation regclass) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF EXISTS (
        WITH RECURSIVE parts(oid) AS (
            SELECT relation::oid UNION SELECT i.inhrelid FROM parts AS p JOIN pg_inherits AS i ON i.inhparent = p.oid)
        SELECT FROM parts AS p LEFT JOIN pg_class AS c USING (oid)
        WHERE c.oid IS NULL OR c.relkind = 'r' AND c.relfilenode <> pg_relation_filenode(c.oid)) THEN
        RAISE EXCEPTION '% was truncated or rewritten while it was read', relation
            USING ERRCODE = '40001', CONSTRAINT = 'rewritten', HINT = 'Read it again.';
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_not_rewritten(regclass) IS
    'Error 40001 if a snapshot no longer sees the rows that a relation had.';

CREATE OR REPLACE FUNCTION pgtrickle.as_of_version(
        relation anyelement, version bigint, parts integer DEFAULT 1, part integer DEFAULT 0) RETURNS SETOF anyelement
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
    SET TimeZone = 'UTC' SET DateStyle = 'ISO' SET IntervalStyle = 'postgres' SET extra_float_digits = 1
    SET bytea_output = 'hex' SET jit = off SET enable_nestloop = off
AS $$
DECLARE
    source CONSTANT regclass := (SELECT t.typrelid FROM pg_type AS t WHERE t.oid = pg_typeof(relation)
        AND t.typrelid <> 0);
BEGIN
    IF source IS NULL OR version IS NULL THEN
        PERFORM refuse_value(CASE WHEN source IS NULL THEN 'relation' ELSE 'version' END, NULL,
            'Call it like pgtrickle.as_of_version(NULL::sales, 12).');
    ELSIF (parts > 0 AND part >= 0 AND part < parts) IS NOT TRUE THEN
        PERFORM refuse_value('part', part::text, 'Parts are numbered from 0, and there is at least one.');
    END IF;
    PERFORM check_reads_all(current_user, source, 'read earlier versions of');
    PERFORM check_version(source, version);
    RETURN QUERY EXECUTE as_of_query(source) USING cut_of_version(source, version), parts::bigint, part::bigint;
    PERFORM check_same_buffer(source), check_not_rewritten(source);
END
$$;
COMMENT ON FUNCTION pgtrickle.as_of_version(anyelement, bigint, integer, integer) IS
    'The rows of a source or stream table as of a version, by its row type: NULL::sales. Of several parts only one: '
    'together they are all rows, whenever each is read. Needs SELECT on the relation, no policy that hides rows, and a '
    'feed; error 55000 if the changes since are no longer kept.';

CREATE OR REPLACE FUNCTION pgtrickle_private.check_group_at(relation regclass, name text, wanted pgtrickle.progress)
    RETURNS void
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    found pgt_watermark_groups;
    members progress[];
    member regclass;
    reached bigint;
BEGIN
    SELECT g.* INTO found FROM pgt_watermark_groups AS g WHERE g.group_name = name;
    IF relation = ANY (found.sources) IS NOT TRUE THEN
        RAISE EXCEPTION '% is in no watermark group %', relation, COALESCE(quote_literal(name), 'NULL')
            USING ERRCODE = '42704', CONSTRAINT = 'unknown_watermark_group',
                HINT = 'pgtrickle.watermark_groups() lists the groups and their sources.';
    END IF;
    FOREACH member IN ARRAY found.sources LOOP
        reached := version_at(member, wanted);
        members := members || (SELECT v.progress FROM versions_of(member) AS v WHERE v.version = reached);
    END LOOP;
    IF EXISTS (SELECT FROM unnest(members) AS a CROSS JOIN unnest(members) AS b
        WHERE is_before(beyond(a::progress, ROW(found.tolerance, found.batch_tolerance)::distance), b::progress)) THEN
        RAISE EXCEPTION 'the sources of group % do not agree at %', quote_literal(name), progress_text(wanted)
            USING ERRCODE = '55000', CONSTRAINT = 'not_fresh',
                HINT = 'Ask for a watermark at which they agree: pgtrickle.watermark_status() shows the newest.';
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_group_at(regclass, text, pgtrickle.progress) IS
    'Error 55000 unless all sources of a watermark group are complete through this, and agree there; 42704 where the '
    'relation is none of them.';
