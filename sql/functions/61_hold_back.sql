-- Hold back: the newest cut at which the sources of a group agree.

-- Cuts of a source form a chain and only older ones become unreadable: if the newest is not readable, none is.
CREATE OR REPLACE FUNCTION pgtrickle.latest_entry(p_pgt_id integer, p_source regclass, not_after timestamptz)
    RETURNS TABLE (source regclass, watermark timestamptz, cut pgtrickle.cut)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
BEGIN
    RETURN QUERY
    SELECT h.source_relid, h.watermark, h.cut
    FROM (SELECT * FROM pgt_watermark_history AS all_of_it WHERE all_of_it.source_relid = p_source AND all_of_it.watermark <= not_after
          ORDER BY all_of_it.watermark DESC LIMIT 1) AS h
    WHERE NOT EXISTS (
        SELECT FROM pgt_dependencies AS d LEFT JOIN pgt_change_tracking AS t USING (source_relid)
        WHERE d.pgt_id = p_pgt_id AND d.source_relid = p_source
            AND cut_is_readable(h.cut, d.captured_xid, COALESCE(t.cleaned_through, '{}')) IS NOT TRUE);
END
$$;
COMMENT ON FUNCTION pgtrickle.latest_entry(integer, regclass, timestamptz) IS
    'The newest advance of a source not after an event time, if the stream table can read the source at its cut (or does not read it itself).';

-- Compares watermarks only: whether the cuts can be read is asked once, for what was found. Where they cannot, no older one can.
CREATE OR REPLACE FUNCTION pgtrickle.agreed_time(loading regclass[], tolerance interval, not_before timestamptz) RETURNS timestamptz
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp SET TimeZone = 'UTC'
AS $$
DECLARE
    candidate timestamptz := 'infinity';
    present bigint;
    low timestamptz;
    high timestamptz;
BEGIN
    LOOP
        SELECT count(*), min(e.watermark), max(e.watermark) INTO present, low, high
        FROM unnest(loading) AS s CROSS JOIN LATERAL (
            SELECT h.watermark FROM pgt_watermark_history AS h WHERE h.source_relid = s AND h.watermark <= candidate
            ORDER BY h.watermark DESC LIMIT 1) AS e;
        IF present < cardinality(loading) OR high < not_before THEN
            RETURN NULL;
        ELSIF high <= low + tolerance THEN
            RETURN high;
        END IF;
        -- At any earlier time the slowest source is no further than here, so beyond this bound nothing agrees with it.
        candidate := low + tolerance;
    END LOOP;
END
$$;
COMMENT ON FUNCTION pgtrickle.agreed_time(regclass[], interval, timestamptz) IS
    'The newest event time at which the newest advances of these sources lie within the tolerance, or NULL.';

CREATE OR REPLACE FUNCTION pgtrickle.agreed_entries(p_pgt_id integer, p_group_id integer)
    RETURNS TABLE (source regclass, watermark timestamptz, cut pgtrickle.cut, idle boolean)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
DECLARE
    stream_table CONSTANT pgt_stream_tables := (SELECT t FROM pgt_stream_tables AS t WHERE t.pgt_id = p_pgt_id);
    loading regclass[];
    idling regclass[];
    exhausted regclass[];
    tolerance interval;
    agreed timestamptz;
BEGIN
    SELECT COALESCE(array_agg(m.source) FILTER (WHERE NOT m.idle AND m.watermark IS DISTINCT FROM 'infinity'), '{}'),
           COALESCE(array_agg(m.source) FILTER (WHERE m.idle), '{}'),
           COALESCE(array_agg(m.source) FILTER (WHERE m.watermark = 'infinity'), '{}'), max(m.watermark)
    INTO loading, idling, exhausted, agreed FROM group_members(p_group_id) AS m;
    IF loading <> '{}' THEN
        tolerance := COALESCE(stream_table.watermark_tolerance, (SELECT g.tolerance FROM pgt_watermark_groups AS g WHERE g.group_id = p_group_id));
        agreed := agreed_time(loading, tolerance, stream_table.effective_watermark);
    END IF;
    IF agreed IS NULL THEN
        RETURN;
    END IF;
    IF idling || exhausted = '{}' THEN
        RETURN QUERY
            SELECT v.source, v.watermark, v.cut, false
            FROM (SELECT e.*, count(*) OVER () AS found FROM unnest(loading) AS s CROSS JOIN LATERAL latest_entry(p_pgt_id, s, agreed) AS e) AS v
            WHERE v.found = cardinality(loading);
        RETURN;
    END IF;
    -- An idle source is read where it stopped; where its history begins only after the time agreed on, at its newest.
    RETURN QUERY
        WITH entries AS (
            SELECT e.*, false AS idle FROM unnest(loading) AS s CROSS JOIN LATERAL latest_entry(p_pgt_id, s, agreed) AS e
            UNION ALL
            SELECT e.*, true FROM unnest(idling) AS s CROSS JOIN LATERAL (
                SELECT i.* FROM unnest(ARRAY[agreed, 'infinity']) AS u(until) CROSS JOIN LATERAL latest_entry(p_pgt_id, s, u.until) AS i
                ORDER BY i.watermark LIMIT 1) AS e
            UNION ALL
            SELECT e.*, false FROM unnest(exhausted) AS s CROSS JOIN LATERAL latest_entry(p_pgt_id, s, 'infinity') AS e)
        SELECT * FROM entries WHERE (SELECT count(*) FROM entries) = cardinality(loading || idling || exhausted);
