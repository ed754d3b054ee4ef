-- Sources that are loaded in partitions: the watermark of a source is the least over those that are not idle.

-- The rule. Silence is a matter of the clock, watermarks are event times: the two are never compared.
CREATE OR REPLACE FUNCTION pgtrickle_private.partition_state(watermark timestamptz, silent_since timestamptz,
    idle_timeout interval, at timestamptz) RETURNS text
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT CASE WHEN watermark = 'infinity' THEN 'exhausted' WHEN at - silent_since > idle_timeout THEN 'idle'
        ELSE 'active' END
$$;
COMMENT ON FUNCTION pgtrickle_private.partition_state(timestamptz, timestamptz, interval, timestamptz) IS
    'How a partition counts at a moment: active, idle (silent for longer than the timeout; never for NULL) or '
    'exhausted.';

CREATE OR REPLACE FUNCTION pgtrickle_private.partition_states(source regclass, idle_timeout interval, at timestamptz)
    RETURNS TABLE (partition_name text, watermark timestamptz, silent_since timestamptz, state text)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT p.partition_name, p.watermark, p.silent_since,
           partition_state(p.watermark, p.silent_since, partition_states.idle_timeout, at)
    FROM pgt_source_partitions AS p WHERE p.source_relid = source;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.partition_states(regclass, interval, timestamptz) IS
    'How each partition of a source counts at a moment.';

CREATE OR REPLACE FUNCTION pgtrickle_private.complete_through(source regclass, idle_timeout interval, at timestamptz)
    RETURNS timestamptz
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN (
        SELECT CASE WHEN bool_and(s.state = 'exhausted') THEN 'infinity'
                    WHEN bool_or(s.state = 'active' AND s.watermark IS NULL) THEN NULL
                    ELSE min(s.watermark) FILTER (WHERE s.state = 'active') END
        FROM partition_states(source, idle_timeout, at) AS s);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.complete_through(regclass, interval, timestamptz) IS
    'The least watermark over the active partitions of a source; NULL if one of them has none, or none is active. '
    'infinity only if all are exhausted, since an idle one may wake up.';

CREATE OR REPLACE FUNCTION pgtrickle_private.check_heard(heard jsonb, expected text[], idle_timeout interval,
    at timestamptz) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET TimeZone = 'UTC'
AS $$
DECLARE
    wrong text;
