-- Waiting for a stream table, and refusing to read a stale one. Readers have no rights on the catalog: what they call
-- runs with their own, and calls functions that run with those of the owner and tell nothing but how far a refresh
-- came.

CREATE OR REPLACE FUNCTION pgtrickle_private.readable_stream_table(name text, search_path text) RETURNS bigint
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    id CONSTANT bigint := stream_table_id(name, search_path);
    relation CONSTANT regclass := stream_table_relation(id);
BEGIN
    IF COALESCE(has_table_privilege(relation, 'SELECT'), false) IS FALSE THEN
        RAISE EXCEPTION 'permission denied for stream table %', qualified_name(relation)
            USING ERRCODE = '42501', CONSTRAINT = 'insufficient_privilege',
                  HINT = format('GRANT SELECT ON %s TO %I.', qualified_name(relation), current_user);
    END IF;
    RETURN id;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.readable_stream_table(text, text) IS
    'Number of the stream table a name means under a search_path; error 42501 unless the caller may read it.';

CREATE OR REPLACE FUNCTION pgtrickle_private.why_behind(p_pgt_id bigint, wanted pgtrickle.progress) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    known CONSTANT pgt_stream_tables := (SELECT t FROM pgt_stream_tables AS t WHERE t.pgt_id = p_pgt_id);
    verdict record;
BEGIN
    SELECT * INTO verdict FROM gating_decision(p_pgt_id);
    RETURN CASE
        WHEN known.paused THEN 'it is paused'
        WHEN known.tier = 'frozen' THEN 'its tier is frozen'
        WHEN known.status = 'SUSPENDED'
            THEN format('it is suspended after %s failed refreshes: %s', known.consecutive_failures,
            without_values(known.last_error, known.last_sqlstate))
        WHEN known.last_error IS NOT NULL
            THEN format('its last refresh failed: %s', without_values(known.last_error, known.last_sqlstate))
        WHEN verdict.decision <> 'run'
            OR NOT (wanted IS NULL
                OR reaches(ROW(verdict.effective_watermark, verdict.effective_batch)::progress, wanted))
                THEN verdict.reason
        WHEN known.last_skip_reason IS NOT NULL THEN format('its last refresh was skipped: %s', known.last_skip_reason)
        ELSE 'nothing stands in its way, but no refresh has come'
    END;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.why_behind(bigint, pgtrickle.progress) IS
    'Why a stream table does not show the wanted event time or batch yet, or, for NULL, why it was not refreshed '
    'lately.';

CREATE OR REPLACE FUNCTION pgtrickle_private.check_wait(wanted pgtrickle.progress, timeout interval) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF wanted IS NULL THEN
        PERFORM refuse_value('watermark', NULL,
            'Give the event time, or the number of the batch, through which the stream table must be complete.');
    ELSIF timeout IS NULL OR timeout < interval '0' THEN
        PERFORM refuse_value('timeout', timeout::text, 'Use an interval of zero or more, such as ''30 seconds''.');
    ELSIF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
        RAISE EXCEPTION 'at isolation level % nothing that is committed meanwhile can be seen',
            upper(current_setting('transaction_isolation'))
            USING ERRCODE = '25001', CONSTRAINT = 'invalid_argument',
                  HINT = 'Wait at READ COMMITTED, before the transaction that reads the stream table begins.';
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_wait(pgtrickle.progress, interval) IS
    'Refuses to wait for NULL, for a negative time, or under a snapshot that does not move.';