END
$$;
COMMENT ON FUNCTION pgtrickle.agreed_entries(integer, integer) IS
    'One advance per source of the group: those of the newest event time at which they lie within the tolerance and which the stream table can read. '
    'No rows if there is no such time. Exhausted sources take part with their last, idle ones with their newest not after that time.';

CREATE OR REPLACE FUNCTION pgtrickle.frontier_caps(p_pgt_id integer, sources regclass[]) RETURNS jsonb
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
BEGIN
    RETURN (
        SELECT COALESCE(jsonb_object_agg(d.source_relid::oid, to_jsonb(d.frontier)), '{}')
        FROM pgt_dependencies AS d
        WHERE d.pgt_id = p_pgt_id AND d.source_relid = ANY (sources) AND d.source_type = 'TABLE'
            AND pg_visible_in_snapshot(d.captured_xid, (d.frontier).snapshot));
END
$$;
COMMENT ON FUNCTION pgtrickle.frontier_caps(integer, regclass[]) IS
    'Caps that keep the stream table where it is on these sources.';

CREATE OR REPLACE FUNCTION pgtrickle.lower_caps(a jsonb, b jsonb) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
BEGIN
    RETURN (
        SELECT a || COALESCE(jsonb_object_agg(key, value) FILTER (
            WHERE NOT a ? key OR cut_covers(jsonb_populate_record(NULL::cut, a -> key), jsonb_populate_record(NULL::cut, value))), '{}')
        FROM jsonb_each(b));
END
$$;
COMMENT ON FUNCTION pgtrickle.lower_caps(jsonb, jsonb) IS 'Both sets of caps; the lower cut where a source is in both.';

-- A cut that became unreadable because the buffer was cleaned lies behind what a filled stream table shows.
CREATE OR REPLACE FUNCTION pgtrickle.missing_entry(
        p_pgt_id integer, sources regclass[], frontiers jsonb, OUT source regclass, OUT overtaken boolean)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
BEGIN
    SELECT s, o.overtaken INTO source, overtaken
    FROM unnest(sources) AS s CROSS JOIN LATERAL (
        SELECT frontiers ? s::oid::text AND EXISTS (
            SELECT FROM pgt_dependencies AS d JOIN pgt_watermarks AS w USING (source_relid)
            WHERE d.pgt_id = p_pgt_id AND d.source_relid = s AND pg_visible_in_snapshot(d.captured_xid, (w.cut).snapshot))) AS o(overtaken)
    WHERE NOT EXISTS (SELECT FROM latest_entry(p_pgt_id, s, 'infinity')) ORDER BY o.overtaken, array_position(sources, s) LIMIT 1;
END
$$;
COMMENT ON FUNCTION pgtrickle.missing_entry(integer, regclass[], jsonb) IS
    'A source without an advance that the stream table can read, if there is one, and whether the stream table shows more than it already.';

-- Tables of one chain must choose the same time, or the upper one would mix two.
CREATE OR REPLACE FUNCTION pgtrickle.other_tolerance(p_pgt_id integer, upstream integer[], p_group_id integer) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp SET IntervalStyle = 'postgres'
AS $$
BEGIN
    RETURN (
        SELECT format('reads %s, which holds back within %s instead of %s: give both the same watermark_tolerance',
                      u.pgt_relid, COALESCE(u.watermark_tolerance, g.tolerance), COALESCE(t.watermark_tolerance, g.tolerance))
        FROM pgt_stream_tables AS t JOIN pgt_watermark_groups AS g ON g.group_id = p_group_id
        JOIN pgt_stream_tables AS u ON u.pgt_id = ANY (upstream) AND u.watermark_gating = 'hold_back'
        WHERE t.pgt_id = p_pgt_id AND COALESCE(u.watermark_tolerance, g.tolerance) <> COALESCE(t.watermark_tolerance, g.tolerance)
            AND EXISTS (SELECT FROM pgt_dependencies AS d WHERE d.pgt_id = u.pgt_id AND d.source_relid = ANY (g.sources))
        ORDER BY u.pgt_id LIMIT 1);
