-- Taking back a watermark that was wrong. What it vouched for is vouched for no longer: stream tables claim what the
-- remaining watermarks allow, and whoever asks for what a withdrawn one selected gets an error, never other rows.

CREATE OR REPLACE FUNCTION pgtrickle_private.withdrawn(relation regclass, wanted pgtrickle.progress)
    RETURNS pgtrickle.progress
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT ROW(w.watermark, w.batch)::progress FROM pgt_withdrawn_watermarks AS w
    WHERE w.source_relid = relation AND reaches(wanted, ROW(w.watermark, w.batch)::progress)
        AND NOT EXISTS (SELECT FROM pgt_watermark_history AS h WHERE h.source_relid = relation
            AND reaches(h.progress, ROW(w.watermark, w.batch)::progress) AND reaches(wanted, h.progress))
        AND NOT EXISTS (SELECT FROM pgt_versions AS v WHERE v.source_relid = relation
            AND reaches(ROW(v.watermark, v.batch)::progress, ROW(w.watermark, w.batch)::progress)
            AND reaches(wanted, ROW(v.watermark, v.batch)::progress))
    ORDER BY w.watermark DESC, w.batch DESC LIMIT 1
$$;
COMMENT ON FUNCTION pgtrickle_private.withdrawn(regclass, pgtrickle.progress) IS
    'The withdrawn watermark that this one selected, unless a later one stands between them by now; NULL: none.';

CREATE OR REPLACE FUNCTION pgtrickle_private.remaining(source regclass, target pgtrickle.progress)
    RETURNS pgtrickle.progress
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT h.progress FROM pgt_watermark_history AS h
    WHERE h.source_relid = source AND reaches(target, h.progress) ORDER BY h.progress DESC LIMIT 1
$$;
COMMENT ON FUNCTION pgtrickle_private.remaining(regclass, pgtrickle.progress) IS
    'The newest advance of a source that is not after this watermark; NULL: there is none.';

-- Of a restored database there is no history, but there are watermarks.
CREATE OR REPLACE FUNCTION pgtrickle_private.withdraw_beyond(caller name, source regclass, target pgtrickle.progress)
    RETURNS void
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    INSERT INTO pgt_withdrawn_watermarks (source_relid, source_name, version, watermark, batch, advanced_at,
        advanced_by, lowered_to, withdrawn_by)
    SELECT source, qualified_name(source), h.history_id, h.watermark, h.batch, h.advanced_at, h.advanced_by, target,
        caller
    FROM pgt_watermark_history AS h WHERE h.source_relid = source AND is_before(target, h.progress)
    UNION ALL
    SELECT source, qualified_name(source), NULL, w.watermark, w.batch, w.advanced_at, w.advanced_by, target, caller
    FROM pgt_watermarks AS w WHERE w.source_relid = source
        AND NOT EXISTS (SELECT FROM pgt_watermark_history AS h WHERE h.source_relid = source)
    ORDER BY 4, 5, 3;
    DELETE FROM pgt_watermark_history AS h WHERE h.source_relid = source AND is_before(target, h.progress);
$$;
COMMENT ON FUNCTION pgtrickle_private.withdraw_beyond(name, regclass, pgtrickle.progress) IS
    'Moves the advances of a source beyond this watermark to those that were withdrawn.';

CREATE OR REPLACE FUNCTION pgtrickle_private.lowered_let_through(let_through jsonb, source regclass,
    honest pgtrickle.progress) RETURNS jsonb
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT COALESCE(jsonb_object_agg(e.key, e.value) FILTER (WHERE NOT EXISTS (
        SELECT FROM pgt_watermark_groups AS g WHERE g.group_id = e.key::integer AND source = ANY (g.sources)
            AND reaches(honest, jsonb_populate_record(NULL::progress, e.value)) IS NOT TRUE)), '{}')
    FROM jsonb_each(let_through) AS e
$$;
COMMENT ON FUNCTION pgtrickle_private.lowered_let_through(jsonb, regclass, pgtrickle.progress) IS
    'By group, what let a stream table through, without what a withdrawn watermark did.';

