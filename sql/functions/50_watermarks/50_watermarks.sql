-- Watermarks: a loader says through which event time, or which batch, its source is complete.

CREATE OR REPLACE FUNCTION pgtrickle_private.is_of_the_system(relation regclass) RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN EXISTS (SELECT FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
                   WHERE c.oid = relation AND n.nspname IN ('pg_catalog', 'pg_toast', 'information_schema',
                       'pgtrickle', 'pgtrickle_changes', 'pgtrickle_private', 'pgtrickle_sinks', 'pgtrickle_state'));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.is_of_the_system(regclass) IS
    'Whether a relation is a catalog of PostgreSQL''s or of pytrickle''s own.';

CREATE OR REPLACE FUNCTION pgtrickle_private.check_loader(caller name, source regclass, action text) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    kind "char" := (SELECT CASE WHEN relpersistence = 't' THEN 't' WHEN is_of_the_system(oid) THEN 's' ELSE relkind END
                    FROM pg_class WHERE oid = source);
BEGIN
    PERFORM check_there(source);
    IF source IS NULL THEN
        PERFORM refuse_value('source', NULL, 'Give a table that a loader fills.');
    ELSIF kind NOT IN ('r', 'p', 'f') OR EXISTS (SELECT FROM pgt_stream_tables WHERE pgt_relid = source) THEN
        RAISE EXCEPTION '% is not a table that a loader fills', source
            USING ERRCODE = '42809', CONSTRAINT = 'invalid_argument',
                  HINT = CASE kind WHEN 't' THEN 'A temporary table is gone with its session: name an ordinary one.'
                      WHEN 's' THEN 'It is kept by the system itself: name a table of your own.'
                      ELSE 'Name the tables that it reads.' END;
    ELSIF NOT (has_table_privilege(caller, source, 'INSERT')
               OR EXISTS (SELECT FROM pgt_loaders AS l WHERE l.source_relid = source
                   AND to_regrole(quote_ident(l.loader)) IS NOT NULL AND pg_has_role(caller, l.loader::name, 'USAGE')))
                   THEN
        RAISE EXCEPTION 'permission denied to % %', action, source
            USING ERRCODE = '42501', CONSTRAINT = 'insufficient_privilege',
                  HINT = format('GRANT INSERT ON %s TO %I.', qualified_name(source), caller);
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_loader(name, regclass, text) IS
    'Refuses what only a loader of the source may do: to a role that may neither insert into it nor was granted this, '
    'and for what is no such table.';