BEGIN
    IF jsonb_typeof(heard) IS DISTINCT FROM 'object' THEN
        PERFORM refuse_value('heard', left(heard::text, 50),
            'Give a JSON object of partitions and the event times through which they are complete.');
    ELSIF idle_timeout <= interval '0' THEN
        PERFORM refuse_value('idle_timeout', idle_timeout::text, 'Use an interval longer than zero.');
    ELSIF expected IS NULL OR array_position(expected, NULL) IS NOT NULL THEN
        PERFORM refuse_value('expected', NULL, 'Give names of partitions, or leave it out.');
    ELSIF NOT (at >= '0001-01-01 00:00+00' AND at < '10000-01-01 00:00+00') THEN
        PERFORM refuse_value('at', at::text, 'Use a moment of the years 1 to 9999.');
    END IF;
    PERFORM check_length('partition', n.name) FROM (
        SELECT jsonb_object_keys(heard) UNION ALL SELECT unnest(expected)) AS n(name);
    SELECT h.value::text INTO wrong FROM jsonb_each(heard) AS h
    WHERE jsonb_typeof(h.value) NOT IN ('string', 'null') OR (h.value #>> '{}')::timestamptz <> 'infinity'
        AND NOT ((h.value #>> '{}')::timestamptz >= '0001-01-01 00:00+00'
            AND (h.value #>> '{}')::timestamptz < '9999-12-31 23:59:59.999999+00') LIMIT 1;
    IF FOUND THEN
        PERFORM refuse_value('heard', wrong,
            'Use moments of the years 1 to 9999, ''infinity'' for a partition that gets no more rows, or null.');
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_heard(jsonb, text[], interval, timestamptz) IS
    'Error 22023, or 22004 for NULL, for what cannot be said of partitions.';

-- While every partition is idle nobody was loading, so the silence of none of them says anything: each gets the whole
-- timeout anew.
CREATE OR REPLACE FUNCTION pgtrickle_private.record_heard(source regclass, heard jsonb, expected text[],
    idle_timeout interval, at timestamptz) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET TimeZone = 'UTC'
AS $$
BEGIN
    UPDATE pgt_source_partitions AS p SET silent_since = at
    WHERE p.source_relid = source
        AND NOT EXISTS (SELECT FROM partition_states(source, idle_timeout, at) AS s WHERE s.state = 'active');
    INSERT INTO pgt_source_partitions AS p (source_relid, partition_name, watermark, silent_since)
    SELECT source, h.key, (h.value #>> '{}')::timestamptz, at FROM jsonb_each(heard) AS h
    ON CONFLICT (source_relid, partition_name) DO UPDATE
    SET watermark = greatest(p.watermark, excluded.watermark),
        silent_since = greatest(p.silent_since, excluded.silent_since);
    INSERT INTO pgt_source_partitions (source_relid, partition_name, silent_since)
    SELECT source, e.name, at FROM unnest(expected) AS e(name) ON CONFLICT DO NOTHING;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.record_heard(regclass, jsonb, text[], interval, timestamptz) IS
    'Notes what was loaded of the partitions of a source at a moment; their watermarks never move back.';

-- Files are partitions that come once and never again. What is forgotten comes back as a new partition that begins in
-- the past: then too the watermark of the source stays.
CREATE OR REPLACE FUNCTION pgtrickle_private.forget_done_partitions(source regclass, idle_timeout interval,
    at timestamptz) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF (SELECT count(*) FROM pgt_source_partitions AS p WHERE p.source_relid = source) <= 1000 THEN
        RETURN;
    END IF;
    DELETE FROM pgt_source_partitions AS p WHERE p.source_relid = source AND p.partition_name IN (
        SELECT s.partition_name FROM partition_states(source, idle_timeout, at) AS s
        WHERE s.state <> 'active' AND s.watermark IS NOT NULL
        ORDER BY s.silent_since DESC, s.partition_name OFFSET 1000);
    IF (SELECT count(*) FROM pgt_source_partitions AS p WHERE p.source_relid = source) > 10000 THEN
        RAISE EXCEPTION '% has more than 10000 partitions that are not idle', source
            USING ERRCODE = '54000', CONSTRAINT = 'invalid_argument',
                HINT = 'Name a column with few values, such as the number of a shard, or give a shorter idle_timeout.';
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.forget_done_partitions(regclass, interval, timestamptz) IS
    'Forgets idle and exhausted partitions of a source but for the thousand that were heard of last; error 54000 for '
    'too many others.';

-- Loads of one source wait here for each other, so each sees what the one before committed, and its advance covers it.
CREATE OR REPLACE FUNCTION pgtrickle_private.advance_by_partitions(caller name, source regclass, heard jsonb,
    expected text[], idle_timeout interval, at timestamptz) RETURNS timestamptz
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    moment timestamptz;
    reached timestamptz;
    newest progress;
BEGIN
    PERFORM check_loader(caller, source, 'advance the watermark of');
    PERFORM check_heard(heard, expected, idle_timeout, at);
    INSERT INTO pgt_partitioned_sources AS s (source_relid, idle_timeout, judged_at)
    VALUES (source, idle_timeout, COALESCE(at, clock_timestamp()))
    ON CONFLICT (source_relid) DO UPDATE
    -- By the clock as it stands when the wait is over.
    SET idle_timeout = excluded.idle_timeout, judged_at = COALESCE(at, clock_timestamp())
    RETURNING s.judged_at INTO moment;
    PERFORM record_heard(source, heard, expected, idle_timeout, moment);
    reached := complete_through(source, idle_timeout, moment);
    PERFORM forget_done_partitions(source, idle_timeout, moment);
    IF reached IS NOT NULL OR EXISTS (SELECT FROM pgt_watermarks AS w WHERE w.source_relid = source) THEN
        newest := lock_watermark(caller, source);
        reached := greatest(reached, NULLIF((newest).watermark, '-infinity'));
        -- Where nothing is known a batch number is refused all the same.
        PERFORM advance(caller, source, ROW(COALESCE(reached, moment), NULL)::progress, true);
    END IF;
    RETURN reached;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.advance_by_partitions(name, regclass, jsonb, text[], interval, timestamptz) IS
    'Notes what was loaded of the partitions of a source, for its caller, and advances its watermark to the least.';

CREATE OR REPLACE FUNCTION pgtrickle.advance_partitions(
        source regclass, heard jsonb, idle_timeout interval DEFAULT '1 minute', expected text[] DEFAULT '{}',
        at timestamptz DEFAULT NULL) RETURNS timestamptz
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    answer jsonb;
BEGIN
    INSERT INTO pgt_calls (call, source, arguments)
    VALUES ('advance_partitions', source, jsonb_build_object('heard', heard, 'expected', expected,
        'idle_timeout', idle_timeout, 'at', at))
    RETURNING result INTO answer;
    RETURN (answer #>> '{}')::timestamptz;
END
$$;
COMMENT ON FUNCTION pgtrickle.advance_partitions(regclass, jsonb, interval, text[], timestamptz) IS
    'Says through which event time each partition is complete of which the caller''s transaction loaded something, as '
    'a JSON object by name; null where nothing can be said yet. Advances the watermark of the source to the least over '
    'its partitions, which never moves it back, and returns it. A partition of which nothing was loaded for longer '
    'than idle_timeout is left out while others are loaded; NULL waits for ever. Those in expected are waited for '
    'although nothing came from them yet. at is when that is judged, otherwise the server''s clock decides. Concurrent '
    'loads wait for each other. Needs INSERT on the source.';

CREATE OR REPLACE FUNCTION pgtrickle_private.forget_partition_of(caller name, source regclass, partition_name text)
    RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM check_loader(caller, source, 'forget partitions of');
    PERFORM FROM pgt_partitioned_sources AS s WHERE s.source_relid = source FOR UPDATE;
    DELETE FROM pgt_source_partitions AS p
    WHERE p.source_relid = source AND p.partition_name = forget_partition_of.partition_name;
    IF NOT FOUND THEN
        PERFORM refuse_value('partition_name', partition_name,
            format('%s has no such partition.', qualified_name(source)));
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.forget_partition_of(name, regclass, text) IS
    'Forgets a partition of a source, for its caller.';

CREATE OR REPLACE FUNCTION pgtrickle.forget_partition(source regclass, partition_name text) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    INSERT INTO pgt_calls (call, source, arguments)
        VALUES ('forget_partition', source, jsonb_build_object('partition_name', partition_name));
END
$$;
COMMENT ON FUNCTION pgtrickle.forget_partition(regclass, text) IS
    'Forgets a partition that will not come again, so that nobody waits for it; the watermark follows with the next '
    'load. Needs INSERT on the source.';