-- A window that was closed by a wrong watermark was shown too early: it is opened again, and comes when it is closed.
CREATE OR REPLACE FUNCTION pgtrickle_private.reopen_windows(stream_table pgtrickle.pgt_stream_tables,
    honest timestamptz) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    UPDATE pgt_stream_tables AS t
    SET refresh_xid = pg_current_xact_id(), recomputation_asked = true,
        reinitialize_reason = COALESCE(t.reinitialize_reason, 'a watermark that had closed windows was taken back')
    WHERE t.pgt_id = stream_table.pgt_id;
    EXECUTE format('DELETE FROM %s WHERE $1 IS NULL OR %I > $1', stream_table.pgt_relid, stream_table.window_end)
        USING honest;
    -- Nobody else in this transaction may write the stream table.
    UPDATE pgt_stream_tables AS t SET refresh_xid = NULL WHERE t.pgt_id = stream_table.pgt_id;
    DELETE FROM pgt_late_changes AS l
    WHERE l.pgt_id = stream_table.pgt_id AND (honest IS NULL OR l.window_end > honest);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.reopen_windows(pgtrickle.pgt_stream_tables, timestamptz) IS
    'Takes the windows that end later out of a stream table that emits closed windows, and has it computed anew.';

-- The next refresh raises the claim to what its own cuts allow. One that began before sees that the stream table was
-- changed, and begins again. The version of one that was never filled stays 0, so there its definition is read anew.
CREATE OR REPLACE FUNCTION pgtrickle_private.lower_claim(caller name, source regclass, target pgtrickle.progress,
    honest pgtrickle.progress, stream_table pgtrickle.pgt_stream_tables) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    by_time CONSTANT boolean := kind_of(target) = 'event time';
    excessive CONSTANT boolean := CASE WHEN by_time
        THEN (stream_table.effective_watermark <= (honest).watermark) IS NOT TRUE
        ELSE (stream_table.effective_batch <= (honest).batch) IS NOT TRUE END;
BEGIN
    UPDATE pgt_stream_tables AS t
    SET frontier_version = CASE WHEN t.frontier_version > 0 THEN t.frontier_version + 1 ELSE 0 END,
        view_stamp = CASE WHEN t.frontier_version > 0 THEN t.view_stamp END,
        effective_watermark = CASE WHEN by_time AND excessive AND t.effective_watermark IS NOT NULL
            THEN (honest).watermark ELSE t.effective_watermark END,
        effective_batch = CASE WHEN NOT by_time AND excessive AND t.effective_batch IS NOT NULL
            THEN (honest).batch ELSE t.effective_batch END,
        let_through = lowered_let_through(t.let_through, source, honest)
    WHERE t.pgt_id = stream_table.pgt_id;
    WITH gone AS (
        DELETE FROM pgt_versions AS v
        WHERE v.source_relid = stream_table.pgt_relid AND kind_of(target) = ANY (ARRAY[
                CASE WHEN v.watermark IS NOT NULL THEN 'event time' END,
                CASE WHEN v.batch IS NOT NULL THEN 'batch numbers' END])
            AND NOT reaches(honest, ROW(v.watermark, v.batch)::progress)
        RETURNING v.*)
    INSERT INTO pgt_withdrawn_watermarks (source_relid, source_name, version, watermark, batch, advanced_at, lowered_to,
        withdrawn_by)
    SELECT g.source_relid, qualified_name(g.source_relid), g.version, g.watermark, g.batch, g.recorded_at, target,
        caller FROM gone AS g ORDER BY g.version;
    IF by_time AND excessive AND stream_table.output_mode = 'append' AND stream_table.effective_watermark IS NOT NULL
    THEN
        PERFORM reopen_windows(stream_table, (honest).watermark);
    END IF;
    IF by_time AND stream_table.frozen_before IS NOT NULL THEN
        PERFORM thaw_rows(stream_table, (honest).watermark);
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.lower_claim(name, regclass, pgtrickle.progress, pgtrickle.progress,
    pgtrickle.pgt_stream_tables) IS
    'Has a stream table claim no more than an honest watermark of one of its sources allows.';

