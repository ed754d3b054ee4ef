-- Silence of sources: how long a loader may not be seen, and what follows.

CREATE OR REPLACE FUNCTION pgtrickle_private.check_limits(stale_after interval, on_stale text, idle_after interval)
    RETURNS void
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM check_choice('on_stale', on_stale, 'warn', 'hold');
    IF stale_after <= interval '0' THEN
        PERFORM refuse_value('stale_after', stale_after::text, 'Use an interval longer than zero.');
    ELSIF idle_after <= interval '0' THEN
        PERFORM refuse_value('idle_after', idle_after::text, 'Use an interval longer than zero.');
    ELSIF on_stale = 'hold' AND idle_after <= stale_after THEN
        PERFORM refuse_value('idle_after', idle_after::text,
            'An idle source holds nothing: with on_stale ''hold'' use one longer than stale_after.');
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_limits(interval, text, interval) IS
    'Error 22023, or 22004 for NULL, unless these limits on the silence of a source make sense.';

CREATE OR REPLACE FUNCTION pgtrickle.set_source_limits(
        source regclass, stale_after interval, on_stale text DEFAULT 'warn', idle_after interval DEFAULT NULL)
            RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM check_loader(current_user, source, 'set limits on');
    PERFORM check_limits(stale_after, on_stale, idle_after);
    IF stale_after IS NULL AND idle_after IS NULL THEN
        DELETE FROM pgt_source_limits AS l WHERE l.source_relid = source;
        RETURN;
    END IF;
    INSERT INTO pgt_source_limits (source_relid, source_name, stale_after, on_stale, idle_after)
    VALUES (source, qualified_name(source), stale_after, on_stale, idle_after)
    ON CONFLICT (source_relid) DO UPDATE
    SET source_name = EXCLUDED.source_name, stale_after = EXCLUDED.stale_after, on_stale = EXCLUDED.on_stale,
        idle_after = EXCLUDED.idle_after;
END
$$;
COMMENT ON FUNCTION pgtrickle.set_source_limits(regclass, interval, text, interval) IS
    'Limits the time since the loader of a source was last seen. Longer than stale_after: the source is stale, which '
    'raises an alert (on_stale ''warn'') '
    'and with ''hold'' also gates the stream tables made of it. Longer than idle_after: it is idle, its watermark '
        'groups go on without it. '
    'NULL leaves a limit to the groups of the source. Acts at the next tick.';

CREATE OR REPLACE FUNCTION pgtrickle.set_source_limits(
        source text, stale_after interval, on_stale text DEFAULT 'warn', idle_after interval DEFAULT NULL,
        search_path text DEFAULT current_setting('search_path')) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM set_source_limits(source_named(source, search_path), stale_after, on_stale, idle_after);
END
$$;
COMMENT ON FUNCTION pgtrickle.set_source_limits(text, interval, text, interval, text) IS
    'The same for a source that comes by its name, as text.';

CREATE OR REPLACE FUNCTION pgtrickle.source_limits(source regclass)
    RETURNS TABLE (group_name text, stale_after interval, on_stale text, idle_after interval)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT NULL, l.stale_after, l.on_stale, l.idle_after FROM pgt_source_limits AS l WHERE l.source_relid = source
    UNION ALL
    SELECT g.group_name, g.stale_after, g.on_stale, g.idle_after FROM pgt_watermark_groups AS g
    WHERE source = ANY (g.sources) AND (g.stale_after IS NOT NULL OR g.idle_after IS NOT NULL)
    ORDER BY 1 NULLS FIRST
$$;
COMMENT ON FUNCTION pgtrickle.source_limits(regclass) IS
    'The limits on the silence of a source: its own, without a group_name, then those of its groups, which count where '
    'its own is NULL.';

CREATE OR REPLACE FUNCTION pgtrickle.source_limits(
        source text, search_path text DEFAULT current_setting('search_path'))
    RETURNS TABLE (group_name text, stale_after interval, on_stale text, idle_after interval)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT l.group_name, l.stale_after, l.on_stale, l.idle_after
    FROM source_limits(source_named(source, search_path)) AS l
$$;
COMMENT ON FUNCTION pgtrickle.source_limits(text, text) IS 'The same for a source that comes by its name, as text.';

