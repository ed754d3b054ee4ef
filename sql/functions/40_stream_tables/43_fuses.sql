-- A fuse holds a delta that is larger than a stream table should ever get, until somebody decides.

CREATE OR REPLACE FUNCTION pgtrickle.reset_fuse(
        name text, action text DEFAULT 'apply', search_path text DEFAULT current_setting('search_path')) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    id CONSTANT bigint := stream_table_id(name, search_path);
    decision CONSTANT text := lower(btrim(action));
BEGIN
    IF decision = 'skip_changes' THEN
        PERFORM refuse_option('skip_changes', 'the stream table would no longer have the rows of its query',
            'Undo the changes in the source, then use apply.');
    END IF;
    PERFORM check_choice('action', decision, 'apply', 'reinitialize');
    -- -infinity lets the next delta pass; its refresh arms the fuse again.
    UPDATE pgt_stream_tables AS t
    SET fuse_blown_at = CASE decision WHEN 'apply' THEN '-infinity'::timestamptz END,
        reinitialize_reason = CASE decision WHEN 'reinitialize' THEN COALESCE(t.reinitialize_reason, 'reset_fuse')
            ELSE t.reinitialize_reason END,
        recomputation_asked = t.recomputation_asked OR decision = 'reinitialize'
    WHERE t.pgt_id = id AND t.fuse_blown_at IS NOT NULL;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the fuse of % has not blown', name
            USING ERRCODE = '55000', CONSTRAINT = 'invalid_argument', HINT = 'There is nothing to decide.';
    END IF;
    PERFORM tell('pgtrickle_refresh', jsonb_build_object('pgt_id', id));
END
$$;
COMMENT ON FUNCTION pgtrickle.reset_fuse(text, text, text) IS
    'Decides about a delta that the fuse holds: apply lets it pass, reinitialize computes the stream table anew. '
    'skip_changes is error 0A000: the stream table would differ from its query.';