CREATE OR REPLACE FUNCTION pgtrickle_private.check_lower(source regclass, newest pgtrickle.progress,
    target pgtrickle.progress) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF kind_of(newest) IS NULL THEN
        RAISE EXCEPTION '% never advanced, so there is nothing to take back', source
            USING ERRCODE = '55000', CONSTRAINT = 'invalid_argument',
                HINT = 'pgtrickle.watermarks() shows where each source stands.';
    ELSIF kind_of(newest) <> kind_of(target) THEN
        RAISE EXCEPTION 'the watermark of % goes by %, not by %', source, kind_of(newest), kind_of(target)
            USING ERRCODE = '42804', CONSTRAINT = 'invalid_argument',
                HINT = CASE kind_of(newest) WHEN 'event time' THEN 'Use reset_watermark().' ELSE 'Use reset_batch().'
                    END;
    ELSIF NOT is_before(target, newest) THEN
        RAISE EXCEPTION 'the watermark of % is %, which is not after %', source, progress_text(newest),
            progress_text(target)
            USING ERRCODE = '22023', CONSTRAINT = 'invalid_argument',
                HINT = 'Nothing was changed: give a lower one, or advance it instead.';
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_lower(regclass, pgtrickle.progress, pgtrickle.progress) IS
    'Refuses a watermark that is not lower than the one that the source has, or of another kind.';

CREATE OR REPLACE FUNCTION pgtrickle_private.lower_watermark(caller name, source regclass, target pgtrickle.progress)
    RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    newest progress;
    honest progress;
BEGIN
    PERFORM check_owner(caller, source, 'take back a watermark of');
    PERFORM check_progress(target);
    SELECT w.watermark, w.batch INTO newest FROM pgt_watermarks AS w WHERE w.source_relid = source FOR UPDATE;
    PERFORM check_lower(source, newest, target);
    PERFORM check_doubt(source, target, true);
    PERFORM withdraw_beyond(caller, source, target);
    -- Else the least of its partitions would be the wrong watermark again.
    UPDATE pgt_source_partitions AS p SET watermark = (target).watermark
    WHERE p.source_relid = source AND p.watermark > (target).watermark;
    honest := remaining(source, target);
    IF honest = target THEN
        -- What this watermark selects stays what it was.
        UPDATE pgt_watermarks AS w
        SET watermark = h.watermark, batch = h.batch, cut = h.cut, advanced_at = h.advanced_at,
            advanced_by = h.advanced_by
        FROM pgt_watermark_history AS h
        WHERE w.source_relid = source AND h.source_relid = source AND h.progress = target;
    ELSE
        PERFORM record_advance(caller, source, target);
    END IF;
    PERFORM lower_claim(caller, source, target, honest, t.stream_table)
    FROM (SELECT s AS stream_table FROM pgt_stream_tables AS s
          WHERE source IN (SELECT b.source FROM base_sources(s.pgt_id) AS b) ORDER BY s.pgt_id FOR UPDATE) AS t;
    PERFORM tell_of_advance(source, target);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.lower_watermark(name, regclass, pgtrickle.progress) IS
    'Takes back all watermarks of a source beyond this one, for its caller.';

