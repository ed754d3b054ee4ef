-- Hold back: the newest cut at which the sources of a group agree.

-- In the order of pgt_watermark_history.progress NULL comes last, so everything is before this, of either kind.
CREATE OR REPLACE FUNCTION pgtrickle.unbounded() RETURNS pgtrickle.progress
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
BEGIN
    RETURN ROW(NULL, NULL)::progress;
END
$$;
COMMENT ON FUNCTION pgtrickle.unbounded() IS 'No bound on the advances of a source.';

-- Cuts of a source form a chain and only older ones become unreadable: if the newest is not readable, none is.
CREATE OR REPLACE FUNCTION pgtrickle.latest_entry(p_pgt_id integer, p_source regclass, not_after pgtrickle.progress)
    RETURNS TABLE (source regclass, progress pgtrickle.progress, cut pgtrickle.cut)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
BEGIN
    RETURN QUERY
    SELECT h.source_relid, h.progress, h.cut
    FROM (SELECT * FROM pgt_watermark_history AS all_of_it WHERE all_of_it.source_relid = p_source AND all_of_it.progress <= not_after
          ORDER BY all_of_it.progress DESC LIMIT 1) AS h
    WHERE NOT EXISTS (
        SELECT FROM pgt_dependencies AS d LEFT JOIN pgt_change_tracking AS t USING (source_relid)
        WHERE d.pgt_id = p_pgt_id AND d.source_relid = p_source
            AND cut_is_readable(h.cut, d.captured_xid, COALESCE(t.cleaned_through, '{}')) IS NOT TRUE);
END
$$;
COMMENT ON FUNCTION pgtrickle.latest_entry(integer, regclass, pgtrickle.progress) IS
    'The newest advance of a source not after a watermark, if the stream table can read the source at its cut (or does not read it itself).';

-- Compares watermarks only: whether the cuts can be read is asked once, for what was found. Where they cannot, no older one can.
CREATE OR REPLACE FUNCTION pgtrickle.agreed_progress(loading regclass[], tolerance pgtrickle.distance, not_before pgtrickle.progress)
    RETURNS pgtrickle.progress
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
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
        -- At any earlier watermark the slowest source is no further than here, so beyond this bound nothing agrees with it.
        candidate := beyond(reach.low, tolerance);
        IF reaches(candidate, reach.high) THEN
            RETURN reach.high;
        END IF;
    END LOOP;
END
$$;
COMMENT ON FUNCTION pgtrickle.agreed_progress(regclass[], pgtrickle.distance, pgtrickle.progress) IS
    'The newest watermark at which the newest advances of these sources lie within the tolerance, or NULL.';

CREATE OR REPLACE FUNCTION pgtrickle.agreed_entries(p_pgt_id integer, p_group_id integer)
    RETURNS TABLE (source regclass, progress pgtrickle.progress, cut pgtrickle.cut, idle boolean)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
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
            members.loading, (SELECT tolerance_of(stream_table, g) FROM pgt_watermark_groups AS g WHERE g.group_id = p_group_id),
            ROW(stream_table.effective_watermark, stream_table.effective_batch)::progress);
    END IF;
    IF agreed IS NULL THEN
        RETURN;
    END IF;
    IF members.idling || members.exhausted = '{}' THEN
        RETURN QUERY
            SELECT v.source, v.progress, v.cut, false
            FROM (SELECT e.*, count(*) OVER () AS found FROM unnest(members.loading) AS s CROSS JOIN LATERAL latest_entry(p_pgt_id, s, agreed) AS e) AS v
            WHERE v.found = cardinality(members.loading);
        RETURN;
    END IF;
    -- An idle source is read where it stopped; where its history begins only after what is agreed on, at its newest.
    RETURN QUERY
        WITH entries AS (
            SELECT e.*, false AS idle FROM unnest(members.loading) AS s CROSS JOIN LATERAL latest_entry(p_pgt_id, s, agreed) AS e
            UNION ALL
            SELECT e.*, true FROM unnest(members.idling) AS s CROSS JOIN LATERAL (
                SELECT i.* FROM unnest(ARRAY[agreed, unbounded()]) AS u(watermark, batch)
                CROSS JOIN LATERAL latest_entry(p_pgt_id, s, ROW(u.watermark, u.batch)::progress) AS i
                ORDER BY i.progress LIMIT 1) AS e
            UNION ALL
            SELECT e.*, false FROM unnest(members.exhausted) AS s CROSS JOIN LATERAL latest_entry(p_pgt_id, s, unbounded()) AS e)
        SELECT * FROM entries WHERE (SELECT count(*) FROM entries) = cardinality(members.loading || members.idling || members.exhausted);
