-- Introspection. SECURITY DEFINER so that a monitor needs no rights on the catalog; what might show data of sources
-- (errors) is read through views that show it to those only who may read it.

CREATE OR REPLACE FUNCTION pgtrickle.watermarks()
    RETURNS TABLE (source text, watermark timestamptz, advanced_at timestamptz, last_seen_at timestamptz,
        advanced_by text, lsn pg_lsn,
                   batch bigint, event_time text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT qualified_name(w.source_relid), w.watermark, w.advanced_at, w.last_seen_at, w.advanced_by, (w.cut).lsn,
        w.batch, e.column_name
    FROM pgt_watermarks AS w LEFT JOIN pgt_event_times AS e USING (source_relid) ORDER BY 1
$$;
COMMENT ON FUNCTION pgtrickle.watermarks() IS
    'The current watermark of each source, an event time or the number of a batch, when it moved, when its loader was '
    'last seen, and the column that is its event time, if one is declared.';

CREATE OR REPLACE FUNCTION pgtrickle.watermark_history(source regclass)
    RETURNS TABLE (watermark timestamptz, advanced_at timestamptz, advanced_by text, lsn pg_lsn, batch bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT h.watermark, h.advanced_at, h.advanced_by, (h.cut).lsn, h.batch FROM pgt_watermark_history AS h
    WHERE h.source_relid = source ORDER BY h.progress DESC
$$;
COMMENT ON FUNCTION pgtrickle.watermark_history(regclass) IS 'Every advance of a source, newest first.';

CREATE OR REPLACE FUNCTION pgtrickle.watermark_groups()
    RETURNS TABLE (group_name text, sources text[], tolerance interval, created_at timestamptz, stale_after interval,
        on_stale text, idle_after interval,
                   batch_tolerance bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT g.group_name, ARRAY(SELECT qualified_name(s) FROM unnest(g.sources) AS s), g.tolerance, g.created_at,
        g.stale_after, g.on_stale, g.idle_after,
           g.batch_tolerance
    FROM pgt_watermark_groups AS g ORDER BY 1
$$;
COMMENT ON FUNCTION pgtrickle.watermark_groups() IS
    'The watermark groups. One with a batch_tolerance goes by batch numbers.';

CREATE OR REPLACE FUNCTION pgtrickle_private.not_held_back(p_group_id integer)
    RETURNS TABLE (stream_table regclass, waiting_for text, reason text)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT t.pgt_relid, h.waiting_for, h.reason
    FROM pgt_watermark_groups AS g CROSS JOIN pgt_stream_tables AS t CROSS JOIN LATERAL gating_scope(t.pgt_id) AS s
    CROSS JOIN LATERAL hold_back_group(t.pgt_id, p_group_id, s.upstream) AS h
    WHERE g.group_id = p_group_id AND t.watermark_gating = 'hold_back' AND p_group_id = ANY (s.groups)
        AND h.let_through IS NULL
        AND tolerance_of(t, g) = tolerance_of(NULL, g)
    ORDER BY t.pgt_relid::text
$$;
COMMENT ON FUNCTION pgtrickle_private.not_held_back(integer) IS
    'The hold_back stream tables, but for those with a tolerance of their own, that cannot be read where the sources '
    'of a group agree, and why.';

CREATE OR REPLACE FUNCTION pgtrickle_private.last_let_through(p_group_id integer) RETURNS pgtrickle.progress
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT ROW(max((p.reached).watermark), max((p.reached).batch))::progress
    FROM pgt_stream_tables AS t
        CROSS JOIN LATERAL (SELECT jsonb_populate_record(NULL::progress,
        t.let_through -> p_group_id::text) AS reached) AS p
    WHERE t.let_through ? p_group_id::text AND p_group_id IN (SELECT g.group_id FROM gating_groups(t.pgt_id) AS g)
$$;
COMMENT ON FUNCTION pgtrickle_private.last_let_through(integer) IS
    'The newest watermark at which a group let a stream table through that heeds it; NULL if it never did.';

CREATE OR REPLACE FUNCTION pgtrickle.watermark_status()
    RETURNS TABLE (group_name text, min_watermark timestamptz, max_watermark timestamptz, lag interval,
        tolerance interval, aligned boolean,
                   effective_watermark timestamptz, waiting_for text, reason text, idle text[],
                   min_batch bigint, max_batch bigint, batch_lag numeric, batch_tolerance bigint,
                       effective_batch bigint,
                   agreed_watermark timestamptz, agreed_batch bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
    SET TimeZone = 'UTC' SET DateStyle = 'ISO' SET IntervalStyle = 'postgres'
AS $$
    SELECT a.group_name, (a.low).watermark, (a.high).watermark, (a.lag).span, (a.tolerance).span, a.aligned,
        (l.last).watermark,
           CASE WHEN a.aligned IS NULL THEN array_to_string(a.never_advanced, ', ') WHEN a.aligned THEN u.waiting_for
               ELSE a.slowest::text END,
           CASE WHEN a.aligned IS NULL THEN format('%s never advanced', array_to_string(a.never_advanced, ', '))
                WHEN a.aligned THEN format('aligned at %s', progress_text(a.low))
                ELSE format('%s is %s behind %s, tolerance %s', a.slowest, distance_text(a.lag), a.fastest,
                    distance_text(a.tolerance)) END
           || COALESCE(', without ' || NULLIF(array_to_string(a.idle, ', '), '') || ' (idle)', '')
               || COALESCE('; ' || u.sentences, ''),
           ARRAY(SELECT qualified_name(s) FROM unnest(a.idle) AS s),
           (a.low).batch, (a.high).batch, (a.lag).batches, (a.tolerance).batches::bigint, (l.last).batch, e.watermark,
               e.batch
    FROM group_alignment() AS a
    CROSS JOIN LATERAL (SELECT last_let_through(a.group_id) AS last) AS l
    CROSS JOIN LATERAL (
        SELECT min((e.progress).watermark) AS watermark, min((e.progress).batch) AS batch
        FROM agreed_entries(NULL, a.group_id) AS e WHERE a.aligned IS NOT NULL) AS e
    CROSS JOIN LATERAL (
        SELECT string_agg(DISTINCT u.waiting_for, ', ') AS waiting_for,
            string_agg(format('%s: %s', u.stream_table, u.reason), '; ') AS sentences
        FROM not_held_back(a.group_id) AS u WHERE COALESCE(e.watermark::text, e.batch::text) IS NOT NULL) AS u
$$;
COMMENT ON FUNCTION pgtrickle.watermark_status() IS
    'How each watermark group stands. effective_watermark is the last event time at which it let a stream table '
    'through: at which it was aligned, or its sources '
    'agreed for one that holds back, when that was refreshed; NULL while it has let none through. agreed_watermark is '
    'that of the newest event time at which its '
    'sources agree, what holding back can show now, whatever any stream table shows. Idle sources are left out of the '
    'comparison, but not of these two. '
    'The reason also says which stream tables that hold back cannot be read there, and of an aligned group '
    'waiting_for is what they wait for. Of a group that goes by '
    'batch numbers the columns named for batches are filled instead.';

CREATE OR REPLACE FUNCTION pgtrickle_private.status_rows()
    RETURNS TABLE (pgt_id integer, stream_table text, status text, refresh_mode text, schedule text,
        watermark_gating text, decision text, reason text,
                   effective_watermark timestamptz, data_timestamp timestamptz, last_refresh_at timestamptz,
                       staleness interval,
                   last_action text, last_error text, tier text, paused boolean, next_due_at timestamptz,
                       consecutive_failures integer,
                   retry_at timestamptz, fuse_blown_at timestamptz, effective_schedule text, due boolean,
                       effective_batch bigint, planner_defect text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT t.pgt_id, format('%I.%I', t.pgt_schema, t.pgt_name), t.status, t.refresh_mode, t.schedule, g.gating,
        g.decision, g.reason,
           t.effective_watermark, t.data_timestamp, t.last_refresh_at, clock_timestamp() - t.data_timestamp,
           (SELECT h.action FROM pgt_refresh_history AS h WHERE h.pgt_id = t.pgt_id ORDER BY h.refresh_id DESC LIMIT 1),
           without_values(t.last_error, t.last_sqlstate),
           t.tier, t.paused, t.next_due_at, t.consecutive_failures, t.retry_at, t.fuse_blown_at,
           effective_schedule(t), is_due(t), t.effective_batch,
           without_values(t.planner_defect, 'planner defect')
    FROM pgt_stream_tables AS t CROSS JOIN LATERAL gating_decision(t.pgt_id) AS g
    ORDER BY 2
$$;
COMMENT ON FUNCTION pgtrickle_private.status_rows() IS
    'The rows of pgt_status(), with errors as everybody may see them.';

CREATE OR REPLACE FUNCTION pgtrickle.pgt_status()
    RETURNS TABLE (pgt_id integer, stream_table text, status text, refresh_mode text, schedule text,
        watermark_gating text, decision text, reason text,
                   effective_watermark timestamptz, data_timestamp timestamptz, last_refresh_at timestamptz,
                       staleness interval,
                   last_action text, last_error text, tier text, paused boolean, next_due_at timestamptz,
                       consecutive_failures integer,
                   retry_at timestamptz, fuse_blown_at timestamptz, effective_schedule text, due boolean,
                       effective_batch bigint, planner_defect text)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT s.pgt_id, s.stream_table, s.status, s.refresh_mode, s.schedule, s.watermark_gating, s.decision, s.reason,
           s.effective_watermark, s.data_timestamp, s.last_refresh_at, s.staleness, s.last_action,
               COALESCE(e.last_error,
           s.last_error), s.tier, s.paused, s.next_due_at, s.consecutive_failures, s.retry_at, s.fuse_blown_at,
           s.effective_schedule, s.due, s.effective_batch, COALESCE(e.planner_defect, s.planner_defect)
    FROM status_rows() AS s LEFT JOIN pgt_readable_errors AS e USING (pgt_id) ORDER BY 2
$$;
COMMENT ON FUNCTION pgtrickle.pgt_status() IS
    'Every stream table: how fresh it is, whether it may refresh now and why, and what pytrickle itself failed on '
    '(planner_defect), if it did.';

CREATE OR REPLACE FUNCTION pgtrickle_private.history_rows(p_pgt_id integer, max_rows integer)
    RETURNS TABLE (refresh_id bigint, stream_table text, action text, status text, initiated_by text, reason text,
                   started_at timestamptz, finished_at timestamptz, delta_rows bigint,
                   rows_inserted bigint, rows_deleted bigint, effective_watermark timestamptz,
                       data_timestamp timestamptz, error text,
                   effective_batch bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT h.refresh_id, format('%I.%I', t.pgt_schema, t.pgt_name), h.action, h.status, h.initiated_by, h.reason,
        h.started_at, h.finished_at,
           h.delta_rows, h.rows_inserted, h.rows_deleted, h.effective_watermark, h.data_timestamp,
           without_values(h.error, h.sqlstate),
           h.effective_batch
    FROM pgt_refresh_history AS h JOIN pgt_stream_tables AS t USING (pgt_id)
    WHERE p_pgt_id IS NULL OR h.pgt_id = p_pgt_id
    ORDER BY h.refresh_id DESC LIMIT max_rows
$$;
COMMENT ON FUNCTION pgtrickle_private.history_rows(integer, integer) IS
    'The rows of refresh_history(), with errors as everybody may see them.';

CREATE OR REPLACE FUNCTION pgtrickle.refresh_history(
        name text DEFAULT NULL, max_rows integer DEFAULT 20, search_path text DEFAULT current_setting('search_path'))
    RETURNS TABLE (refresh_id bigint, stream_table text, action text, status text, initiated_by text, reason text,
                   started_at timestamptz, finished_at timestamptz, delta_rows bigint,
                   rows_inserted bigint, rows_deleted bigint, effective_watermark timestamptz,
                       data_timestamp timestamptz, error text,
                   effective_batch bigint)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    id CONSTANT integer := CASE WHEN name IS NOT NULL THEN stream_table_id(name, search_path) END;
BEGIN
    RETURN QUERY
    SELECT h.refresh_id, h.stream_table, h.action, h.status, h.initiated_by, h.reason, h.started_at, h.finished_at,
        h.delta_rows,
           h.rows_inserted, h.rows_deleted, h.effective_watermark, h.data_timestamp, COALESCE(e.error, h.error),
               h.effective_batch
    FROM history_rows(id, max_rows) AS h LEFT JOIN pgt_readable_history AS e USING (refresh_id)
    ORDER BY h.refresh_id DESC;
END
$$;
COMMENT ON FUNCTION pgtrickle.refresh_history(text, integer, text) IS
    'What refreshes did, newest first: of one stream table, or of all.';

CREATE OR REPLACE FUNCTION pgtrickle.dependency_tree()
    RETURNS TABLE (stream_table text, source text, source_type text, depth integer)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    WITH RECURSIVE tree AS (
        SELECT d.pgt_id, d.source_relid, d.source_type, 1 AS depth FROM pgt_dependencies AS d
        UNION
        SELECT tree.pgt_id, d.source_relid, d.source_type, tree.depth + 1
        FROM tree JOIN pgt_stream_tables AS t ON t.pgt_relid = tree.source_relid
            JOIN pgt_dependencies AS d ON d.pgt_id = t.pgt_id
        -- No shortest way is longer than there are stream tables, others may go round in a cycle.
        WHERE tree.depth <= (SELECT count(*) FROM pgt_stream_tables))
    SELECT format('%I.%I', t.pgt_schema, t.pgt_name), qualified_name(tree.source_relid), tree.source_type,
        min(tree.depth)
    FROM tree JOIN pgt_stream_tables AS t USING (pgt_id)
    GROUP BY 1, 2, 3 ORDER BY 1, 4, 2
$$;
COMMENT ON FUNCTION pgtrickle.dependency_tree() IS
    'What each stream table reads, directly (depth 1) and through other stream tables.';
