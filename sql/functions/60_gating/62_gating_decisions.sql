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

-- Where nothing can gate, what a stream table is made of at any depth does not matter.
CREATE OR REPLACE FUNCTION pgtrickle_private.gating_decisions(p_pgt_id bigint)
    RETURNS TABLE (pgt_id bigint, gating text, decision text, reason text, waiting_for text,
        effective_watermark timestamptz, caps jsonb, deadline_passed boolean, effective_batch bigint, let_through jsonb)
    LANGUAGE plpgsql STABLE ROWS 100 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    IF anything_gates() THEN
        RETURN QUERY SELECT t.pgt_id, d.*
        FROM pgt_stream_tables AS t CROSS JOIN LATERAL gating_decision(t.pgt_id) AS d
        WHERE p_pgt_id IS NULL OR t.pgt_id = p_pgt_id;
    ELSE
        RETURN QUERY SELECT t.pgt_id, m.gating, 'run', without_groups(m.gating), NULL::text,
            CASE WHEN t.frozen_after IS NOT NULL
                THEN ungated_watermark(t.pgt_id, ARRAY(SELECT u.pgt_id FROM upstream_tables(t.pgt_id) AS u)) END,
            '{}'::jsonb, false, NULL::bigint, '{}'::jsonb
        FROM pgt_stream_tables AS t
            CROSS JOIN LATERAL (SELECT CASE t.watermark_gating WHEN 'auto' THEN 'none' ELSE t.watermark_gating END)
                AS m (gating)
        WHERE p_pgt_id IS NULL OR t.pgt_id = p_pgt_id;
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.gating_decisions(bigint) IS
    'The gating decision of one stream table, or of each of them, as gating_decision gives it.';
