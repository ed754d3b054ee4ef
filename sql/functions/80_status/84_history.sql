-- What refreshes did.

CREATE OR REPLACE FUNCTION pgtrickle.refresh_history(
        name text DEFAULT NULL, max_rows integer DEFAULT 20, search_path text DEFAULT current_setting('search_path'))
    RETURNS TABLE (refresh_id bigint, stream_table text, action text, status text, initiated_by text, reason text,
        started_at timestamptz, finished_at timestamptz, delta_rows bigint, rows_inserted bigint, rows_deleted bigint,
        effective_watermark timestamptz, data_timestamp timestamptz, error text, effective_batch bigint,
        engine text, commit_to_visible interval, change_clock text, oldest_change_at timestamptz,
        newest_change_at timestamptz, phases jsonb, staged_bytes bigint, amplification double precision)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    id CONSTANT bigint := CASE WHEN name IS NOT NULL THEN stream_table_id(name, search_path) END;
BEGIN
    RETURN QUERY
    SELECT h.refresh_id, h.stream_table, h.action, h.status, h.initiated_by, h.reason, h.started_at, h.finished_at,
        h.delta_rows, h.rows_inserted, h.rows_deleted, h.effective_watermark, h.data_timestamp, h.error,
        h.effective_batch, h.engine, h.commit_to_visible, h.change_clock, h.oldest_change_at, h.newest_change_at,
        h.phases, h.staged_bytes, h.amplification
    FROM refresh_history_info AS h WHERE id IS NULL OR h.pgt_id = id
    ORDER BY h.refresh_id DESC LIMIT row_limit(max_rows);
END
$$;
COMMENT ON FUNCTION pgtrickle.refresh_history(text, integer, text) IS
    'What refreshes did, newest first: of one stream table, or of all. engine is who computed it, spark or postgres. '
    'commit_to_visible: how long after it came the oldest change was visible; change_clock says whether the changes '
    'came (oldest_change_at, newest_change_at) by their commit or, where track_commit_timestamp is off, when they were '
    'captured, before it. phases: the milliseconds of plan, compute, apply, wait and choose; staged_bytes: of the rows '
    'between them; amplification: rows written per row of the delta.';

CREATE OR REPLACE FUNCTION pgtrickle.get_refresh_history(
        name text, max_rows integer DEFAULT 20, search_path text DEFAULT current_setting('search_path'))
    RETURNS TABLE (refresh_id bigint, data_timestamp timestamptz, start_time timestamptz, end_time timestamptz,
        action text, status text, rows_inserted bigint, rows_updated bigint, rows_deleted bigint,
        duration_ms double precision, error_message text, refresh_reason text, refresh_reason_detail text)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    id CONSTANT bigint := stream_table_id(name, search_path);
BEGIN
    RETURN QUERY
    SELECT h.refresh_id, h.data_timestamp, h.started_at, h.finished_at, h.action, h.status, h.rows_inserted,
        h.rows_updated, h.rows_deleted, h.duration_ms, h.error_message, h.reason, h.reason
    FROM refresh_history_info AS h WHERE h.pgt_id = id ORDER BY h.refresh_id DESC LIMIT row_limit(max_rows);
END
$$;
COMMENT ON FUNCTION pgtrickle.get_refresh_history(text, integer, text) IS
    'What the refreshes of one stream table did, newest first, with the columns of pg_trickle; error_message of a '
    'refresh that was skipped says why.';

CREATE OR REPLACE FUNCTION pgtrickle.refresh_timeline(max_rows integer DEFAULT 50)
    RETURNS TABLE (start_time timestamptz, stream_table text, action text, status text, rows_inserted bigint,
        rows_updated bigint, rows_deleted bigint, duration_ms double precision, error_message text)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT h.started_at, h.stream_table, h.action, h.status, h.rows_inserted, h.rows_updated, h.rows_deleted,
        h.duration_ms, h.error_message
    FROM refresh_history_info AS h ORDER BY h.refresh_id DESC LIMIT row_limit(max_rows)
$$;
COMMENT ON FUNCTION pgtrickle.refresh_timeline(integer) IS 'What the refreshes of all stream tables did, newest first.';