CREATE OR REPLACE FUNCTION pgtrickle_private.record_idle(caller name, source regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM check_loader(caller, source, 'mark idle');
    UPDATE pgt_watermarks AS w
    SET marked_idle_at = COALESCE(w.marked_idle_at, clock_timestamp()),
        marked_idle_by = COALESCE(w.marked_idle_by, caller)
    WHERE w.source_relid = source;
    IF NOT FOUND THEN
        RAISE EXCEPTION '% never advanced, so there is nothing at which it could be idle', source
            USING ERRCODE = '55000', CONSTRAINT = 'invalid_argument', HINT = 'Advance its watermark first.';
    END IF;
    PERFORM tell('pgtrickle_watermark', jsonb_build_object('source', qualified_name(source), 'idle', true));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.record_idle(name, regclass) IS 'Marks a source idle, for its caller.';

CREATE OR REPLACE FUNCTION pgtrickle.mark_idle(source regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    INSERT INTO pgt_calls (call, source) VALUES ('mark_idle', source);
END
$$;
COMMENT ON FUNCTION pgtrickle.mark_idle(regclass) IS
    'Says that the source will not advance for a while: its watermark groups go on without it until its next advance. '
    'Needs INSERT on the source.';

CREATE OR REPLACE FUNCTION pgtrickle.mark_idle(
        source text, search_path text DEFAULT current_setting('search_path')) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM mark_idle(source_named(source, search_path));
END
$$;
COMMENT ON FUNCTION pgtrickle.mark_idle(text, text) IS
    'The same for a source that comes by its name, as text.';

-- The moment is that of the transaction, so that all stream tables of a tick agree on who is idle.
CREATE OR REPLACE FUNCTION pgtrickle_private.group_members(p_group_id integer)
    RETURNS TABLE (source regclass, place bigint, progress pgtrickle.progress, idle boolean)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN QUERY
    SELECT m.source, m.place, CASE WHEN kind_of(v.newest) = group_kind(g) THEN v.newest END,
           COALESCE(w.source_relid IS NOT NULL AND NOT is_final(v.newest)
               AND (s.source_relid IS NULL OR s.ungated_at IS NOT NULL)
                    AND (w.marked_idle_at IS NOT NULL
                         OR now() - greatest(w.last_seen_at, s.ungated_at) > COALESCE(l.idle_after, g.idle_after)),
                             false)
    FROM pgt_watermark_groups AS g CROSS JOIN unnest(g.sources) WITH ORDINALITY AS m(source, place)
    LEFT JOIN pgt_watermarks AS w ON w.source_relid = m.source
    LEFT JOIN pgt_source_limits AS l ON l.source_relid = m.source
    LEFT JOIN pgt_source_gates AS s ON s.source_relid = m.source
    CROSS JOIN LATERAL (SELECT ROW(w.watermark, w.batch)::progress AS newest) AS v
    WHERE g.group_id = p_group_id;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.group_members(integer) IS
    'The sources of a group with their watermarks (NULL: none of the kind of the group), and which are idle: marked '
    'so, or not seen for longer than idle_after. A source under a gate is held, '
    'an exhausted one is done: neither is idle.';

CREATE OR REPLACE FUNCTION pgtrickle_private.stale_sources()
    RETURNS TABLE (source regclass, group_id integer, group_name text, seen_at timestamptz, stale_after interval,
        holds boolean)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN QUERY
    SELECT f.source, f.group_id, f.group_name, v.seen_at, f.stale_after,
           f.on_stale = 'hold' AND (now() - v.seen_at > f.idle_after) IS NOT TRUE
    FROM (SELECT l.source_relid AS source, NULL::integer AS group_id, NULL::text AS group_name, l.stale_after,
        l.on_stale,
                 COALESCE(l.idle_after, (SELECT max(g.idle_after) FROM pgt_watermark_groups AS g
                     WHERE l.source_relid = ANY (g.sources))) AS idle_after
          FROM pgt_source_limits AS l WHERE l.stale_after IS NOT NULL
          UNION ALL
          SELECT m.source, g.group_id, g.group_name, g.stale_after, g.on_stale, COALESCE(l.idle_after, g.idle_after)
          FROM pgt_watermark_groups AS g CROSS JOIN unnest(g.sources) AS m(source)
          LEFT JOIN pgt_source_limits AS l ON l.source_relid = m.source
          WHERE g.stale_after IS NOT NULL AND l.stale_after IS NULL) AS f
    JOIN pgt_watermarks AS w ON w.source_relid = f.source
    LEFT JOIN pgt_source_gates AS s ON s.source_relid = f.source
    CROSS JOIN LATERAL (SELECT greatest(w.last_seen_at, s.ungated_at) AS seen_at) AS v
    WHERE NOT is_final(ROW(w.watermark, w.batch)::progress) AND w.marked_idle_at IS NULL
        AND (s.source_relid IS NULL OR s.ungated_at IS NOT NULL)
        AND now() - v.seen_at > f.stale_after
    ORDER BY f.source::text, f.group_name;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.stale_sources() IS
    'Sources not seen for longer than their own limit, or else that of a group, and whether that holds stream tables. '
    'Exhausted sources, those under a gate '
    'and those marked idle are never stale; one that is idle by its silence holds nothing any more.';
