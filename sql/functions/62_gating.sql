-- The gating decision: the only one, for the refresher, the status functions and explain.

CREATE OR REPLACE FUNCTION pgtrickle.gate_group(
        p_pgt_id integer, p_group_id integer,
        OUT decision text, OUT reason text, OUT waiting_for text, OUT effective_watermark timestamptz, OUT caps jsonb)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
    SET TimeZone = 'UTC' SET DateStyle = 'ISO' SET IntervalStyle = 'postgres'
AS $$
DECLARE
    alignment record;
BEGIN
    SELECT * INTO alignment FROM group_alignment() AS a WHERE a.group_id = p_group_id;
    decision := 'run';
    caps := '{}';
    IF alignment.aligned IS NULL THEN
        waiting_for := array_to_string(alignment.never_advanced, ', ');
        reason := format('%s: %s never advanced', alignment.group_name, waiting_for);
        IF (SELECT t.require_watermark FROM pgt_stream_tables AS t WHERE t.pgt_id = p_pgt_id) THEN
            decision := 'waiting';
        END IF;
        RETURN;
    END IF;
    effective_watermark := alignment.min_watermark;
    reason := format('%s: aligned at %s', alignment.group_name, alignment.min_watermark);
    IF NOT alignment.aligned THEN
        decision := 'gated';
        waiting_for := alignment.slowest;
        reason := format('%s: %s is %s behind %s, tolerance %s',
                         alignment.group_name, alignment.slowest, alignment.lag, alignment.fastest, alignment.tolerance);
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle.gate_group(integer, integer) IS
    'What one group asks of a gated stream table: whether it may refresh.';

CREATE OR REPLACE FUNCTION pgtrickle.gating_decision(
        p_pgt_id integer,
        OUT gating text, OUT decision text, OUT reason text, OUT waiting_for text, OUT effective_watermark timestamptz, OUT caps jsonb)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
DECLARE
    verdict record;
BEGIN
    gating := gating_mode(p_pgt_id);
    decision := 'run';
    caps := '{}';
    IF gating IS NULL THEN
        RAISE EXCEPTION 'there is no stream table number %', p_pgt_id
            USING ERRCODE = '42704', CONSTRAINT = 'unknown_stream_table', HINT = 'It may have been dropped meanwhile.';
    END IF;
    FOR verdict IN
        SELECT v.* FROM gating_groups(p_pgt_id) AS g JOIN pgt_watermark_groups AS w USING (group_id)
        CROSS JOIN LATERAL (
            SELECT * FROM hold_back_group(p_pgt_id, g.group_id) WHERE gating = 'hold_back'
            UNION ALL
            SELECT * FROM gate_group(p_pgt_id, g.group_id) WHERE gating = 'gate') AS v
        ORDER BY w.group_name
    LOOP
        -- A gate that is shut outweighs a wait, and both outweigh a group that is content.
        decision := CASE WHEN 'gated' IN (decision, verdict.decision) THEN 'gated'
                         WHEN 'waiting' IN (decision, verdict.decision) THEN 'waiting' ELSE 'run' END;
        reason := concat_ws('; ', reason, verdict.reason);
        waiting_for := concat_ws(', ', NULLIF(waiting_for, ''), verdict.waiting_for);
        effective_watermark := least(effective_watermark, verdict.effective_watermark);
        caps := lower_caps(caps, verdict.caps);
    END LOOP;
    reason := COALESCE(reason, CASE gating WHEN 'none' THEN 'not gated' ELSE 'no watermark group concerns it' END);
    waiting_for := NULLIF(waiting_for, '');
END
$$;
COMMENT ON FUNCTION pgtrickle.gating_decision(integer) IS
    'Whether a stream table may refresh now (run, gated or waiting), why, the event time it will be complete through, '
    'and the cut at which each capped direct source must be read; sources not in caps are read at the snapshot.';