END
$$;
COMMENT ON FUNCTION pgtrickle.agreed_entries(integer, integer) IS
    'One advance per source of the group: those of the newest watermark at which they lie within the tolerance and which the stream table can read. '
    'No rows if there is none. Exhausted sources take part with their last, idle ones with their newest not after it.';

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
        p_pgt_id integer, watermark_group pgtrickle.pgt_watermark_groups, frontiers jsonb, OUT source regclass, OUT overtaken boolean)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
BEGIN
    SELECT s, o.overtaken INTO source, overtaken
    FROM unnest(watermark_group.sources) AS s CROSS JOIN LATERAL (
        SELECT frontiers ? s::oid::text AND EXISTS (
            SELECT FROM pgt_dependencies AS d JOIN pgt_watermarks AS w USING (source_relid)
            WHERE d.pgt_id = p_pgt_id AND d.source_relid = s AND pg_visible_in_snapshot(d.captured_xid, (w.cut).snapshot))) AS o(overtaken)
    WHERE NOT EXISTS (SELECT FROM latest_entry(p_pgt_id, s, unbounded()) AS e WHERE kind_of(e.progress) = group_kind(watermark_group))
    ORDER BY o.overtaken, array_position(watermark_group.sources, s) LIMIT 1;
END
$$;
COMMENT ON FUNCTION pgtrickle.missing_entry(integer, pgtrickle.pgt_watermark_groups, jsonb) IS
    'A source of the group without an advance of its kind that the stream table can read, if there is one, and whether the stream table shows more than it already.';

-- Tables of one chain must choose the same time, or the upper one would mix two.
CREATE OR REPLACE FUNCTION pgtrickle.other_tolerance(p_pgt_id integer, upstream integer[], p_group_id integer) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp SET IntervalStyle = 'postgres'
AS $$
BEGIN
    RETURN (
        SELECT format('reads %s, which holds back within %s instead of %s: give both the same %s',
                      u.pgt_relid, distance_text(v.upper), distance_text(v.own),
                      CASE WHEN g.batch_tolerance IS NULL THEN 'watermark_tolerance' ELSE 'batch_tolerance' END)
        FROM pgt_stream_tables AS t JOIN pgt_watermark_groups AS g ON g.group_id = p_group_id
        JOIN pgt_stream_tables AS u ON u.pgt_id = ANY (upstream) AND u.watermark_gating = 'hold_back'
        CROSS JOIN LATERAL (SELECT tolerance_of(u, g) AS upper, tolerance_of(t, g) AS own) AS v
        WHERE t.pgt_id = p_pgt_id AND v.upper <> v.own
            AND EXISTS (SELECT FROM pgt_dependencies AS d WHERE d.pgt_id = u.pgt_id AND d.source_relid = ANY (g.sources))
        ORDER BY u.pgt_id LIMIT 1);
END
$$;
COMMENT ON FUNCTION pgtrickle.other_tolerance(integer, integer[], integer) IS
    'Which stream table below a hold_back one chooses the cuts of the group within another tolerance, as part of a sentence; NULL if none.';

CREATE OR REPLACE FUNCTION pgtrickle.hold_back_group(
        p_pgt_id integer, p_group_id integer, upstream integer[],
        OUT decision text, OUT reason text, OUT waiting_for text, OUT effective pgtrickle.progress, OUT caps jsonb)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
