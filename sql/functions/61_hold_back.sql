-- Hold back: the newest cut at which the sources of a group agree.

-- Cuts of a source form a chain and only older ones become unreadable: if the newest is not readable, none is.
CREATE OR REPLACE FUNCTION pgtrickle.latest_entry(p_pgt_id integer, p_source regclass, not_after timestamptz)
    RETURNS TABLE (source regclass, watermark timestamptz, cut pgtrickle.cut)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
    SELECT h.source_relid, h.watermark, h.cut
    FROM (SELECT * FROM pgt_watermark_history WHERE source_relid = p_source AND watermark <= not_after ORDER BY watermark DESC LIMIT 1) AS h
    WHERE NOT EXISTS (
        SELECT FROM pgt_dependencies AS d LEFT JOIN pgt_change_tracking AS t USING (source_relid)
        WHERE d.pgt_id = p_pgt_id AND d.source_relid = p_source
            AND cut_is_readable(h.cut, d.captured_xid, COALESCE(t.cleaned_through, '{}')) IS NOT TRUE)
$$;
COMMENT ON FUNCTION pgtrickle.latest_entry(integer, regclass, timestamptz) IS
    'The newest advance of a source not after an event time, if the stream table can read the source at its cut (or does not read it itself).';

CREATE OR REPLACE FUNCTION pgtrickle.agreed_entries(p_pgt_id integer, p_group_id integer)
    RETURNS TABLE (source regclass, watermark timestamptz, cut pgtrickle.cut)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp SET TimeZone = 'UTC'
AS $$
DECLARE
    watermark_group CONSTANT pgt_watermark_groups := (SELECT g FROM pgt_watermark_groups AS g WHERE g.group_id = p_group_id);
    shown CONSTANT timestamptz := (SELECT t.effective_watermark FROM pgt_stream_tables AS t WHERE t.pgt_id = p_pgt_id);
    exhausted CONSTANT regclass[] := ARRAY(
        SELECT e.source FROM unnest(watermark_group.sources) AS s CROSS JOIN LATERAL latest_entry(p_pgt_id, s, 'infinity') AS e
        WHERE e.watermark = 'infinity');
    loading CONSTANT regclass[] := ARRAY(SELECT s FROM unnest(watermark_group.sources) AS s WHERE s <> ALL (exhausted));
    candidate timestamptz := 'infinity';
    found record;
BEGIN
    LOOP
        SELECT count(*) AS present, min(e.watermark) AS low, max(e.watermark) AS high INTO found
        FROM unnest(loading) AS s CROSS JOIN LATERAL latest_entry(p_pgt_id, s, candidate) AS e;
        EXIT WHEN found.present < cardinality(loading) OR found.high < shown;
        IF loading = '{}' OR found.high <= found.low + watermark_group.tolerance THEN
            RETURN QUERY
                SELECT e.* FROM unnest(loading) AS s CROSS JOIN LATERAL latest_entry(p_pgt_id, s, candidate) AS e
                UNION ALL
                SELECT e.* FROM unnest(exhausted) AS s CROSS JOIN LATERAL latest_entry(p_pgt_id, s, 'infinity') AS e;
            EXIT;
        END IF;
        -- At any earlier time the slowest source is no further than here, so beyond this bound nothing agrees with it.
        candidate := found.low + watermark_group.tolerance;
    END LOOP;
END
$$;
COMMENT ON FUNCTION pgtrickle.agreed_entries(integer, integer) IS
    'One advance per source of the group: those of the newest event time at which they lie within the tolerance and which the stream table can read. '
    'No rows if there is no such time. Exhausted sources take part with their last.';

CREATE OR REPLACE FUNCTION pgtrickle.frontier_caps(p_pgt_id integer, sources regclass[]) RETURNS jsonb
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
    SELECT COALESCE(jsonb_object_agg(d.source_relid::oid, to_jsonb(d.frontier)), '{}')
    FROM pgt_dependencies AS d
    WHERE d.pgt_id = p_pgt_id AND d.source_relid = ANY (sources) AND d.source_type = 'TABLE'
        AND pg_visible_in_snapshot(d.captured_xid, (d.frontier).snapshot)
$$;
COMMENT ON FUNCTION pgtrickle.frontier_caps(integer, regclass[]) IS
    'Caps that keep the stream table where it is on these sources.';

