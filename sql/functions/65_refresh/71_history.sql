-- Forgetting what happened long ago.

CREATE OR REPLACE FUNCTION pgtrickle_private.advance_is_passed(entry pgtrickle.pgt_watermark_history) RETURNS boolean
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT NOT EXISTS (
            SELECT FROM pgt_dependencies AS d
            WHERE d.source_relid = (entry).source_relid AND d.source_type <> 'UNCAPTURED'
                AND NOT cut_covers(d.frontier, (entry).cut))
        AND NOT EXISTS (
            SELECT FROM pgt_stream_tables AS t CROSS JOIN LATERAL gating_groups(t.pgt_id) AS c
                JOIN pgt_watermark_groups AS g USING (group_id)
            WHERE t.watermark_gating = 'hold_back' AND (entry).source_relid = ANY (g.sources)
                AND NOT reaches(ROW(t.effective_watermark, t.effective_batch)::progress, (entry).progress))
        AND NOT EXISTS (
            SELECT FROM pgt_stream_tables AS t
            WHERE t.watermark_retention IS NOT NULL
                AND (entry).source_relid IN (SELECT b.source FROM base_sources(t.pgt_id) AS b)
                AND retained_from((entry).source_relid, t.watermark_retention) < (entry).history_id)
        AND NOT EXISTS (
            SELECT FROM pgt_feeds AS f
            WHERE f.source_relid = (entry).source_relid AND f.cut_off_at IS NULL
                AND NOT cut_covers(f.frontier, (entry).cut))
$$;
COMMENT ON FUNCTION pgtrickle_private.advance_is_passed(pgtrickle.pgt_watermark_history) IS
    'Whether every stream table that reads the source shows all that the advance covers, every one held back on it '
    'has reached its watermark, none retains an older one, and every feed has read it.';

-- What waits to be replayed is in no other place.
CREATE OR REPLACE FUNCTION pgtrickle_private.forget_late_rows(oldest timestamptz) RETURNS void
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    WITH forgotten AS (
        DELETE FROM pgt_late_rows AS l WHERE l.status <> 'kept_out' AND greatest(l.arrived_at, l.settled_at) < oldest
            RETURNING l.source_relid, l.arrived_at)
    UPDATE pgt_event_times AS e SET late_forgotten = e.late_forgotten + f.late_rows
    FROM (SELECT d.event_time_id, count(*) AS late_rows FROM forgotten JOIN pgt_event_times AS d USING (source_relid)
          WHERE forgotten.arrived_at >= d.declared_at GROUP BY d.event_time_id) AS f
    WHERE e.event_time_id = f.event_time_id
$$;
COMMENT ON FUNCTION pgtrickle_private.forget_late_rows(timestamptz) IS
    'Deletes old entries of the late ledger; they stay in the count of their source.';

-- What a row or group has in all is still asked for: by verify, and by a refresh that computes everything anew.
CREATE OR REPLACE FUNCTION pgtrickle_private.merge_late_changes(before timestamptz) RETURNS void
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    WITH numbered AS (
        SELECT l.late_id, l.recorded_at, first_value(l.late_id) OVER (same ORDER BY l.late_id DESC) AS newest
        FROM pgt_late_changes AS l WINDOW same AS (PARTITION BY l.pgt_id, l.window_end, l.change)
    ), gone AS (
        DELETE FROM pgt_late_changes AS l USING numbered AS n
        WHERE l.late_id = n.late_id AND n.late_id <> n.newest AND n.recorded_at < before RETURNING n.newest, l.weight
    )
    UPDATE pgt_late_changes AS l SET weight = l.weight + g.weight
    FROM (SELECT newest, sum(weight) AS weight FROM gone GROUP BY newest) AS g WHERE l.late_id = g.newest;
    -- Only of groups of closed windows does an entry without a weight tell anything.
    DELETE FROM pgt_late_changes AS l USING pgt_stream_tables AS t
    WHERE t.pgt_id = l.pgt_id AND t.frozen_by IS NOT NULL AND l.weight = 0 AND l.recorded_at < before
$$;
COMMENT ON FUNCTION pgtrickle_private.merge_late_changes(timestamptz) IS
    'Adds old entries of the ledger of late changes to the newest of the same row or group, and deletes them; also '
    'those of frozen rows that come to nothing.';