CREATE OR REPLACE FUNCTION pgtrickle_private.forget_watermarks(source regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    other text;
BEGIN
    PERFORM check_loader(current_user, source, 'reset the watermark of');
    -- With its group changed in between, its next watermark might be of a kind that the group does not have.
    LOCK TABLE pgt_watermark_groups IN SHARE ROW EXCLUSIVE MODE;
    SELECT g.group_name INTO other FROM pgt_watermark_groups AS g WHERE source = ANY (g.sources) ORDER BY g.group_name
        LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION '% is in the watermark group %', source, quote_literal(other)
            USING ERRCODE = '55000', CONSTRAINT = 'invalid_argument',
                HINT = format('Drop the group first, or take the source out of it. To take back only a wrong one: '
                    'SELECT pgtrickle.reset_watermark(%L, ''2026-01-01T12:00Z'').', qualified_name(source));
    END IF;
    DELETE FROM pgt_watermarks AS w WHERE w.source_relid = source;
    DELETE FROM pgt_watermark_history AS h WHERE h.source_relid = source;
    DELETE FROM pgt_partitioned_sources AS p WHERE p.source_relid = source;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.forget_watermarks(regclass) IS
    'Forgets every watermark of a source that is in no watermark group.';

CREATE OR REPLACE FUNCTION pgtrickle.reset_watermark(source regclass, watermark timestamptz DEFAULT '-infinity')
    RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF watermark = '-infinity' THEN
        IF NOT pg_has_role(current_user, catalog_owner(), 'USAGE') THEN
            RAISE EXCEPTION 'permission denied to forget the watermarks of %', source
                USING ERRCODE = '42501', CONSTRAINT = 'insufficient_privilege',
                    HINT = format('Only %I, which owns the catalog, may. To take back a wrong one, give the right one.',
                        catalog_owner());
        END IF;
        PERFORM forget_watermarks(source);
    ELSE
        INSERT INTO pgt_calls (call, source, arguments)
            VALUES ('lower_watermark', source, jsonb_build_object('watermark', watermark));
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle.reset_watermark(regclass, timestamptz) IS
    'Takes back a wrong watermark: the source is complete through this event time, and no further. Its watermarks '
    'after that are withdrawn, see withdrawn_watermarks(); stream tables over it claim no more than the watermarks '
    'that are left allow, and keep their rows, but for windows that output_mode append had closed by a withdrawn one. '
    'For the owner of the source or of the catalog. '
    'Without an event time it forgets every watermark of a source that is in no watermark group, as if it had never '
    'advanced: its next one may be of either kind; what stream tables are complete through stays.';

CREATE OR REPLACE FUNCTION pgtrickle.reset_watermark(
        source text, watermark timestamptz DEFAULT '-infinity',
        search_path text DEFAULT current_setting('search_path')) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM reset_watermark(source_named(source, search_path), watermark);
END
$$;
COMMENT ON FUNCTION pgtrickle.reset_watermark(text, timestamptz, text) IS
    'The same for a source that comes by its name, as text.';

CREATE OR REPLACE FUNCTION pgtrickle.reset_batch(source regclass, batch bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    INSERT INTO pgt_calls (call, source, arguments)
        VALUES ('lower_watermark', source, jsonb_build_object('batch', batch));
END
$$;
COMMENT ON FUNCTION pgtrickle.reset_batch(regclass, bigint) IS
    'Takes back a wrong watermark of a source that goes by batch numbers, as reset_watermark() does for event times.';

CREATE OR REPLACE FUNCTION pgtrickle.reset_batch(
        source text, batch bigint, search_path text DEFAULT current_setting('search_path')) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM reset_batch(source_named(source, search_path), batch);
END
$$;
COMMENT ON FUNCTION pgtrickle.reset_batch(text, bigint, text) IS
    'The same for a source that comes by its name, as text.';

CREATE OR REPLACE FUNCTION pgtrickle.withdrawn_watermarks()
    RETURNS TABLE (source text, watermark timestamptz, batch bigint, version bigint, advanced_at timestamptz,
        advanced_by text, lowered_to timestamptz, lowered_to_batch bigint, withdrawn_at timestamptz, withdrawn_by text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT w.source_name, w.watermark, w.batch, w.version, w.advanced_at, w.advanced_by, (w.lowered_to).watermark,
        (w.lowered_to).batch, w.withdrawn_at, w.withdrawn_by
    FROM pgt_withdrawn_watermarks AS w ORDER BY w.withdrawal_id DESC
$$;
COMMENT ON FUNCTION pgtrickle.withdrawn_watermarks() IS
    'The watermarks that were taken back, newest first: who had said them and when, to what the source was lowered, '
    'by whom and when. Also the versions of stream tables with a feed that claimed such a watermark.';
