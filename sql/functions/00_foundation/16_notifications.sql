-- Waking those who listen.

CREATE OR REPLACE FUNCTION pgtrickle_private.tell(channel text, payload jsonb) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    -- A transaction that notified somebody cannot be prepared.
    IF COALESCE(lower(current_setting('pgtrickle.notify', true)), '') NOT IN ('off', 'false', 'no', '0') THEN
        -- Bytes that are no text would end the sessions that listen.
        PERFORM pg_notify(channel, readable_text(payload::text));
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.tell(text, jsonb) IS
    'Notifies those who listen, unless the caller set pgtrickle.notify to off; the refresher then finds out by '
    'itself, within its poll interval.';

CREATE OR REPLACE FUNCTION pgtrickle_private.refresher_runs() RETURNS boolean
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT EXISTS (SELECT FROM pg_locks AS l
        WHERE l.relation = 'pgtrickle.pgt_leader'::regclass AND l.mode = 'ExclusiveLock' AND l.granted
            AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database()))
$$;
COMMENT ON FUNCTION pgtrickle_private.refresher_runs() IS
    'Whether a refresher leads: it holds a lock that nobody else may take.';

-- PL/pgSQL, although one expression: each refresh asks.
CREATE OR REPLACE FUNCTION pgtrickle_private.notify_form() RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN CASE lower(current_setting('pgtrickle.notify_form', true)) WHEN 'pg_trickle' THEN 'pg_trickle'
        WHEN 'both' THEN 'both' ELSE 'own' END;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.notify_form() IS
    'Whether notifications have our form, that of the extension pg_trickle, or both are sent.';

CREATE OR REPLACE FUNCTION pgtrickle_private.tell_foreign(channel text, payload text) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF notify_form() <> 'own'
        AND COALESCE(lower(current_setting('pgtrickle.notify', true)), '') NOT IN ('off', 'false', 'no', '0')
        AND COALESCE(lower(foreign_setting('connection_pooler_mode')), 'off') <> 'transaction' THEN
        PERFORM pg_notify(channel, readable_text(payload));
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.tell_foreign(text, text) IS
    'Notifies those who listen as they would listen to the extension pg_trickle, if pgtrickle.notify_form says so.';

CREATE OR REPLACE FUNCTION pgtrickle_private.own_database() RETURNS bigint
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT d.oid::bigint FROM pg_database AS d WHERE d.datname = current_database()
$$;
COMMENT ON FUNCTION pgtrickle_private.own_database() IS 'Number of this database.';
