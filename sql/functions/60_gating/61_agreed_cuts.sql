-- The newest cut at which the sources of a group agree.

-- In the order of pgt_watermark_history.progress NULL comes last, so everything is before this, of either kind.
CREATE OR REPLACE FUNCTION pgtrickle_private.unbounded() RETURNS pgtrickle.progress
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN ROW(NULL, NULL)::progress;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.unbounded() IS 'No bound on the advances of a source.';

CREATE OR REPLACE FUNCTION pgtrickle_private.latest_entry(p_source regclass, not_after pgtrickle.progress)
    RETURNS TABLE (source regclass, progress pgtrickle.progress, cut pgtrickle.cut)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN QUERY
    SELECT h.source_relid, h.progress, h.cut FROM pgt_watermark_history AS h
    WHERE h.source_relid = p_source AND h.progress <= not_after ORDER BY h.progress DESC LIMIT 1;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.latest_entry(regclass, pgtrickle.progress) IS
    'The newest advance of a source not after a watermark, whether or not its changes since are still kept.';

CREATE OR REPLACE FUNCTION pgtrickle_private.can_read(readers bigint[], p_source regclass, c pgtrickle.cut)
    RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN NOT EXISTS (
        SELECT FROM pgt_dependencies AS d LEFT JOIN pgt_change_tracking AS t USING (source_relid)
        WHERE d.pgt_id = ANY (readers) AND d.source_relid = p_source
            AND NOT cut_is_readable(c, d.captured_xid, d.captured_pos, COALESCE(t.cleaned_through, '{}')));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.can_read(bigint[], regclass, pgtrickle.cut) IS
    'Whether those of these stream tables that read the source themselves can read it at this cut.';

-- Which cuts belong to a watermark follows from the watermarks alone. What of that can be read depends on who else
-- keeps the changes: it may make a stream table wait, but never choose another cut.
CREATE OR REPLACE FUNCTION pgtrickle_private.agreed_progress(loading regclass[], tolerance pgtrickle.distance,
    not_before pgtrickle.progress)
    RETURNS pgtrickle.progress
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    candidate progress := unbounded();
    reach record;
BEGIN
    LOOP
        SELECT count(*) AS present, ROW(min((e.progress).watermark), min((e.progress).batch))::progress AS low,
               ROW(max((e.progress).watermark), max((e.progress).batch))::progress AS high INTO reach
        FROM unnest(loading) AS s CROSS JOIN LATERAL (
            SELECT h.progress FROM pgt_watermark_history AS h WHERE h.source_relid = s AND h.progress <= candidate
            ORDER BY h.progress DESC LIMIT 1) AS e;
        IF reach.present < cardinality(loading) OR is_before(reach.high, not_before) THEN
            RETURN NULL;
        END IF;
        -- At any earlier watermark the slowest source is no further than here, so beyond this bound nothing agrees with
        -- it.
        candidate := beyond(reach.low, tolerance);
        IF reaches(candidate, reach.high) THEN
            RETURN reach.high;
        END IF;
    END LOOP;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.agreed_progress(regclass[], pgtrickle.distance, pgtrickle.progress) IS
    'The newest watermark at which the newest advances of these sources lie within the tolerance, or NULL.';

CREATE OR REPLACE FUNCTION pgtrickle_private.agreed_entries(p_pgt_id bigint, p_group_id integer)
    RETURNS TABLE (source regclass, progress pgtrickle.progress, cut pgtrickle.cut, idle boolean)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    stream_table CONSTANT pgt_stream_tables := (SELECT t FROM pgt_stream_tables AS t WHERE t.pgt_id = p_pgt_id);
    members record;
    agreed progress;
BEGIN
    SELECT COALESCE(array_agg(m.source) FILTER (WHERE NOT (m.idle OR is_final(m.progress))), '{}') AS loading,
           COALESCE(array_agg(m.source) FILTER (WHERE m.idle), '{}') AS idling,
           COALESCE(array_agg(m.source) FILTER (WHERE is_final(m.progress)), '{}') AS exhausted,
           array_agg(m.progress ORDER BY m.progress DESC) AS newest_first
    INTO members FROM group_members(p_group_id) AS m;
    agreed := members.newest_first[1];
    -- NULL comes first: one of the sources never advanced.
    IF NOT agreed IS NULL AND members.loading <> '{}' THEN
        agreed := agreed_progress(
            members.loading, (SELECT tolerance_of(stream_table, g) FROM pgt_watermark_groups AS g
                WHERE g.group_id = p_group_id),
            ROW(stream_table.effective_watermark, stream_table.effective_batch)::progress);
    END IF;
    -- After a restore into another cluster there are watermarks without a history.
    IF agreed IS NULL OR EXISTS (
        SELECT FROM unnest(members.idling || members.exhausted) AS s
            WHERE NOT EXISTS (SELECT FROM latest_entry(s, unbounded())))
    THEN
        RETURN;
    END IF;
    RETURN QUERY SELECT e.*, false FROM unnest(members.loading) AS s CROSS JOIN LATERAL latest_entry(s, agreed) AS e;
    -- An idle source is read where it stopped; where its history begins only after what is agreed on, at its newest.
    IF members.idling <> '{}' THEN
        RETURN QUERY
            SELECT e.*, true FROM unnest(members.idling) AS s CROSS JOIN LATERAL (
                SELECT i.* FROM unnest(ARRAY[agreed, unbounded()]) AS u(watermark, batch)
                CROSS JOIN LATERAL latest_entry(s, ROW(u.watermark, u.batch)::progress) AS i
                ORDER BY i.progress LIMIT 1) AS e;
    END IF;
    IF members.exhausted <> '{}' THEN
        RETURN QUERY SELECT e.*, false FROM unnest(members.exhausted) AS s
            CROSS JOIN LATERAL latest_entry(s, unbounded()) AS e;
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.agreed_entries(bigint, integer) IS
    'One advance per source of the group: those of the newest watermark at which they lie within the tolerance. '
    'No rows if there is none. Exhausted sources take part with their last, idle ones with their newest not after it.';

CREATE OR REPLACE FUNCTION pgtrickle_private.frontier_caps(p_pgt_id bigint, sources regclass[]) RETURNS jsonb
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN (
        SELECT COALESCE(jsonb_object_agg(d.source_relid::oid, to_jsonb(d.frontier)), '{}')
        FROM pgt_dependencies AS d
        WHERE d.pgt_id = p_pgt_id AND d.source_relid = ANY (sources) AND d.source_type = 'TABLE'
            AND covers(d.frontier, d.captured_xid, d.captured_pos));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.frontier_caps(bigint, regclass[]) IS
    'Caps that keep the stream table where it is on these sources.';

CREATE OR REPLACE FUNCTION pgtrickle_private.lower_caps(a jsonb, b jsonb) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN (
        SELECT a || COALESCE(jsonb_object_agg(key, value) FILTER (
            WHERE NOT a ? key OR cut_covers(jsonb_populate_record(NULL::cut, a -> key),
                jsonb_populate_record(NULL::cut, value))), '{}')
        FROM jsonb_each(b));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.lower_caps(jsonb, jsonb) IS
    'Both sets of caps; the lower cut where a source is in both.';