CREATE OR REPLACE FUNCTION pgtrickle_private.refuse_vain_wait(p_pgt_id bigint, wanted pgtrickle.progress) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM gating_groups(p_pgt_id) AS c JOIN pgt_watermark_groups AS g USING (group_id)
            WHERE group_kind(g) = kind_of(wanted))
    THEN
        RAISE EXCEPTION '% heeds no watermark group that goes by %, so its effective watermark does not move',
                (SELECT format('%I.%I', t.pgt_schema, t.pgt_name) FROM pgt_stream_tables AS t
                    WHERE t.pgt_id = p_pgt_id), kind_of(wanted)
            USING ERRCODE = '55000', CONSTRAINT = 'invalid_argument',
                  HINT = 'Create a watermark group over its sources, and set watermark_gating => ''gate'' or '
                      '''hold_back'' if it has only one of them.';
    ELSIF EXISTS (SELECT FROM pgt_watermarks AS w WHERE (w.cut).xid = pg_current_xact_id_if_assigned()) THEN
        RAISE EXCEPTION 'this transaction has advanced a watermark, which nobody else sees before it commits'
            USING ERRCODE = '25001', CONSTRAINT = 'invalid_argument', HINT = 'Commit first, then wait.';
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.refuse_vain_wait(bigint, pgtrickle.progress) IS
    'Refuses a wait that cannot end: no watermark group of this kind moves the stream table, or the caller itself '
    'holds an advance back.';

CREATE OR REPLACE FUNCTION pgtrickle_private.refuse_late(p_pgt_id bigint, wanted pgtrickle.progress, timeout interval)
    RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
    SET TimeZone = 'UTC' SET DateStyle = 'ISO' SET IntervalStyle = 'postgres'
AS $$
DECLARE
    known CONSTANT pgt_stream_tables := (SELECT t FROM pgt_stream_tables AS t WHERE t.pgt_id = p_pgt_id);
BEGIN
    RAISE EXCEPTION USING
        MESSAGE = format('%I.%I is not complete through %s after %s: %s',
                         known.pgt_schema, known.pgt_name, progress_text(wanted), written_interval(timeout),
                             why_behind(p_pgt_id, wanted)),
        DETAIL = COALESCE('It is complete through '
            || progress_text(ROW(known.effective_watermark, known.effective_batch)::progress) || '.',
            'It has no effective watermark yet.'),
        ERRCODE = '57014', CONSTRAINT = 'wait_timeout',
        HINT = 'pgtrickle.watermark_status() shows where its sources stand; pytrickle run must be running to refresh '
            'it.';
END
$$;
COMMENT ON FUNCTION pgtrickle_private.refuse_late(bigint, pgtrickle.progress, interval) IS
    'Error 57014: the time for waiting is over.';

CREATE OR REPLACE FUNCTION pgtrickle_private.reach(id bigint, stream_table text, wanted pgtrickle.progress,
    timeout interval) RETURNS pgtrickle.progress
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    deadline timestamptz;
    shown progress;
BEGIN
    LOOP
        -- VOLATILE at READ COMMITTED: each statement takes a snapshot of its own.
        SELECT t.effective_watermark, t.effective_batch INTO shown FROM pgt_stream_tables AS t WHERE t.pgt_id = id;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'the stream table % was dropped while it was waited for', stream_table
                USING ERRCODE = '42704', CONSTRAINT = 'unknown_stream_table', HINT = 'Wait for another one.';
        END IF;
        EXIT WHEN reaches(shown, wanted);
        IF deadline IS NULL THEN
            PERFORM refuse_vain_wait(id, wanted);
            -- Some intervals are longer than what is left of the calendar.
            deadline := clock_timestamp() + least(timeout, interval '1000 years');
        ELSIF clock_timestamp() >= deadline THEN
            PERFORM refuse_late(id, wanted, timeout);
        END IF;
        PERFORM pg_sleep(least(0.05, extract(epoch FROM deadline - clock_timestamp())));
    END LOOP;
    RETURN shown;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.reach(bigint, text, pgtrickle.progress, interval) IS
    'Waits until the stream table of this number is complete through an event time or a batch, and returns how far it '
    'is.';

CREATE OR REPLACE FUNCTION pgtrickle_private.await_progress(
        stream_table text, wanted pgtrickle.progress, timeout interval, search_path text) RETURNS pgtrickle.progress
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM check_wait(wanted, timeout);
    RETURN reach(readable_stream_table(stream_table, search_path), stream_table, wanted, timeout);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.await_progress(text, pgtrickle.progress, interval, text) IS
    'Waits until the stream table is complete through an event time or a batch, and returns how far it is; error '
    '42501 unless the caller may read it.';

CREATE OR REPLACE FUNCTION pgtrickle.wait_for(
        stream_table text, watermark timestamptz, timeout interval DEFAULT '30 seconds',
        search_path text DEFAULT current_setting('search_path')) RETURNS timestamptz
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN (await_progress(stream_table, ROW(watermark, NULL)::progress, timeout, search_path)).watermark;
END
$$;
COMMENT ON FUNCTION pgtrickle.wait_for(text, timestamptz, interval, text) IS
    'Waits until the stream table is complete through this event time, and returns its effective watermark. Error '
    '57014 after the timeout, which says '
    'what it waits for; error 25001 at another isolation level than READ COMMITTED. Needs SELECT on the stream table.';

CREATE OR REPLACE FUNCTION pgtrickle.wait_for(
        stream_table text, watermark bigint, timeout interval DEFAULT '30 seconds',
        search_path text DEFAULT current_setting('search_path')) RETURNS bigint
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN (await_progress(stream_table, ROW(NULL, watermark)::progress, timeout, search_path)).batch;
END
$$;
COMMENT ON FUNCTION pgtrickle.wait_for(text, bigint, interval, text) IS
    'Waits until the stream table is complete through the batch of this number, and returns the number of its '
    'effective batch. All else is as for event times.';

CREATE OR REPLACE FUNCTION pgtrickle.wait_for(
        stream_table text, watermark text, timeout interval DEFAULT '30 seconds',
        search_path text DEFAULT current_setting('search_path')) RETURNS timestamptz
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN (await_progress(stream_table, ROW(read_moment('watermark', watermark), NULL)::progress, timeout,
        search_path)).watermark;
END
$$;
COMMENT ON FUNCTION pgtrickle.wait_for(text, text, interval, text) IS
    'The same for an event time that comes as text: what is in quotes is never a batch number.';

CREATE OR REPLACE FUNCTION pgtrickle_private.refuse_stale(p_pgt_id bigint, staleness interval, max_staleness interval)
    RETURNS void
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
    SET TimeZone = 'UTC' SET DateStyle = 'ISO' SET IntervalStyle = 'postgres'
AS $$
DECLARE
    name CONSTANT text := (SELECT format('%I.%I', t.pgt_schema, t.pgt_name) FROM pgt_stream_tables AS t
        WHERE t.pgt_id = p_pgt_id);
BEGIN
    RAISE EXCEPTION USING
        MESSAGE = CASE WHEN staleness IS NULL THEN format('%s was never filled', name)
                       ELSE format('%s shows data that is %s old, at most %s was asked for',
                                   name, written_interval(date_trunc('milliseconds', staleness)),
                                   written_interval(max_staleness)) END,
        DETAIL = format('Why: %s.', why_behind(p_pgt_id, NULL)),
        ERRCODE = '40001', CONSTRAINT = 'not_fresh',
        HINT = 'Repeat it later; pytrickle run must be running to refresh it.';
END
$$;
COMMENT ON FUNCTION pgtrickle_private.refuse_stale(bigint, interval, interval) IS
    'Error 40001: the data is older than was asked for, or there is none.';

CREATE OR REPLACE FUNCTION pgtrickle_private.filled_at(p_pgt_id bigint) RETURNS timestamptz
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT t.data_timestamp FROM pgt_stream_tables AS t WHERE t.pgt_id = p_pgt_id
$$;
COMMENT ON FUNCTION pgtrickle_private.filled_at(bigint) IS
    'Of when the data of the stream table of this number is, or NULL.';

CREATE OR REPLACE FUNCTION pgtrickle.assert_fresh(
        stream_table text, max_staleness interval, search_path text DEFAULT current_setting('search_path'))
            RETURNS interval
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    id bigint;
    staleness interval;
BEGIN
    IF max_staleness IS NULL OR max_staleness < interval '0' THEN
        PERFORM refuse_value('max_staleness', max_staleness::text,
            'Use an interval of zero or more, such as ''10 minutes''.');
    END IF;
    id := readable_stream_table(stream_table, search_path);
    -- STABLE: read under the snapshot of the calling query, so this is the age of the rows that the query itself sees.
    staleness := clock_timestamp() - filled_at(id);
    IF staleness > max_staleness THEN
        -- Nothing has been refreshed since, as long as nothing changed.
        staleness := least(staleness, COALESCE(clock_timestamp() - incomplete_since(id), '0'));
    END IF;
    IF (staleness <= max_staleness) IS NOT TRUE THEN
        PERFORM refuse_stale(id, staleness, max_staleness);
    END IF;
    RETURN staleness;
END
$$;
COMMENT ON FUNCTION pgtrickle.assert_fresh(text, interval, text) IS
    'Returns how old the data of the stream table is, at most: the time since its last refresh or, where that is '
    'longer than max_staleness, since the oldest change came that it does not show, 0 if there is none. Error 40001 '
    'if that is longer, too, or it was never filled. For use within a query, '
    'a view or a transaction: it judges the rows that those see. Needs SELECT on the stream table.';
