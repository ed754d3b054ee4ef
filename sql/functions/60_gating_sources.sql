-- Which watermark groups concern a stream table, and how.

CREATE OR REPLACE FUNCTION pgtrickle.upstream_tables(p_pgt_id integer) RETURNS TABLE (pgt_id integer)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
    WITH RECURSIVE upstream(id) AS (
        SELECT p_pgt_id
        UNION
        SELECT t.pgt_id FROM upstream JOIN pgt_dependencies AS d ON d.pgt_id = upstream.id
        JOIN pgt_stream_tables AS t ON t.pgt_relid = d.source_relid)
    SELECT id FROM upstream
$$;
COMMENT ON FUNCTION pgtrickle.upstream_tables(integer) IS
    'The stream table and all stream tables it reads, at any depth.';

CREATE OR REPLACE FUNCTION pgtrickle.base_sources(p_pgt_id integer) RETURNS TABLE (source regclass)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
    SELECT DISTINCT d.source_relid FROM upstream_tables(p_pgt_id) AS u JOIN pgt_dependencies AS d USING (pgt_id)
    WHERE NOT EXISTS (SELECT FROM pgt_stream_tables AS t WHERE t.pgt_relid = d.source_relid)
$$;
COMMENT ON FUNCTION pgtrickle.base_sources(integer) IS 'The tables a stream table is made of, at any depth.';

CREATE OR REPLACE FUNCTION pgtrickle.overlapping_groups(p_pgt_id integer) RETURNS TABLE (group_id integer, overlap bigint)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
    SELECT g.group_id, count(*) FROM base_sources(p_pgt_id) AS b JOIN pgt_watermark_groups AS g ON b.source = ANY (g.sources) GROUP BY g.group_id
$$;
COMMENT ON FUNCTION pgtrickle.overlapping_groups(integer) IS
    'Groups with a source the stream table is made of, and how many such sources.';

CREATE OR REPLACE FUNCTION pgtrickle.gating_mode(p_pgt_id integer) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
    SELECT CASE WHEN t.watermark_gating <> 'auto' THEN t.watermark_gating
                WHEN EXISTS (SELECT FROM overlapping_groups(p_pgt_id) WHERE overlap >= 2) THEN 'gate'
                ELSE 'none' END
    FROM pgt_stream_tables AS t WHERE t.pgt_id = p_pgt_id
$$;
COMMENT ON FUNCTION pgtrickle.gating_mode(integer) IS
    'none, gate or hold_back: what watermark_gating amounts to. auto gates where two sources of one group meet.';

CREATE OR REPLACE FUNCTION pgtrickle.gating_groups(p_pgt_id integer) RETURNS TABLE (group_id integer)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
    SELECT o.group_id FROM overlapping_groups(p_pgt_id) AS o JOIN pgt_stream_tables AS t ON t.pgt_id = p_pgt_id
    WHERE gating_mode(p_pgt_id) <> 'none' AND o.overlap >= CASE t.watermark_gating WHEN 'auto' THEN 2 ELSE 1 END
$$;
COMMENT ON FUNCTION pgtrickle.gating_groups(integer) IS 'Groups the stream table has to heed.';

CREATE OR REPLACE FUNCTION pgtrickle.check_hold_back() RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
DECLARE
    conflict record;
BEGIN
    SELECT format('%I.%I', d.pgt_schema, d.pgt_name) AS dependent, format('%I.%I', u.pgt_schema, u.pgt_name) AS upstream INTO conflict
    FROM pgt_stream_tables AS d
    CROSS JOIN LATERAL upstream_tables(d.pgt_id) AS up JOIN pgt_stream_tables AS u ON u.pgt_id = up.pgt_id
    WHERE d.watermark_gating = 'hold_back' AND u.watermark_gating <> 'hold_back'
        AND EXISTS (SELECT FROM overlapping_groups(u.pgt_id))
    ORDER BY d.pgt_id, u.pgt_id LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION '% cannot hold back: it reads %, which shows more', conflict.dependent, conflict.upstream
            USING ERRCODE = '55000', CONSTRAINT = 'hold_back_upstream',
                  HINT = format('Set watermark_gating => ''hold_back'' on %s too.', conflict.upstream);
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle.check_hold_back() IS
    'Error 55000 if a hold_back stream table reads one that may show rows beyond its cut.';
