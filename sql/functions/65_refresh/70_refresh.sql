-- Asking for a refresh from SQL, and waiting for it.

-- A function cannot commit a request and then wait. What other sessions see before the commit is a lock, so that is how
-- it asks: the key says which stream table and which transaction, and nobody can make one who may not call this.
CREATE OR REPLACE FUNCTION pgtrickle_private.request_key(pgt_id bigint, virtual_transaction text) RETURNS bigint
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT ('x' || left(encode(sha256(s.secret || convert_to(format('%s %s', pgt_id, virtual_transaction), 'UTF8')),
        'hex'), 16))::bit(64)::bigint
    FROM pgt_refresh_secret AS s
$$;
COMMENT ON FUNCTION pgtrickle_private.request_key(bigint, text) IS
    'Key of the advisory lock by which a transaction asks for the refresh of a stream table.';

CREATE OR REPLACE FUNCTION pgtrickle_private.own_virtual_transaction() RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT l.virtualtransaction FROM pg_locks AS l WHERE l.pid = pg_backend_pid() AND l.locktype = 'virtualxid' LIMIT 1
$$;
COMMENT ON FUNCTION pgtrickle_private.own_virtual_transaction() IS
    'What pg_locks calls this transaction, whether it writes or not.';

-- Number 0 stands for no stream table: who asks for it waits until no tick from before is at work; -1 says that a drain
-- is about to be committed. Whoever asks for anything holds -2 too: applications take such locks of their own, and to
-- look for each stream table among all of them would take every tick too long. Every tick asks, so that it is PL/pgSQL,
-- which keeps its plans.
CREATE OR REPLACE FUNCTION pgtrickle_private.waiting_requests()
    RETURNS TABLE (request_key bigint, pgt_id bigint)
    LANGUAGE plpgsql STABLE ROWS 10 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH held AS MATERIALIZED (
        SELECT l.virtualtransaction, (l.classid::bigint << 32) | l.objid::bigint AS key
        FROM pg_locks AS l
        WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted
            AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
    ), holders AS MATERIALIZED (
        SELECT v.virtualtransaction, request_key(-2, v.virtualtransaction) AS key
        FROM (SELECT DISTINCT virtualtransaction FROM held) AS v
    ), keys AS MATERIALIZED (
        SELECT t.pgt_id, v.virtualtransaction, request_key(t.pgt_id, v.virtualtransaction) AS key
        FROM holders AS v JOIN held AS m USING (virtualtransaction, key)
        CROSS JOIN (SELECT s.pgt_id FROM pgt_stream_tables AS s UNION ALL VALUES (0), (-1)) AS t)
    SELECT k.key, k.pgt_id
    FROM keys AS k JOIN held AS h USING (virtualtransaction, key)
    WHERE k.pgt_id < 0 OR NOT EXISTS (SELECT FROM pgt_refresh_answers AS a WHERE a.request_key = k.key);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.waiting_requests() IS
    'The refreshes that other transactions ask for and wait for, by the locks that they hold.';

CREATE OR REPLACE FUNCTION pgtrickle_private.forget_answers() RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF EXISTS (SELECT FROM pgt_refresh_answers) THEN
        DELETE FROM pgt_refresh_answers AS a
        WHERE NOT EXISTS (SELECT FROM pg_locks AS l WHERE l.locktype = 'advisory' AND l.objsubid = 1
            AND (l.classid::bigint << 32) | l.objid::bigint = a.request_key);
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.forget_answers() IS
    'Deletes what was answered to transactions that wait no longer, or are gone.';

CREATE OR REPLACE FUNCTION pgtrickle_private.answer_request(request_key bigint, action text, reason text, error text,
    kind text) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    INSERT INTO pgt_refresh_answers (request_key, action, reason, error)
    VALUES (request_key, action, reason, without_values(error, kind))
    ON CONFLICT DO NOTHING;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.answer_request(bigint, text, text, text, text) IS
    'Tells a transaction that waits for a refresh what came of it.';

CREATE OR REPLACE FUNCTION pgtrickle_private.own_locks(pgt_id bigint)
    RETURNS TABLE (relation regclass, mode text, role text)
    LANGUAGE sql STABLE SECURITY DEFINER ROWS 10 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    WITH RECURSIVE upstream(relation) AS (
        SELECT t.pgt_relid FROM pgt_stream_tables AS t WHERE t.pgt_id = own_locks.pgt_id
        UNION
        SELECT d.source_relid
        FROM upstream AS u JOIN pgt_stream_tables AS t ON t.pgt_relid = u.relation
            JOIN pgt_dependencies AS d ON d.pgt_id = t.pgt_id)
    SELECT l.relation::regclass, l.mode,
        CASE WHEN l.relation = 'pgtrickle.pgt_stream_tables'::regclass THEN 'catalog'
            WHEN EXISTS (SELECT FROM pgt_stream_tables AS t WHERE t.pgt_relid = l.relation) THEN 'stream table'
            ELSE 'source' END
    FROM pg_locks AS l
    WHERE l.locktype = 'relation' AND l.pid = pg_backend_pid() AND l.granted
        AND (l.relation IN (SELECT u.relation FROM upstream AS u)
            OR l.relation = 'pgtrickle.pgt_stream_tables'::regclass)
