-- Telling others that a stream table was refreshed.

CREATE OR REPLACE FUNCTION pgtrickle.subscribe(stream_table text, channel text) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF (length(channel) BETWEEN 1 AND 63) IS NOT TRUE THEN
        PERFORM refuse_value('channel', channel, 'Use a name of 1 to 63 characters.');
    ELSIF COALESCE(btrim(stream_table), '') = '' OR octet_length(stream_table) > 255 THEN
        PERFORM refuse_value('stream_table', left(stream_table, 300), 'Name a stream table.');
    END IF;
    IF NOT EXISTS (SELECT FROM pgt_stream_tables AS t WHERE subscribe.stream_table IN (t.pgt_name,
        t.pgt_schema || '.' || t.pgt_name, format('%I', t.pgt_name), format('%I.%I', t.pgt_schema, t.pgt_name)))
    THEN
        RAISE WARNING 'there is no stream table % yet', quote_literal(stream_table)
            USING CONSTRAINT = 'unknown_stream_table',
                HINT = did_you_mean(stream_table, known_stream_tables(stream_table LIKE '%.%'))
                    || 'The channel is told of its refreshes once it is there; unsubscribe() ends that.';
    END IF;
    INSERT INTO pgt_subscriptions (stream_table, channel) VALUES (stream_table, channel) ON CONFLICT DO NOTHING;
END
$$;
COMMENT ON FUNCTION pgtrickle.subscribe(text, text) IS
    'Has every refresh that gives the stream table other rows notify a channel, with JSON of its name and how many '
    'rows '
    'came and went. Both are kept as they are given: the stream table need not exist yet.';

CREATE OR REPLACE FUNCTION pgtrickle.unsubscribe(stream_table text, channel text) RETURNS void
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    DELETE FROM pgt_subscriptions AS s
    WHERE s.stream_table = unsubscribe.stream_table AND s.channel = unsubscribe.channel
$$;
COMMENT ON FUNCTION pgtrickle.unsubscribe(text, text) IS 'Ends a subscription; harmless where there is none.';

CREATE OR REPLACE FUNCTION pgtrickle.list_subscriptions()
    RETURNS TABLE (stream_table text, channel text, created_at timestamptz)
    LANGUAGE sql STABLE ROWS 10 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT s.stream_table, s.channel, s.created_at FROM pgt_subscriptions AS s ORDER BY s.stream_table, s.channel
$$;
COMMENT ON FUNCTION pgtrickle.list_subscriptions() IS 'Who is notified when which stream table got other rows.';

CREATE OR REPLACE FUNCTION pgtrickle_private.tell_of_refresh() RETURNS trigger
    LANGUAGE plpgsql SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF is_copied() THEN
        RETURN NULL;
    END IF;
    IF NEW.rows_inserted + NEW.rows_deleted > 0 THEN
        PERFORM tell(s.channel, jsonb_build_object('name', t.pgt_schema || '.' || t.pgt_name,
            'inserted_count', NEW.rows_inserted, 'deleted_count', NEW.rows_deleted))
        FROM pgt_subscriptions AS s JOIN pgt_stream_tables AS t ON t.pgt_id = NEW.pgt_id
            AND s.stream_table IN (t.pgt_name, t.pgt_schema || '.' || t.pgt_name,
                format('%I', t.pgt_name), format('%I.%I', t.pgt_schema, t.pgt_name));
    END IF;
    IF NEW.status <> 'SKIPPED' AND notify_form() <> 'own' THEN
        PERFORM tell_event(t, CASE NEW.status WHEN 'FAILED' THEN 'refresh_failed' ELSE 'refresh_completed' END,
            refresh_facts(NEW))
        FROM pgt_stream_tables AS t WHERE t.pgt_id = NEW.pgt_id;
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.tell_of_refresh() IS
    'Notifies those who subscribed to a stream table, and those who listen as they would to pg_trickle.';

CREATE OR REPLACE TRIGGER tell_of_refresh AFTER INSERT
    ON pgtrickle.pgt_refresh_history FOR EACH ROW EXECUTE FUNCTION pgtrickle_private.tell_of_refresh();
ALTER TABLE pgtrickle.pgt_refresh_history ENABLE ALWAYS TRIGGER tell_of_refresh;
