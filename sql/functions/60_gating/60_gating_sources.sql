-- Which watermark groups concern a stream table, and how. Asked for every stream table at every tick: PL/pgSQL keeps
-- the plans.

CREATE OR REPLACE FUNCTION pgtrickle_private.upstream_tables(p_pgt_id bigint) RETURNS TABLE (pgt_id bigint)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN QUERY
    WITH RECURSIVE upstream(id) AS (
        SELECT p_pgt_id
        UNION
        SELECT t.pgt_id FROM upstream AS u JOIN pgt_dependencies AS d ON d.pgt_id = u.id
        JOIN pgt_stream_tables AS t ON t.pgt_relid = d.source_relid)
    SELECT id FROM upstream;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.upstream_tables(bigint) IS
    'The stream table and all stream tables it reads, at any depth.';

CREATE OR REPLACE FUNCTION pgtrickle_private.base_sources(p_pgt_id bigint) RETURNS TABLE (source regclass)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN QUERY
    SELECT DISTINCT d.source_relid FROM upstream_tables(p_pgt_id) AS u JOIN pgt_dependencies AS d USING (pgt_id)
    WHERE NOT EXISTS (SELECT FROM pgt_stream_tables AS t WHERE t.pgt_relid = d.source_relid);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.base_sources(bigint) IS 'The tables a stream table is made of, at any depth.';

CREATE OR REPLACE FUNCTION pgtrickle_private.overlapping_groups(p_pgt_id bigint)
    RETURNS TABLE (group_id integer, overlap bigint)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN QUERY
    SELECT g.group_id, count(*) FROM base_sources(p_pgt_id) AS b
        JOIN pgt_watermark_groups AS g ON b.source = ANY (g.sources) GROUP BY g.group_id;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.overlapping_groups(bigint) IS
    'Groups with a source the stream table is made of, and how many such sources.';

CREATE OR REPLACE FUNCTION pgtrickle_private.gating_scope(
        p_pgt_id bigint, OUT gating text, OUT groups integer[], OUT sources regclass[], OUT upstream bigint[])
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    least_overlap bigint;
BEGIN
    SELECT t.watermark_gating, CASE t.watermark_gating WHEN 'auto' THEN 2 WHEN 'none' THEN NULL ELSE 1 END
    INTO gating, least_overlap FROM pgt_stream_tables AS t WHERE t.pgt_id = p_pgt_id;
    upstream := ARRAY(SELECT u.pgt_id FROM upstream_tables(p_pgt_id) AS u);
    sources := ARRAY(
        SELECT DISTINCT d.source_relid FROM pgt_dependencies AS d
        WHERE d.pgt_id = ANY (upstream)
            AND NOT EXISTS (SELECT FROM pgt_stream_tables AS t WHERE t.pgt_relid = d.source_relid));
    groups := ARRAY(
        SELECT g.group_id FROM pgt_watermark_groups AS g
        -- What most groups have nothing to do with is not counted.
        WHERE g.sources && gating_scope.sources
            AND (SELECT count(*) FROM unnest(g.sources) AS s WHERE s = ANY (gating_scope.sources))
                >= least(least_overlap, CASE WHEN least_overlap IS NOT NULL THEN cardinality(g.sources) END)
        ORDER BY g.group_name);
    IF gating = 'auto' THEN
        gating := CASE WHEN groups = '{}' THEN 'none' ELSE 'gate' END;
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.gating_scope(bigint) IS
    'none, gate or hold_back: what watermark_gating amounts to, auto gates where two sources of one group meet, or '
    'all of it if it has only one; the '
    'groups the stream table has to heed; '
    'the tables it is made of, and the stream tables it reads at any depth with itself.';

CREATE OR REPLACE FUNCTION pgtrickle_private.gating_groups(p_pgt_id bigint) RETURNS TABLE (group_id integer)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN QUERY SELECT g FROM gating_scope(p_pgt_id) AS s CROSS JOIN LATERAL unnest(s.groups) AS g;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.gating_groups(bigint) IS 'Groups the stream table has to heed.';

CREATE OR REPLACE FUNCTION pgtrickle_private.check_hold_back() RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    conflict record;
BEGIN
    SELECT format('%I.%I', d.pgt_schema, d.pgt_name) AS dependent,
        format('%I.%I', u.pgt_schema, u.pgt_name) AS upstream INTO conflict
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
COMMENT ON FUNCTION pgtrickle_private.check_hold_back() IS
    'Error 55000 if a hold_back stream table reads one that may show rows beyond its cut.';