-- A loader may hold a row of its own source for as long as it likes: that one is left for the next time.
CREATE OR REPLACE FUNCTION pgtrickle_private.forget_dropped_sources() RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    DELETE FROM pgt_source_gates AS g WHERE g.source_relid IN (
        SELECT s.source_relid FROM pgt_source_gates AS s
            WHERE NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = s.source_relid) FOR UPDATE SKIP LOCKED);
    DELETE FROM pgt_source_limits AS l WHERE NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = l.source_relid);
    DELETE FROM pgt_alert_limits AS l
    WHERE l.source_relid IS NOT NULL AND NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = l.source_relid);
    DELETE FROM pgt_late_rows AS l WHERE l.late_id IN (
        SELECT s.late_id FROM pgt_late_rows AS s
            WHERE NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = s.source_relid) FOR UPDATE SKIP LOCKED);
    DELETE FROM pgt_loaders AS l WHERE (l.source_relid, l.loader) IN (
        SELECT s.source_relid, s.loader FROM pgt_loaders AS s
        WHERE to_regrole(quote_ident(s.loader)) IS NULL
            OR NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = s.source_relid) FOR UPDATE SKIP LOCKED);
    -- Of a source in a group it must stay known that it has come so far.
    DELETE FROM pgt_watermarks AS w WHERE w.source_relid IN (
        SELECT s.source_relid FROM pgt_watermarks AS s
        WHERE NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = s.source_relid)
            AND NOT EXISTS (SELECT FROM pgt_watermark_groups AS g
                WHERE s.source_relid = ANY (g.sources)) FOR UPDATE SKIP LOCKED);
    DELETE FROM pgt_watermark_history AS h WHERE NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = h.source_relid)
        AND NOT EXISTS (SELECT FROM pgt_watermarks AS w WHERE w.source_relid = h.source_relid);
    DELETE FROM pgt_watermark_checks AS k WHERE NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = k.source_relid);
    DELETE FROM pgt_withdrawn_watermarks AS t WHERE NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = t.source_relid)
        AND NOT EXISTS (SELECT FROM pgt_watermarks AS w WHERE w.source_relid = t.source_relid);
    DELETE FROM pgt_moved_rows AS m WHERE pg_visible_in_snapshot(m.moved_by, pg_current_snapshot());
END
$$;
COMMENT ON FUNCTION pgtrickle_private.forget_dropped_sources() IS
    'Forgets what is known of tables and roles that are gone. Waits for nobody.';

-- Watermarks at which sources agree never move back, so of the advances that all have passed only the newest can still
-- be asked for. One that is missing could at worst make hold_back wait for a newer agreement: it never reads beyond an
-- advance that it finds.
CREATE OR REPLACE FUNCTION pgtrickle.trim_history(retention interval) RETURNS bigint
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    oldest CONSTANT timestamptz := clock_timestamp() - least(greatest(retention, interval '0'), interval '1000 years');
    refreshes bigint;
    advances bigint;
BEGIN
    PERFORM check_span('retention', retention);
    DELETE FROM pgt_refresh_history AS h
    WHERE h.started_at < oldest
        AND h.refresh_id < (SELECT max(newest.refresh_id) FROM pgt_refresh_history AS newest
        WHERE newest.pgt_id = h.pgt_id);
    GET DIAGNOSTICS refreshes = ROW_COUNT;
    DELETE FROM pgt_watermark_history AS h
    USING pgt_watermarks AS w CROSS JOIN LATERAL (
        SELECT p.progress FROM pgt_watermark_history AS p
        WHERE p.source_relid = w.source_relid AND p.advanced_at < oldest AND advance_is_passed(p)
        ORDER BY p.progress DESC LIMIT 1) AS passed
    WHERE h.source_relid = w.source_relid AND h.progress < passed.progress AND h.advanced_at < oldest;
    GET DIAGNOSTICS advances = ROW_COUNT;
    DELETE FROM pgt_alerts AS a WHERE a.closed_at < oldest;
    PERFORM merge_late_changes(oldest);
    -- Another table may get the number of one that was dropped.
    PERFORM forget_dropped_sources();
    PERFORM drop_event_time(e.source_relid) FROM pgt_event_times AS e
        WHERE NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = e.source_relid);
    PERFORM forget_late_rows(oldest);
    PERFORM forget_sinks();
    DELETE FROM pgt_partitioned_sources AS p WHERE NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = p.source_relid);
    PERFORM drop_feed(f.feed_name) FROM pgt_feeds AS f
        WHERE NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = f.source_relid);
    RETURN refreshes + advances;
END
$$;
COMMENT ON FUNCTION pgtrickle.trim_history(interval) IS
    'Deletes refreshes, watermark advances, ended incidents and entries of the late ledger older than this, but for '
    'rows that wait there to be replayed; returns how '
    'many of the first two. Of each stream table the last refresh stays; of each source the newest '
    'advance that all its stream tables have passed, and all later ones, which hold_back may need.';