CREATE OR REPLACE FUNCTION pgtrickle.lower_caps(a jsonb, b jsonb) RETURNS jsonb
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
    SELECT a || COALESCE(jsonb_object_agg(key, value) FILTER (
        WHERE NOT a ? key OR cut_covers(jsonb_populate_record(NULL::cut, a -> key), jsonb_populate_record(NULL::cut, value))), '{}')
    FROM jsonb_each(b)
$$;
COMMENT ON FUNCTION pgtrickle.lower_caps(jsonb, jsonb) IS 'Both sets of caps; the lower cut where a source is in both.';

CREATE OR REPLACE FUNCTION pgtrickle.hold_back_group(
        p_pgt_id integer, p_group_id integer,
        OUT decision text, OUT reason text, OUT waiting_for text, OUT effective_watermark timestamptz, OUT caps jsonb)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp SET TimeZone = 'UTC' SET DateStyle = 'ISO'
AS $$
DECLARE
    watermark_group CONSTANT pgt_watermark_groups := (SELECT g FROM pgt_watermark_groups AS g WHERE g.group_id = p_group_id);
    stream_table CONSTANT pgt_stream_tables := (SELECT t FROM pgt_stream_tables AS t WHERE t.pgt_id = p_pgt_id);
    missing regclass;
    frontiers CONSTANT jsonb := frontier_caps(p_pgt_id, watermark_group.sources);
    behind regclass;
    overtaken boolean;
BEGIN
    decision := 'run';
    caps := '{}';
    -- A cut that became unreadable because the buffer was cleaned lies behind what a filled stream table shows.
    SELECT s, o.overtaken INTO missing, overtaken
    FROM unnest(watermark_group.sources) AS s CROSS JOIN LATERAL (
        SELECT frontiers ? s::oid::text AND EXISTS (
            SELECT FROM pgt_dependencies AS d JOIN pgt_watermarks AS w USING (source_relid)
            WHERE d.pgt_id = p_pgt_id AND d.source_relid = s AND pg_visible_in_snapshot(d.captured_xid, (w.cut).snapshot))) AS o(overtaken)
    WHERE NOT EXISTS (SELECT FROM latest_entry(p_pgt_id, s, 'infinity')) ORDER BY o.overtaken, array_position(watermark_group.sources, s) LIMIT 1;
    IF NOT overtaken THEN
        waiting_for := missing;
        reason := format('%s: %s %s', watermark_group.group_name, missing,
            CASE WHEN EXISTS (SELECT FROM pgt_watermarks WHERE source_relid = missing)
                 THEN 'has not advanced since its changes are captured' ELSE 'never advanced' END);
        decision := CASE WHEN stream_table.require_watermark THEN 'waiting' ELSE 'run' END;
        RETURN;
    END IF;
    SELECT min(e.watermark), COALESCE(jsonb_object_agg(d.source_relid::oid, to_jsonb(e.cut)) FILTER (WHERE d.source_relid IS NOT NULL), '{}'),
           min(d.source_relid::oid) FILTER (WHERE NOT cut_covers(e.cut, d.frontier))
    INTO effective_watermark, caps, behind
    FROM agreed_entries(p_pgt_id, p_group_id) AS e
    LEFT JOIN pgt_dependencies AS d ON d.pgt_id = p_pgt_id AND d.source_relid = e.source AND d.source_type = 'TABLE';
    behind := COALESCE(missing, behind);
    reason := format('%s: agrees at %s', watermark_group.group_name, effective_watermark);
    IF effective_watermark IS NULL OR behind IS NOT NULL THEN
        effective_watermark := stream_table.effective_watermark;
        caps := frontiers;
        waiting_for := COALESCE(behind, (SELECT a.slowest FROM group_alignment() AS a WHERE a.group_id = p_group_id));
        reason := format('%s: %s', watermark_group.group_name, CASE
            WHEN behind IS NOT NULL THEN format('stays where it is until a watermark of %s covers what it shows', behind)
            ELSE format('there is no event time at which its sources agree, waiting for %s', waiting_for) END);
        decision := CASE WHEN frontiers = '{}' AND stream_table.status = 'INITIALIZING' THEN 'waiting' ELSE 'run' END;
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle.hold_back_group(integer, integer) IS
    'What one group asks of a hold_back stream table: at which cut to read each source.';