-- A source that is not captured is read as it is, whatever its watermark says.
CREATE OR REPLACE FUNCTION pgtrickle_private.read_whole(readers bigint[], grouped regclass[],
        OUT reader text, OUT source text, OUT obstacle text)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    SELECT format('%I.%I', t.pgt_schema, t.pgt_name), last_name(d.source_relid), COALESCE(
        (SELECT s.obstacle FROM query_sources(t.view_relid) AS s WHERE s.source_relid = d.source_relid),
        'is not captured yet') INTO reader, source, obstacle
    FROM pgt_dependencies AS d JOIN pgt_stream_tables AS t USING (pgt_id)
    WHERE d.pgt_id = ANY (readers) AND d.source_relid = ANY (grouped) AND d.source_type = 'UNCAPTURED'
    ORDER BY d.pgt_id, d.source_relid::oid LIMIT 1;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.read_whole(bigint[], regclass[]) IS
    'A source of a watermark group that one of these stream tables reads as a whole, and why it cannot be captured, as '
    'part of a sentence; all NULL if none.';

CREATE OR REPLACE FUNCTION pgtrickle_private.check_held_sources(readers bigint[], only_group integer DEFAULT NULL)
    RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    held CONSTANT bigint[] := ARRAY(SELECT t.pgt_id FROM pgt_stream_tables AS t
        WHERE t.watermark_gating = 'hold_back' AND (readers IS NULL OR t.pgt_id = ANY (readers)));
    conflict record;
BEGIN
    SELECT g.group_name, w.* INTO conflict
    FROM pgt_watermark_groups AS g CROSS JOIN LATERAL read_whole(held, g.sources) AS w
    WHERE w.source IS NOT NULL AND g.group_id = COALESCE(only_group, g.group_id)
    ORDER BY g.group_name LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION '% cannot hold back: % %', conflict.reader, conflict.source, conflict.obstacle
            USING ERRCODE = '55000', CONSTRAINT = 'hold_back_source',
                  HINT = format('Use watermark_gating => ''gate'' or ''none'' for %s, or leave %s out of watermark '
                      'group %L.', conflict.reader, conflict.source, conflict.group_name);
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_held_sources(bigint[], integer) IS
    'Error 55000 if one of these hold_back stream tables, or with NULL any, reads a source of a watermark group, or of '
    'this one, as a whole: it would show rows beyond its cut.';

-- At a cut its text is read instead of the hidden view, in which PostgreSQL has settled every name.
CREATE OR REPLACE FUNCTION pgtrickle_private.check_held_query(p_pgt_id bigint) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    held CONSTANT pgt_stream_tables := (SELECT t FROM pgt_stream_tables AS t
        WHERE t.pgt_id = p_pgt_id AND t.watermark_gating = 'hold_back');
    found CONSTANT text := CASE WHEN held.view_relid IS NOT NULL THEN unwrapped_dependence(held.view_relid) END;
BEGIN
    IF found IS NOT NULL THEN
        RAISE EXCEPTION '% cannot hold back: its query uses %', format('%I.%I', held.pgt_schema, held.pgt_name), found
            USING ERRCODE = '0A000', CONSTRAINT = 'query_refused',
                  HINT = 'Use watermark_gating => ''gate'' or ''none'' for this stream table.';
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_held_query(bigint) IS
    'Error 0A000 if a hold_back stream table cannot be read at a cut, since its query follows the search_path.';

CREATE OR REPLACE FUNCTION pgtrickle_private.warn_of_no_group(p_pgt_id bigint) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    name CONSTANT text := (SELECT format('%I.%I', t.pgt_schema, t.pgt_name) FROM pgt_stream_tables AS t
        WHERE t.pgt_id = p_pgt_id AND t.watermark_gating = 'hold_back');
BEGIN
    IF name IS NOT NULL AND NOT EXISTS (SELECT FROM gating_groups(p_pgt_id)) THEN
        RAISE WARNING '% holds nothing back: no watermark group concerns it', name
            USING HINT = 'Create a watermark group over its sources.';
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.warn_of_no_group(bigint) IS
    'A warning for a stream table that is to hold back, and has no group that could tell how far.';