DECLARE
    watermark_group CONSTANT pgt_watermark_groups := (SELECT g FROM pgt_watermark_groups AS g WHERE g.group_id = p_group_id);
    stream_table CONSTANT pgt_stream_tables := (SELECT t FROM pgt_stream_tables AS t WHERE t.pgt_id = p_pgt_id);
    agreement record;
    frontiers jsonb;
    missing record;
    behind regclass;
    obstacle text := CASE WHEN cardinality(upstream) > 1 THEN other_tolerance(p_pgt_id, upstream, p_group_id) END;
BEGIN
    decision := 'run';
    caps := '{}';
    SELECT array_agg(e.progress ORDER BY e.progress) AS all_of_them, array_agg(e.progress ORDER BY e.progress) FILTER (WHERE NOT e.idle) AS loading,
           COALESCE(jsonb_object_agg(e.source::oid, to_jsonb(e.cut)) FILTER (WHERE d.direct), '{}') AS caps, min(e.source::oid) FILTER (WHERE d.behind) AS behind,
           string_agg(format('%s (idle at %s)', e.source, progress_text(e.progress)), ', ' ORDER BY e.source::text) FILTER (WHERE e.idle) AS idle
    INTO agreement
    FROM agreed_entries(p_pgt_id, p_group_id) AS e CROSS JOIN LATERAL (
        SELECT bool_or(d.pgt_id = p_pgt_id) AS direct, bool_or(NOT cut_covers(e.cut, d.frontier)) AS behind
        FROM pgt_dependencies AS d WHERE d.pgt_id = ANY (upstream) AND d.source_relid = e.source AND d.source_type = 'TABLE') AS d;
    effective := agreement.all_of_them[1];
    caps := agreement.caps;
    behind := agreement.behind;
    IF effective IS NULL OR behind IS NOT NULL THEN
        frontiers := frontier_caps(p_pgt_id, watermark_group.sources);
        missing := missing_entry(p_pgt_id, watermark_group, frontiers);
        IF NOT missing.overtaken THEN
            waiting_for := missing.source;
            reason := format('%s: %s %s', watermark_group.group_name, missing.source,
                CASE WHEN EXISTS (SELECT FROM pgt_watermarks AS w WHERE w.source_relid = missing.source)
                     THEN 'has not advanced since its changes are captured' ELSE 'never advanced' END);
            decision := CASE WHEN stream_table.require_watermark THEN 'waiting' ELSE 'run' END;
            effective := NULL;
            RETURN;
        END IF;
        behind := COALESCE(missing.source, behind);
        -- Of the kind of this group only: of the other one another group decides.
        effective := CASE WHEN watermark_group.batch_tolerance IS NULL THEN ROW(stream_table.effective_watermark, NULL)::progress
                          ELSE ROW(NULL, stream_table.effective_batch)::progress END;
        caps := frontiers;
        waiting_for := COALESCE(behind, (SELECT a.slowest FROM group_alignment(p_group_id) AS a));
        reason := format('%s: %s', watermark_group.group_name, CASE
            WHEN behind IS NOT NULL THEN format('stays where it is until a watermark of %s covers what it shows', behind)
            ELSE format('there is no %s at which its sources agree, waiting for %s',
                        CASE WHEN watermark_group.batch_tolerance IS NULL THEN 'event time' ELSE 'batch' END, waiting_for) END);
        -- Caps keep tables in place, but not the stream tables among the sources, of which some may move on meanwhile.
        decision := CASE WHEN frontiers = '{}' AND stream_table.status = 'INITIALIZING' OR behind IS NOT NULL AND cardinality(upstream) > 1
                         THEN 'waiting' ELSE 'run' END;
    ELSE
        reason := format('%s: agrees at %s', watermark_group.group_name,
                         progress_text(COALESCE(agreement.loading[1], agreement.all_of_them[cardinality(agreement.all_of_them)]))) || COALESCE(', without ' || agreement.idle, '');
    END IF;
    IF obstacle IS NOT NULL THEN
        decision := 'waiting';
        reason := format('%s: %s', watermark_group.group_name, obstacle);
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle.hold_back_group(integer, integer, integer[]) IS
    'What one group asks of a hold_back stream table: at which cut to read each source.';
