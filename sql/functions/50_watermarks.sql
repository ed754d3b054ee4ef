-- Watermarks: a loader says through which event time its source is complete.

CREATE OR REPLACE FUNCTION pgtrickle.check_loader(source regclass, action text) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
DECLARE
    kind "char" := (SELECT relkind FROM pg_class WHERE oid = source);
BEGIN
    IF source IS NULL THEN
        PERFORM refuse_value('source', NULL, 'Give a table that a loader fills.');
    ELSIF kind IS NULL THEN
        RAISE EXCEPTION 'there is no relation with OID %', source::oid
            USING ERRCODE = '42P01', CONSTRAINT = 'unknown_table', HINT = 'Name the table, such as ''orders''.';
    ELSIF kind NOT IN ('r', 'p', 'f') OR EXISTS (SELECT FROM pgt_stream_tables WHERE pgt_relid = source) THEN
        RAISE EXCEPTION '% is not a table that a loader fills', source
            USING ERRCODE = '42809', CONSTRAINT = 'invalid_argument',
                  HINT = 'Name the tables that it reads.';
    ELSIF NOT (has_table_privilege(calling_role(), source, 'INSERT') OR has_any_column_privilege(calling_role(), source, 'INSERT')) THEN
        RAISE EXCEPTION 'permission denied to % %', action, source
            USING ERRCODE = '42501', CONSTRAINT = 'insufficient_privilege',
                  HINT = format('GRANT INSERT ON %s TO %I.', qualified_name(source), calling_role());
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle.check_loader(regclass, text) IS
    'Refuses what only a loader of the source may do: to a role that may not insert into it, and for what is no such table.';

CREATE OR REPLACE FUNCTION pgtrickle.check_advance(source regclass, watermark timestamptz) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
BEGIN
    PERFORM check_loader(source, 'advance the watermark of');
    IF watermark IS NULL THEN
        PERFORM refuse_value('watermark', NULL, 'Give the event time through which the table is complete.');
    ELSIF watermark = '-infinity' THEN
        PERFORM refuse_value('watermark', '-infinity', 'Use a timestamp, or ''infinity'' for a source that will get no more data.');
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle.check_advance(regclass, timestamptz) IS
    'Refuses an advance with bad arguments, or by a role that may not insert into the source.';

-- The first advance leaves a row behind to lock; -infinity is below everything and never committed.
CREATE OR REPLACE FUNCTION pgtrickle.lock_watermark(source regclass) RETURNS timestamptz
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
DECLARE
    newest timestamptz;
BEGIN
    SELECT w.watermark INTO newest FROM pgt_watermarks AS w WHERE w.source_relid = source FOR UPDATE;
    IF NOT FOUND THEN
        INSERT INTO pgt_watermarks (source_relid, source_name, watermark, cut, advanced_at, last_seen_at, advanced_by)
        VALUES (source, '', '-infinity', current_cut(), clock_timestamp(), clock_timestamp(), session_user)
        ON CONFLICT (source_relid) DO NOTHING;
        SELECT w.watermark INTO newest FROM pgt_watermarks AS w WHERE w.source_relid = source FOR UPDATE;
    END IF;
    RETURN newest;
END
$$;
COMMENT ON FUNCTION pgtrickle.lock_watermark(regclass) IS
    'Locks the watermark of a source until the transaction ends, and returns it.';

CREATE OR REPLACE FUNCTION pgtrickle.advance_watermark(source regclass, watermark timestamptz) RETURNS void
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
DECLARE
    newest timestamptz;
    reached cut;
BEGIN
    PERFORM check_advance(source, watermark);
    newest := lock_watermark(source);
    IF watermark < newest THEN
        RAISE EXCEPTION 'the watermark of % cannot move back from % to %', source, newest, watermark
            USING ERRCODE = '22000', CONSTRAINT = 'watermark_moved_back',
                  HINT = 'Nothing was changed. Another loader may have advanced it meanwhile.';
    ELSIF watermark = newest THEN
        UPDATE pgt_watermarks AS w SET last_seen_at = clock_timestamp(), marked_idle_at = NULL, marked_idle_by = NULL WHERE w.source_relid = source;
        RETURN;
    END IF;
    -- A statement of its own: its snapshot is taken with the lock held, so the cuts of a source form a chain.
    reached := current_cut();
    reached.xid := pg_current_xact_id();
    reached.pos := nextval('pgtrickle.change_pos');
    UPDATE pgt_watermarks AS w
    SET source_name = qualified_name(source), watermark = advance_watermark.watermark, cut = reached,
        advanced_at = clock_timestamp(), last_seen_at = clock_timestamp(), advanced_by = session_user,
        marked_idle_at = NULL, marked_idle_by = NULL
    WHERE w.source_relid = source AND w.watermark < advance_watermark.watermark;
    INSERT INTO pgt_watermark_history (source_relid, watermark, cut, advanced_at, advanced_by)
    SELECT w.source_relid, w.watermark, w.cut, w.advanced_at, w.advanced_by FROM pgt_watermarks AS w WHERE w.source_relid = source;
    PERFORM pg_notify('pgtrickle_watermark', jsonb_build_object('source', qualified_name(source), 'watermark', watermark)::text);
END
$$;
COMMENT ON FUNCTION pgtrickle.advance_watermark(regclass, timestamptz) IS
    'Says that the source is complete through this event time, as of this point of the caller''s transaction. Needs INSERT on the source. '
    'An equal watermark only records that the loader is alive, and ends that the source is idle; a lower one is error 22000; ''infinity'' means no more data will come.';