END
$$;
COMMENT ON FUNCTION pgtrickle.other_tolerance(integer, integer[], integer) IS
    'Which stream table below a hold_back one chooses the cuts of the group within another tolerance, as part of a sentence; NULL if none.';

CREATE OR REPLACE FUNCTION pgtrickle.hold_back_group(
        p_pgt_id integer, p_group_id integer, upstream integer[],
        OUT decision text, OUT reason text, OUT waiting_for text, OUT effective_watermark timestamptz, OUT caps jsonb)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
DECLARE
    watermark_group CONSTANT pgt_watermark_groups := (SELECT g FROM pgt_watermark_groups AS g WHERE g.group_id = p_group_id);
    stream_table CONSTANT pgt_stream_tables := (SELECT t FROM pgt_stream_tables AS t WHERE t.pgt_id = p_pgt_id);
    frontiers jsonb;
    missing record;
    agreed timestamptz;
    idle text;
    behind regclass;
    obstacle text := CASE WHEN cardinality(upstream) > 1 THEN other_tolerance(p_pgt_id, upstream, p_group_id) END;
BEGIN
    decision := 'run';
    caps := '{}';
    SELECT min(e.watermark), COALESCE(min(e.watermark) FILTER (WHERE NOT e.idle), max(e.watermark)),
           COALESCE(jsonb_object_agg(e.source::oid, to_jsonb(e.cut)) FILTER (WHERE d.direct), '{}'),
           min(e.source::oid) FILTER (WHERE d.behind), string_agg(format('%s (idle at %s)', e.source, e.watermark), ', ' ORDER BY e.source::text) FILTER (WHERE e.idle)
    INTO effective_watermark, agreed, caps, behind, idle
    FROM agreed_entries(p_pgt_id, p_group_id) AS e CROSS JOIN LATERAL (
        SELECT bool_or(d.pgt_id = p_pgt_id) AS direct, bool_or(NOT cut_covers(e.cut, d.frontier)) AS behind
        FROM pgt_dependencies AS d WHERE d.pgt_id = ANY (upstream) AND d.source_relid = e.source AND d.source_type = 'TABLE') AS d;
    IF effective_watermark IS NULL OR behind IS NOT NULL THEN
        frontiers := frontier_caps(p_pgt_id, watermark_group.sources);
        missing := missing_entry(p_pgt_id, watermark_group.sources, frontiers);
        IF NOT missing.overtaken THEN
            waiting_for := missing.source;
            reason := format('%s: %s %s', watermark_group.group_name, missing.source,
                CASE WHEN EXISTS (SELECT FROM pgt_watermarks AS w WHERE w.source_relid = missing.source)
                     THEN 'has not advanced since its changes are captured' ELSE 'never advanced' END);
            decision := CASE WHEN stream_table.require_watermark THEN 'waiting' ELSE 'run' END;
            effective_watermark := NULL;
            RETURN;
        END IF;
        behind := COALESCE(missing.source, behind);
        effective_watermark := stream_table.effective_watermark;
        caps := frontiers;
        waiting_for := COALESCE(behind, (SELECT a.slowest FROM group_alignment(p_group_id) AS a));
        reason := format('%s: %s', watermark_group.group_name, CASE
            WHEN behind IS NOT NULL THEN format('stays where it is until a watermark of %s covers what it shows', behind)
            ELSE format('there is no event time at which its sources agree, waiting for %s', waiting_for) END);
        -- Caps keep tables in place, but not the stream tables among the sources, of which some may move on meanwhile.
        decision := CASE WHEN frontiers = '{}' AND stream_table.status = 'INITIALIZING' OR behind IS NOT NULL AND cardinality(upstream) > 1
                         THEN 'waiting' ELSE 'run' END;
    ELSE
        reason := format('%s: agrees at %s', watermark_group.group_name, agreed) || COALESCE(', without ' || idle, '');
    END IF;
    IF obstacle IS NOT NULL THEN
        decision := 'waiting';
        reason := format('%s: %s', watermark_group.group_name, obstacle);
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle.hold_back_group(integer, integer, integer[]) IS
    'What one group asks of a hold_back stream table: at which cut to read each source.';