$$;
COMMENT ON FUNCTION pgtrickle_private.own_locks(bigint) IS
    'Which locks this transaction holds on a stream table, on what it reads at any depth, and on the catalog''s row '
    'of it.';

CREATE OR REPLACE FUNCTION pgtrickle_private.why_not_wait(pgt_id bigint) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT CASE
        WHEN NOT refresher_runs() THEN 'no refresher runs: the request is served when one does'
        WHEN current_setting('transaction_isolation') IN ('repeatable read', 'serializable')
        THEN format('at isolation level %s this transaction could not see the result: the request is served after '
            'its commit', upper(current_setting('transaction_isolation')))
        WHEN EXISTS (SELECT FROM own_locks(pgt_id) AS l WHERE l.role = 'catalog' AND l.mode <> 'AccessShareLock'
            AND l.mode <> 'RowShareLock')
        THEN 'this transaction has created or changed a stream table: the request is served after its commit'
        ELSE (SELECT format('this transaction holds a lock on %s: the request is served after its commit',
                  qualified_name(l.relation))
              FROM own_locks(pgt_id) AS l
              WHERE l.mode = 'AccessExclusiveLock'
                  OR (l.role = 'stream table' AND l.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock'))
              LIMIT 1) END
$$;
COMMENT ON FUNCTION pgtrickle_private.why_not_wait(bigint) IS
    'Why nobody can refresh a stream table while this transaction waits for it, or NULL.';

CREATE OR REPLACE FUNCTION pgtrickle_private.tell_of_unseen_rows(pgt_id bigint) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    written CONSTANT text := (
        SELECT string_agg(DISTINCT qualified_name(l.relation), ', ') FROM own_locks(pgt_id) AS l
        WHERE l.role = 'source' AND l.mode = 'RowExclusiveLock');
BEGIN
    IF written IS NOT NULL THEN
        RAISE NOTICE 'what this transaction wrote to % is not in the refresh', written
            USING HINT = 'A refresher sees what is committed: commit first, then refresh.';
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.tell_of_unseen_rows(bigint) IS
    'A notice that names the sources into which this transaction wrote what no refresher sees yet.';

CREATE OR REPLACE FUNCTION pgtrickle_private.refresh_patience(timeout interval) RETURNS interval
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    patience CONSTANT interval := COALESCE(timeout,
        NULLIF(current_setting('pgtrickle.refresh_timeout', true), '')::interval, interval '5 minutes');
BEGIN
    IF patience < interval '0' THEN
        PERFORM refuse_value('timeout', patience::text, 'Use an interval of zero or more, such as ''30 seconds''.');
    END IF;
    -- Some intervals are longer than what is left of the calendar.
    RETURN least(patience, interval '1000 years');
END
$$;
COMMENT ON FUNCTION pgtrickle_private.refresh_patience(interval) IS
    'How long to wait for a refresh: as asked, or as the setting pgtrickle.refresh_timeout says, or five minutes.';

-- The lock is taken in a subtransaction that is always rolled back: so it is gone when the answer is there, and also
-- when the statement is cancelled or the session lost.
CREATE OR REPLACE FUNCTION pgtrickle_private.ask_refresher(pgt_id bigint, patience interval,
    OUT action text, OUT reason text, OUT error text)
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    deadline CONSTANT timestamptz := clock_timestamp() + patience;
    key CONSTANT bigint := request_key(pgt_id, own_virtual_transaction());
    asked boolean := false;
BEGIN
    LOOP
        -- An answer from before is about an earlier call of this transaction, until the refresher forgets it.
        asked := asked OR (NOT EXISTS (SELECT FROM pgt_refresh_answers AS a WHERE a.request_key = key)
            AND pg_try_advisory_xact_lock(request_key(-2, own_virtual_transaction()))
            AND pg_try_advisory_xact_lock(key));
        PERFORM nextval('pgtrickle.pgt_refresh_calls');
        FOR turn IN 1..50 LOOP
            SELECT a.action, a.reason, a.error INTO action, reason, error
            FROM pgt_refresh_answers AS a WHERE asked AND a.request_key = key;
            EXIT WHEN FOUND OR clock_timestamp() >= deadline OR NOT asked AND turn > 2;
            PERFORM pg_sleep(0.02);
        END LOOP;
        IF action IS NULL AND NOT refresher_runs() THEN
            action := 'GONE';
        ELSIF action IS NULL AND clock_timestamp() >= deadline THEN
            action := 'LATE';
        END IF;
        IF action IS NOT NULL THEN
            RAISE EXCEPTION 'the wait is over' USING ERRCODE = 'PT000';
        END IF;
    END LOOP;
EXCEPTION WHEN SQLSTATE 'PT000' THEN
    RETURN;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.ask_refresher(bigint, interval) IS
    'Asks the refresher for a refresh and waits for what comes of it; LATE: nothing did in time, GONE: it has ended.';

CREATE OR REPLACE FUNCTION pgtrickle_private.file_request(id bigint, told text) RETURNS bigint
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    request bigint;
BEGIN
    INSERT INTO pgt_refresh_requests (pgt_id) VALUES (id) RETURNING request_id INTO request;
    PERFORM tell('pgtrickle_refresh', jsonb_build_object('pgt_id', id, 'request_id', request));
    IF told IS NOT NULL THEN
        RAISE NOTICE '%', told;
    END IF;
    RETURN request;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.file_request(bigint, text) IS
    'Files a request that a refresher serves after the commit, with a notice where there is something to tell; '
    'returns its number.';

CREATE OR REPLACE FUNCTION pgtrickle_private.refresh_or_file(name text, id bigint, timeout interval) RETURNS bigint
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    patience CONSTANT interval := refresh_patience(timeout);
    hindrance CONSTANT text := why_not_wait(id);
    answer record;
BEGIN
    IF hindrance IS NOT NULL THEN
        RETURN file_request(id, hindrance);
    END IF;
    PERFORM tell_of_unseen_rows(id);
    answer := ask_refresher(id, patience);
    IF answer.action = 'GONE' THEN
        RETURN file_request(id, why_not_wait(id));
    ELSIF answer.action = 'LATE' THEN
        RAISE EXCEPTION '% was not refreshed within %', name, written_interval(patience)
            USING ERRCODE = '57014', CONSTRAINT = 'wait_timeout',
                HINT = 'Give it more time by timeout => ''1 hour'', or ask without waiting: wait => false.';
    ELSIF answer.error IS NOT NULL THEN
        RAISE EXCEPTION 'the refresh of % failed: %', name, answer.error
            USING ERRCODE = '55000', CONSTRAINT = 'refresh_failed',
                HINT = 'pytrickle status shows what failed, and pytrickle refresh tries again.';
    ELSIF answer.action = 'SKIP' THEN
        RAISE NOTICE '% was not refreshed: %', name, answer.reason;
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.refresh_or_file(text, bigint, interval) IS
    'Has the refresher refresh a stream table, and waits for it; where nobody could while this transaction is open, '
    'files a request for later and returns its number.';

CREATE OR REPLACE FUNCTION pgtrickle.refresh_stream_table(name text, wait boolean DEFAULT true,
    timeout interval DEFAULT NULL, search_path text DEFAULT current_setting('search_path')) RETURNS bigint
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    id CONSTANT bigint := stream_table_id(name, search_path);
BEGIN
    RETURN CASE WHEN wait THEN refresh_or_file(name, id, timeout) ELSE file_request(id, NULL) END;
END
$$;
COMMENT ON FUNCTION pgtrickle.refresh_stream_table(text, boolean, interval, text) IS
    'Has a running refresher refresh the stream table at once, also behind a shut gate, and waits for it: up to the '
    'timeout, or the setting pgtrickle.refresh_timeout, or five minutes, then it is error 57014; a refresh that fails '
    'is 55000, one that is skipped a notice. What this transaction wrote is not in it. '
    'Where no refresher runs, where this transaction holds what a refresh needs or could not see its result, and with '
    'wait => false it files a request, which is served after the commit, and returns its number. '
    'In a transaction that is to be prepared: SET LOCAL pgtrickle.notify = off, and it is found within the poll '
    'interval.';

CREATE OR REPLACE FUNCTION pgtrickle.refresh_if_stale(p_name text, p_max_age interval DEFAULT '5 minutes',
    search_path text DEFAULT current_setting('search_path')) RETURNS boolean
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    id CONSTANT bigint := stream_table_id(p_name, search_path);
BEGIN
    PERFORM check_span('p_max_age', p_max_age);
    IF filled_at(id) > clock_timestamp() - least(p_max_age, interval '1000 years') THEN
        RETURN false;
    END IF;
    PERFORM refresh_or_file(p_name, id, NULL);
    RETURN true;
END
$$;
COMMENT ON FUNCTION pgtrickle.refresh_if_stale(text, interval, text) IS
    'Refreshes a stream table as refresh_stream_table() does if its last refresh is older than this; says whether it '
    'did.';
