-- What happens to stream tables, in the words of the extension pg_trickle, for those who listen as they would to it.

CREATE OR REPLACE FUNCTION pgtrickle_private.tell_event(stream_table pgtrickle.pgt_stream_tables, event text,
    facts jsonb) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF NOT stream_table.pooler_compatibility_mode THEN
        PERFORM tell_foreign('pg_trickle_alert', (facts || jsonb_build_object(
            'event', event, 'database_oid', own_database(), 'pgt_schema', stream_table.pgt_schema,
            'pgt_name', stream_table.pgt_name, 'st', stream_table.pgt_schema || '.' || stream_table.pgt_name))::text);
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.tell_event(pgtrickle.pgt_stream_tables, text, jsonb) IS
    'Tells of an event of a stream table as the extension pg_trickle does, if that form is asked for.';

CREATE OR REPLACE FUNCTION pgtrickle_private.refresh_facts(h pgtrickle.pgt_refresh_history) RETURNS jsonb
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT jsonb_build_object('action', (h).action)
        || CASE (h).status WHEN 'FAILED' THEN jsonb_build_object('error', (h).sqlstate)
            ELSE jsonb_build_object('rows_inserted', (h).rows_inserted, 'rows_deleted', (h).rows_deleted,
                'duration_ms', round(extract(epoch FROM (h).finished_at - (h).started_at) * 1000)::bigint) END
$$;
COMMENT ON FUNCTION pgtrickle_private.refresh_facts(pgtrickle.pgt_refresh_history) IS
    'What a refresh did, without values of rows.';

-- With the rights of the owner: an operator, who resumes, may not call what this calls.
CREATE OR REPLACE FUNCTION pgtrickle_private.tell_of_change() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    stopped CONSTANT boolean := OLD.paused OR OLD.status = 'SUSPENDED';
    stops CONSTANT boolean := NEW.paused OR NEW.status = 'SUSPENDED';
BEGIN
    IF notify_form() = 'own' OR is_copied() THEN
        RETURN NULL;
    END IF;
    IF NEW.status = 'SUSPENDED' AND OLD.status <> 'SUSPENDED' THEN
        PERFORM tell_event(NEW, 'auto_suspended', jsonb_build_object('consecutive_errors', NEW.consecutive_failures));
    ELSIF stopped AND NOT stops THEN
        PERFORM tell_event(NEW, 'resumed', '{"previous_status": "SUSPENDED"}');
    END IF;
    IF OLD.reinitialize_reason IS NULL AND NEW.reinitialize_reason IS NOT NULL THEN
        PERFORM tell_event(NEW, 'reinitialize_needed',
            jsonb_build_object('reason', left(NEW.reinitialize_reason, 500)));
    END IF;
    IF NEW.fuse_blown_at > '-infinity' AND OLD.fuse_blown_at IS NULL THEN
        PERFORM tell_event(NEW, 'fuse_blown', jsonb_build_object('fuse_ceiling', NEW.fuse_ceiling));
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.tell_of_change() IS
    'Tells those who listen as they would to pg_trickle that a stream table was suspended or resumed, is to be '
    'computed anew, or is held by its fuse.';

CREATE OR REPLACE TRIGGER tell_of_change AFTER UPDATE ON pgtrickle.pgt_stream_tables FOR EACH ROW
    WHEN (OLD.status <> NEW.status OR OLD.paused <> NEW.paused OR OLD.fuse_blown_at IS DISTINCT FROM NEW.fuse_blown_at
        OR OLD.reinitialize_reason IS DISTINCT FROM NEW.reinitialize_reason)
    EXECUTE FUNCTION pgtrickle_private.tell_of_change();
ALTER TABLE pgtrickle.pgt_stream_tables ENABLE ALWAYS TRIGGER tell_of_change;