-- What a loader says is kept in the catalog, and shown to everybody.
CREATE OR REPLACE FUNCTION pgtrickle_private.check_length(parameter text, value text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF length(value) > 1000 THEN
        PERFORM refuse_value(parameter, left(value, 50) || '...',
            format('Use at most 1000 characters, not %s.', length(value)));
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_length(text, text) IS
    'Error 22023 for a text of more than 1000 characters.';

CREATE OR REPLACE FUNCTION pgtrickle_private.check_progress(reached pgtrickle.progress) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF reached IS NULL THEN
        PERFORM refuse_value('watermark', NULL,
            'Give the event time, or the number of the batch, through which the table is complete.');
    ELSIF (reached).watermark IS NOT NULL AND (reached).batch IS NOT NULL THEN
        PERFORM refuse_value('watermark', progress_text(reached),
            'Give either an event time or the number of a batch.');
    ELSIF (reached).watermark = '-infinity' THEN
        PERFORM refuse_value('watermark', '-infinity',
            'Use a timestamp, or ''infinity'' for a source that will get no more data.');
    -- What clients cannot read nobody could refresh, and a watermark does not go back. The last microsecond is Python's
    -- infinity.
    ELSIF isfinite((reached).watermark)
        AND NOT ((reached).watermark >= '0001-01-01 00:00+00' AND (reached).watermark < '9999-12-31 23:59:59.999999+00')
        THEN
        PERFORM refuse_value('watermark', (reached).watermark::text,
            'Use a moment of the years 1 to 9999, or ''infinity'' for a source that will get no more data.');
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_progress(pgtrickle.progress) IS
    'Refuses what is no watermark: error 22004 or 22023.';

CREATE OR REPLACE FUNCTION pgtrickle_private.check_advance(caller name, source regclass, reached pgtrickle.progress)
    RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM check_loader(caller, source, 'advance the watermark of');
    PERFORM check_progress(reached);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_advance(name, regclass, pgtrickle.progress) IS
    'Refuses an advance with bad arguments, or by a role that may not insert into the source.';

CREATE OR REPLACE FUNCTION pgtrickle_private.kind_of(reached pgtrickle.progress) RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN CASE WHEN (reached).watermark > '-infinity' THEN 'event time' WHEN (reached).batch IS NOT NULL
        THEN 'batch numbers' END;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.kind_of(pgtrickle.progress) IS
    'What a source with this watermark goes by: event time or batch numbers; NULL while that is open.';

-- A group sees the first watermarks of its sources, and they see it: whichever comes second finds the other. A loader
-- with an older snapshot may miss a group; its source then counts in that group as one that never advanced.
CREATE OR REPLACE FUNCTION pgtrickle_private.check_kind(source regclass, newest pgtrickle.progress,
    reached pgtrickle.progress) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    kind CONSTANT text := kind_of(reached);
    remedy CONSTANT text := CASE kind WHEN 'event time'
        THEN format('Give the number of a batch: advance_batch(%L, 42).', source)
                                      ELSE format('Give an event time: advance_watermark(%L, now()).', source) END;
    other text;
BEGIN
    IF kind_of(newest) <> kind THEN
        RAISE EXCEPTION 'the watermark of % goes by %, not by %', source, kind_of(newest), kind
            USING ERRCODE = '42804', CONSTRAINT = 'invalid_argument',
                  HINT = remedy
                      || format(' A source keeps its kind; pgtrickle.reset_watermark(%L) forgets it.', source);
    END IF;
    SELECT g.group_name INTO other FROM pgt_watermark_groups AS g
    WHERE source = ANY (g.sources) AND group_kind(g) <> kind ORDER BY g.group_name LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION '% is in the watermark group %, which does not go by %', source, quote_literal(other), kind
            USING ERRCODE = '42804', CONSTRAINT = 'invalid_argument',
                  HINT = remedy || ' The group goes by batch numbers if it is created with a batch_tolerance, '
                      'otherwise by event time.';
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_kind(regclass, pgtrickle.progress, pgtrickle.progress) IS
    'Error 42804 if the source, or a watermark group that it is in, goes by the other kind of watermark.';

-- The first advance leaves a row behind to lock; -infinity is below everything and never committed. Its kind is new,
-- and whoever makes a group of the source waits for this row, or holds it. No more is locked: whoever owns any table
-- may call this.
CREATE OR REPLACE FUNCTION pgtrickle_private.lock_watermark(caller name, source regclass) RETURNS pgtrickle.progress
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    newest progress;
BEGIN
    SELECT w.watermark, w.batch INTO newest FROM pgt_watermarks AS w WHERE w.source_relid = source FOR UPDATE;
    IF NOT FOUND THEN
        INSERT INTO pgt_watermarks (source_relid, source_name, watermark, cut, advanced_at, last_seen_at, advanced_by)
        VALUES (source, '', '-infinity', current_cut(), clock_timestamp(), clock_timestamp(), caller)
        ON CONFLICT (source_relid) DO NOTHING;
        SELECT w.watermark, w.batch INTO newest FROM pgt_watermarks AS w WHERE w.source_relid = source FOR UPDATE;
    END IF;
    RETURN newest;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.lock_watermark(name, regclass) IS
    'Locks the watermark of a source until the transaction ends, and returns it.';

CREATE OR REPLACE FUNCTION pgtrickle_private.record_advance(caller name, source regclass, reached pgtrickle.progress)
    RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    taken cut;
    earlier cut;
BEGIN
    -- A statement of its own: its snapshot is taken with the lock held, so the cuts of a source form a chain.
    taken := current_cut();
    taken.xid := pg_current_xact_id();
    taken.pos := nextval('pgtrickle.change_pos');
    earlier := (SELECT w.cut FROM pgt_watermarks AS w WHERE w.source_relid = source);
    -- Of the statement that fired a trigger the changes may not be captured yet, for that is done by a trigger, too. A
    -- call is itself carried out by the trigger of calls.
    IF pg_trigger_depth() > 1 THEN
        taken.pos := 9223372036854775807;
    ELSIF earlier.xid = taken.xid THEN
        taken.pos := greatest(taken.pos, earlier.pos);
    END IF;
    UPDATE pgt_watermarks AS w
    SET source_name = qualified_name(source), watermark = (reached).watermark, batch = (reached).batch, cut = taken,
        advanced_at = clock_timestamp(), last_seen_at = clock_timestamp(), advanced_by = caller,
        marked_idle_at = NULL, marked_idle_by = NULL
    WHERE w.source_relid = source;
    PERFORM heed_run();
    INSERT INTO pgt_watermark_history (source_relid, watermark, batch, cut, advanced_at, advanced_by)
    SELECT w.source_relid, w.watermark, w.batch, w.cut, w.advanced_at, w.advanced_by FROM pgt_watermarks AS w
        WHERE w.source_relid = source;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.record_advance(name, regclass, pgtrickle.progress) IS
    'Stores a watermark of a source, whose row is locked, with the cut at which this transaction stands.';

CREATE OR REPLACE FUNCTION pgtrickle_private.tell_of_advance(source regclass, reached pgtrickle.progress) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    -- Either form wakes the refresher.
    IF notify_form() <> 'pg_trickle' THEN
        PERFORM tell('pgtrickle_watermark', jsonb_strip_nulls(jsonb_build_object(
            'source', qualified_name(source), 'watermark', (reached).watermark, 'batch', (reached).batch)));
    END IF;
    PERFORM tell_foreign('pgtrickle_watermark', 'wm:' || source::oid);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.tell_of_advance(regclass, pgtrickle.progress) IS
    'Tells everybody who listens of the new watermark of a source.';

-- A transaction that is SERIALIZABLE has read all rows of a table that it scans, so that loaders of different sources
-- would get in each other's way.
CREATE OR REPLACE FUNCTION pgtrickle_private.advance(caller name, source regclass, reached pgtrickle.progress,
    has_zone boolean) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET enable_seqscan = off SET jit = off
AS $$
DECLARE
    newest progress;
BEGIN
    PERFORM check_advance(caller, source, reached);
    newest := lock_watermark(caller, source);
    PERFORM check_kind(source, newest, reached);
    IF is_before(reached, newest) THEN
        RAISE EXCEPTION 'the watermark of % cannot move back from % to %', source, progress_text(newest),
            progress_text(reached)
            USING ERRCODE = '22000', CONSTRAINT = 'watermark_moved_back',
                  HINT = format('Nothing was changed. Another loader may have advanced it meanwhile; if it is wrong '
                      'there, pgtrickle.%s() takes it back.',
                      CASE kind_of(reached) WHEN 'event time' THEN 'reset_watermark' ELSE 'reset_batch' END);
    ELSIF reached = newest THEN
        UPDATE pgt_watermarks AS w SET last_seen_at = clock_timestamp(), marked_idle_at = NULL, marked_idle_by = NULL
            WHERE w.source_relid = source;
        RETURN;
    END IF;
    PERFORM check_doubt(source, reached, has_zone);
    PERFORM mend_capture(caller, source);
    PERFORM record_advance(caller, source, reached);
    PERFORM note_gaps_again(source);
    PERFORM tell_of_advance(source, reached);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.advance(name, regclass, pgtrickle.progress, boolean) IS
    'Advances the watermark of a source, of either kind.';

CREATE OR REPLACE FUNCTION pgtrickle.advance_watermark(source regclass, watermark timestamptz) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    INSERT INTO pgt_calls (call, source, arguments)
        VALUES ('advance_watermark', source, jsonb_build_object('watermark', watermark));
END
$$;
COMMENT ON FUNCTION pgtrickle.advance_watermark(regclass, timestamptz) IS
    'Says that the source is complete through this event time, as of this point of the caller''s transaction. Needs '
    'INSERT on the source. '
    'An equal watermark only records that the loader is alive, and ends that the source is idle; a lower one is error '
    '22000, one outside the years 1 to 9999 is 22023; ''infinity'' means no more data will come. '
    'It wakes the refresher by NOTIFY; for a transaction that is to be prepared: SET LOCAL pgtrickle.notify = off.';

-- A driver that asks the server for the types of its parameters gets text and timestamptz by this pair of functions,
-- and by no other: a number as the second argument of one of them would make it ambiguous, so batches have their own
-- name.
CREATE OR REPLACE FUNCTION pgtrickle.advance_watermark(
        source text, watermark timestamptz, search_path text DEFAULT current_setting('search_path')) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM advance_watermark(source_named(source, search_path), watermark);
END
$$;
COMMENT ON FUNCTION pgtrickle.advance_watermark(text, timestamptz, text) IS
    'The same for a source that comes by its name, as text.';

CREATE OR REPLACE FUNCTION pgtrickle.advance_batch(source regclass, batch bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    INSERT INTO pgt_calls (call, source, arguments)
        VALUES ('advance_watermark', source, jsonb_build_object('batch', batch));
END
$$;
COMMENT ON FUNCTION pgtrickle.advance_batch(regclass, bigint) IS
    'Says that the source is complete through the batch of this number. All else is as for event times, see '
    'advance_watermark(); instead of ''infinity'', 9223372036854775807 '
    'means no more data will come. A source keeps the kind of its first watermark: the other one is error 42804.';

CREATE OR REPLACE FUNCTION pgtrickle.advance_batch(
        source text, batch bigint, search_path text DEFAULT current_setting('search_path')) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM advance_batch(source_named(source, search_path), batch);
END
$$;
COMMENT ON FUNCTION pgtrickle.advance_batch(text, bigint, text) IS
    'The same for a source that comes by its name, as text.';
