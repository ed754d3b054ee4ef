-- Alerts: every incident is told once when it begins and once when it ends, on channel pgtrickle_alert.

CREATE OR REPLACE FUNCTION pgtrickle_private.tell_of_silence(incident pgtrickle.pgt_alerts, resolved boolean)
    RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    source regclass;
    seen_at timestamptz;
BEGIN
    -- Only here is the subject a relation: those of other kinds may be groups and feeds, called anything.
    IF incident.kind <> 'stale' THEN
        RETURN;
    END IF;
    source := to_regclass(incident.subject);
    seen_at := COALESCE(
        (SELECT w.last_seen_at FROM pgt_watermarks AS w WHERE w.source_relid = source), incident.since);
    PERFORM tell_foreign('pg_trickle_alert', (jsonb_build_object(
        'event', CASE WHEN resolved THEN 'watermark_resumed' ELSE 'watermark_stuck' END,
        'database_oid', own_database(), 'source_oid', source::oid::bigint) || CASE WHEN resolved THEN '{}'
        ELSE jsonb_build_object('group', incident.group_name,
            'age_secs', floor(extract(epoch FROM clock_timestamp() - seen_at))::bigint) END)::text);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.tell_of_silence(pgtrickle.pgt_alerts, boolean) IS
    'Tells of a loader that fell silent, or is back, as the extension pg_trickle does, if that form is asked for.';

-- A payload has less than 8000 bytes, and a character up to four.
CREATE OR REPLACE FUNCTION pgtrickle_private.notify_alert(incident pgtrickle.pgt_alerts, resolved boolean,
    sentence text) RETURNS void
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT tell('pgtrickle_alert', jsonb_build_object(
        'kind', left(incident.kind, 100), 'subject', left(incident.subject, 300), 'group',
            left(incident.group_name, 300),
        'since', incident.since, 'sentence', left(sentence, 500), 'resolved', resolved));
    SELECT tell_of_silence(incident, resolved)
$$;
COMMENT ON FUNCTION pgtrickle_private.notify_alert(pgtrickle.pgt_alerts, boolean, text) IS
    'Sends an incident on channel pgtrickle_alert, as the text of a JSON object.';

CREATE OR REPLACE FUNCTION pgtrickle.alert(
        kind text, subject text, open boolean, sentence text, group_name text DEFAULT NULL,
            since timestamptz DEFAULT clock_timestamp()) RETURNS boolean
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    incident pgt_alerts;
BEGIN
    IF kind IS NULL OR subject IS NULL OR open IS NULL OR sentence IS NULL THEN
        PERFORM refuse_value('alert', NULL, 'Give kind, subject, whether it begins or ends, and a sentence.');
    ELSIF btrim(kind) = '' OR btrim(subject) = '' THEN
        PERFORM refuse_value(CASE btrim(kind) WHEN '' THEN 'kind' ELSE 'subject' END, CASE btrim(kind) WHEN '' THEN kind
            ELSE subject END, 'Say in a word what is the matter, and with what.');
    ELSIF NOT isfinite(since) THEN
        PERFORM refuse_value('since', since::text, 'Give the moment at which it began; leave it out for now.');
    ELSIF open THEN
        INSERT INTO pgt_alerts AS a (kind, subject, group_name, since, sentence)
        VALUES (alert.kind, alert.subject, alert.group_name, COALESCE(alert.since, clock_timestamp()), alert.sentence)
        ON CONFLICT DO NOTHING RETURNING a.* INTO incident;
    ELSE
        UPDATE pgt_alerts AS a SET closed_at = clock_timestamp()
        WHERE a.kind = alert.kind AND a.subject = alert.subject
            AND COALESCE(a.group_name, '') = COALESCE(alert.group_name, '') AND a.closed_at IS NULL
        RETURNING a.* INTO incident;
    END IF;
    IF incident.alert_id IS NULL THEN
        RETURN false;
    END IF;
    PERFORM notify_alert(incident, NOT open, sentence);
    RETURN true;
END
$$;
COMMENT ON FUNCTION pgtrickle.alert(text, text, boolean, text, text, timestamptz) IS
    'Opens or closes the incident of this kind and subject (and group), and tells so on channel pgtrickle_alert; '
    'returns false, and tells nothing, where it is '
    'open or closed already. Everybody may read the sentence: it must not quote data.';
