-- Pausing and resuming.

-- PL/pgSQL, although one expression: every tick asks for every stream table.
CREATE OR REPLACE FUNCTION pgtrickle_private.halted(stream_table pgtrickle.pgt_stream_tables) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN CASE
        WHEN (stream_table).paused THEN 'paused'
        WHEN (stream_table).tier = 'frozen' THEN 'frozen'
        WHEN (stream_table).status = 'SUSPENDED' THEN 'suspended'
        WHEN EXISTS (SELECT FROM pgt_drain AS d WHERE d.active) THEN 'drained'
        WHEN waits_after_failure(stream_table) THEN 'left alone after a failure' END;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.halted(pgtrickle.pgt_stream_tables) IS
    'Why ticks leave a stream table alone, or NULL.';

CREATE OR REPLACE FUNCTION pgtrickle.pause_stream_table(
        name text DEFAULT NULL, search_path text DEFAULT current_setting('search_path')) RETURNS integer
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    id CONSTANT bigint := CASE WHEN name IS NOT NULL THEN stream_table_id(name, search_path) END;
    changed integer;
BEGIN
    UPDATE pgt_stream_tables AS t SET paused = true WHERE (id IS NULL OR t.pgt_id = id) AND NOT t.paused;
    GET DIAGNOSTICS changed = ROW_COUNT;
    RETURN changed;
END
$$;
COMMENT ON FUNCTION pgtrickle.pause_stream_table(text, text) IS
    'Has ticks leave out one stream table, or all, until resumed; returns how many were not paused yet. What is asked '
    'for explicitly still runs.';

CREATE OR REPLACE FUNCTION pgtrickle.resume_stream_table(
        name text DEFAULT NULL, search_path text DEFAULT current_setting('search_path')) RETURNS integer
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    id CONSTANT bigint := CASE WHEN name IS NOT NULL THEN stream_table_id(name, search_path) END;
    changed integer;
BEGIN
    UPDATE pgt_stream_tables AS t
    SET paused = false, consecutive_failures = 0, retry_at = NULL,
        status = CASE WHEN t.status <> 'SUSPENDED' THEN t.status WHEN t.frontier_version > 0 THEN 'ACTIVE'
            ELSE 'INITIALIZING' END
    WHERE (id IS NULL OR t.pgt_id = id)
        AND (t.paused OR t.status = 'SUSPENDED' OR t.consecutive_failures > 0 OR t.retry_at IS NOT NULL);
    GET DIAGNOSTICS changed = ROW_COUNT;
    PERFORM tell('pgtrickle_refresh', jsonb_build_object('pgt_id', id));
    RETURN changed;
END
$$;
COMMENT ON FUNCTION pgtrickle.resume_stream_table(text, text) IS
    'Has ticks take up one stream table again, or all: what was paused, suspended after failures or waits for its '
    'next attempt. '
    'Returns how many there were. A frozen one stays frozen: that is its tier.';
