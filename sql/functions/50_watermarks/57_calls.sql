-- What loaders may ask for. Their functions run with their own rights, and do no more than insert a row into pgt_calls:
-- so the role that calls is the one that PostgreSQL names, whoever is logged in, and this trigger acts for it as the
-- owner.

CREATE OR REPLACE FUNCTION pgtrickle_private.texts(list jsonb) RETURNS text[]
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT CASE jsonb_typeof(list) WHEN 'array'
        THEN ARRAY(SELECT t.item FROM jsonb_array_elements_text(list) WITH ORDINALITY AS t(item, place)
        ORDER BY t.place) END
$$;
COMMENT ON FUNCTION pgtrickle_private.texts(jsonb) IS 'The items of a JSON array as texts; NULL for any other value.';

CREATE OR REPLACE FUNCTION pgtrickle_private.serve_call() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    NEW.result := NULL;
    CASE NEW.call
        WHEN 'advance_watermark'
            THEN PERFORM advance(NEW.caller, NEW.source, jsonb_populate_record(NULL::progress, NEW.arguments),
                COALESCE((NEW.arguments ->> 'has_zone')::boolean, true));
        WHEN 'advance_partitions' THEN
            NEW.result := to_jsonb(advance_by_partitions(NEW.caller, NEW.source, NEW.arguments -> 'heard',
                texts(NEW.arguments -> 'expected'), (NEW.arguments ->> 'idle_timeout')::interval,
                (NEW.arguments ->> 'at')::timestamptz));
        WHEN 'forget_partition' THEN PERFORM forget_partition_of(NEW.caller, NEW.source,
            NEW.arguments ->> 'partition_name');
        WHEN 'lower_watermark' THEN PERFORM lower_watermark(NEW.caller, NEW.source,
            jsonb_populate_record(NULL::progress, NEW.arguments));
        WHEN 'set_watermark_checks' THEN PERFORM store_checks(NEW.caller, NEW.source,
            (NEW.arguments ->> 'max_ahead')::interval, NEW.arguments ->> 'on_doubt');
        WHEN 'gate_source' THEN PERFORM shut_gate(NEW.caller, NEW.source, NEW.arguments ->> 'reason');
        WHEN 'ungate_source' THEN PERFORM open_gate(NEW.caller, NEW.source);
        WHEN 'mark_idle' THEN PERFORM record_idle(NEW.caller, NEW.source);
        WHEN 'begin_replay' THEN PERFORM begin_replay(NEW.caller, NEW.source,
            texts(NEW.arguments -> 'late_ids')::bigint[]);
        WHEN 'end_replay' THEN PERFORM end_replay(NEW.caller, NEW.source);
        WHEN 'discard_late_rows' THEN
            NEW.result := to_jsonb(discard_kept_out(NEW.caller, NEW.source,
                texts(NEW.arguments -> 'late_ids')::bigint[]));
        WHEN 'create_sink_staging' THEN
            NEW.result := to_jsonb(make_sink_staging(NEW.caller, NEW.source, NEW.arguments ->> 'sink',
                texts(NEW.arguments -> 'columns'), NEW.arguments ->> 'partition'));
        WHEN 'drop_sink_staging' THEN
            NEW.result := to_jsonb(drop_unused_staging('pgtrickle_sinks',
                format('sink_%s', sink_number(NEW.caller, NEW.source, NEW.arguments ->> 'sink'))));
        WHEN 'claim_sink_batch' THEN
            NEW.result := to_jsonb(commit_sink_batch(NEW.caller, NEW.source, NEW.arguments ->> 'sink',
                jsonb_populate_record(NULL::pgt_sink_batches, NEW.arguments)));
        WHEN 'drop_sink' THEN PERFORM forget_sink(NEW.caller, NEW.source, NEW.arguments ->> 'sink');
        WHEN 'advance_feed' THEN PERFORM advance_feed_of(NEW.caller, NEW.arguments ->> 'name',
            (NEW.arguments ->> 'version')::bigint);
        WHEN 'adopt_source' THEN PERFORM take_over_source(NEW.caller, NEW.source);
        WHEN 'grant_loader' THEN PERFORM allow_loader(NEW.caller, NEW.source, NEW.arguments ->> 'role');
        WHEN 'revoke_loader' THEN PERFORM disallow_loader(NEW.caller, NEW.source, NEW.arguments ->> 'role');
        ELSE PERFORM refuse_value('call', NEW.call, 'Use the functions of pgtrickle.');
    END CASE;
    -- A row is returned to its caller if there is something to tell, and then deleted.
    RETURN CASE WHEN NEW.result IS NOT NULL THEN NEW END;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.serve_call() IS
    'Does what a row of pgt_calls asks for, by the rights of its caller.';

-- By the index: a scan of the whole table would set serializable transactions against each other.
CREATE OR REPLACE FUNCTION pgtrickle_private.forget_call() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET enable_seqscan = off SET jit = off
AS $$
BEGIN
    DELETE FROM pgt_calls AS c WHERE c.call_id = NEW.call_id;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.forget_call() IS 'Deletes a row of pgt_calls whose result was returned.';

CREATE OR REPLACE TRIGGER serve_call BEFORE INSERT
    ON pgtrickle.pgt_calls FOR EACH ROW EXECUTE FUNCTION pgtrickle_private.serve_call();
CREATE OR REPLACE TRIGGER forget_call AFTER INSERT
    ON pgtrickle.pgt_calls FOR EACH ROW EXECUTE FUNCTION pgtrickle_private.forget_call();
-- Also where a loader has switched off the triggers of its session (session_replication_role).
ALTER TABLE pgtrickle.pgt_calls ENABLE ALWAYS TRIGGER serve_call;
ALTER TABLE pgtrickle.pgt_calls ENABLE ALWAYS TRIGGER forget_call;
