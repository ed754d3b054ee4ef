-- The gating decisions of all stream tables at once, as every tick asks for them.

CREATE OR REPLACE FUNCTION pgtrickle_private.anything_gates() RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN EXISTS (SELECT FROM pgt_watermark_groups) OR EXISTS (SELECT FROM pgt_source_limits)
        OR EXISTS (SELECT FROM pgt_source_gates WHERE ungated_at IS NULL);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.anything_gates() IS
    'Whether there is anything that could keep a stream table from being refreshed.';

-- A superset does no harm: of others than these the decision is known without looking.
CREATE OR REPLACE FUNCTION pgtrickle_private.judged_tables() RETURNS bigint[]
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN ARRAY(
        WITH RECURSIVE concerned(source) AS MATERIALIZED (
            SELECT unnest(g.sources) FROM pgt_watermark_groups AS g
            UNION SELECT l.source_relid FROM pgt_source_limits AS l
            UNION SELECT s.source_relid FROM pgt_source_gates AS s WHERE s.ungated_at IS NULL
        ), judged(id) AS (
            (SELECT d.pgt_id FROM pgt_dependencies AS d JOIN concerned AS c ON c.source = d.source_relid
             UNION SELECT t.pgt_id FROM pgt_stream_tables AS t WHERE t.frozen_after IS NOT NULL)
            UNION
            SELECT d.pgt_id FROM judged AS j JOIN pgt_stream_tables AS t ON t.pgt_id = j.id
            JOIN pgt_dependencies AS d ON d.source_relid = t.pgt_relid)
        SELECT id FROM judged);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.judged_tables() IS
    'The stream tables that are made, at any depth, of a source in a watermark group, under a limit or under a gate, '
    'and those with frozen rows: watermarks, gates or the clock decide about them.';

-- What decides takes single rows by their keys: to plan it anew for each stream table would take longer than to run it.
CREATE OR REPLACE FUNCTION pgtrickle_private.gating_decisions(p_pgt_ids bigint[])
    RETURNS TABLE (pgt_id bigint, gating text, decision text, reason text, waiting_for text,
        effective_watermark timestamptz, caps jsonb, deadline_passed boolean, effective_batch bigint, let_through jsonb)
    LANGUAGE plpgsql STABLE ROWS 100 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
    wanted CONSTANT bigint[] := COALESCE(p_pgt_ids, ARRAY(SELECT t.pgt_id FROM pgt_stream_tables AS t));
    -- About one alone its decision says more quickly whether anything concerns it.
    concerned CONSTANT bigint[] := CASE WHEN cardinality(p_pgt_ids) = 1 THEN p_pgt_ids ELSE judged_tables() END;
    judged CONSTANT bigint[] := ARRAY(SELECT unnest(wanted) INTERSECT SELECT unnest(concerned));
BEGIN
    RETURN QUERY SELECT t.pgt_id, d.*
    FROM unnest(judged) AS j JOIN pgt_stream_tables AS t ON t.pgt_id = j
        CROSS JOIN LATERAL gating_decision(t.pgt_id) AS d;
    RETURN QUERY SELECT t.pgt_id, d.*
    FROM (SELECT unnest(wanted) EXCEPT SELECT unnest(judged)) AS f (id) JOIN pgt_stream_tables AS t ON t.pgt_id = f.id
        CROSS JOIN LATERAL free_decision(t.watermark_gating) AS d;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.gating_decisions(bigint[]) IS
    'The gating decisions of some stream tables, or with NULL of all, as gating_decision makes them; those that '
    'nothing could hold back are not looked into.';
