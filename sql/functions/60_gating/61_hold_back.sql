-- Hold back: how far each source of a group is read, or why a stream table waits.

-- Cuts of a source form a chain and only older ones become unreadable: if the newest is not readable, none is. One that
-- became so because the buffer was cleaned lies behind what a filled stream table shows.
CREATE OR REPLACE FUNCTION pgtrickle_private.missing_entry(
        watermark_group pgtrickle.pgt_watermark_groups, readers bigint[], OUT source regclass, OUT overtaken boolean)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    SELECT s, o.overtaken INTO source, overtaken
    FROM unnest(watermark_group.sources) AS s CROSS JOIN LATERAL (
        SELECT COALESCE(bool_and(covers(d.frontier, d.captured_xid, d.captured_pos)
            AND covers(w.cut, d.captured_xid, d.captured_pos)), false) AS overtaken
        FROM pgt_dependencies AS d JOIN pgt_watermarks AS w USING (source_relid) WHERE d.pgt_id = ANY (readers)
            AND d.source_relid = s) AS o
    WHERE NOT EXISTS (
        SELECT FROM latest_entry(s, unbounded()) AS e WHERE kind_of(e.progress) = group_kind(watermark_group)
            AND can_read(readers, s, e.cut))
    ORDER BY o.overtaken, array_position(watermark_group.sources, s) LIMIT 1;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.missing_entry(pgtrickle.pgt_watermark_groups, bigint[]) IS
    'A source of the group without an advance of its kind that these stream tables can read, if there is one, and '
    'whether all that read it show more than it already.';

CREATE OR REPLACE FUNCTION pgtrickle_private.why_unreadable(readers bigint[], p_source regclass) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN p_source || CASE WHEN EXISTS (
        SELECT FROM latest_entry(p_source, unbounded()) AS e
        WHERE NOT can_read(readers, p_source, e.cut) AND NOT EXISTS (
            SELECT FROM pgt_dependencies AS d WHERE d.pgt_id = ANY (readers) AND d.source_relid = p_source
                AND NOT covers(e.cut, d.captured_xid, d.captured_pos)))
        THEN ' has not advanced since changes beyond its newest advance were deleted'
        ELSE ' has not advanced since its changes are captured' END;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.why_unreadable(bigint[], regclass) IS
    'Why these stream tables cannot read a source at its newest advance: it is older than capture, or the change '
    'buffer was cleaned.';

-- Tables of one chain must choose the same time, or the upper one would mix two.
CREATE OR REPLACE FUNCTION pgtrickle_private.other_tolerance(p_pgt_id bigint, upstream bigint[], p_group_id integer)
    RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET IntervalStyle = 'postgres'
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
            AND EXISTS (SELECT FROM pgt_dependencies AS d WHERE d.pgt_id = u.pgt_id
                AND d.source_relid = ANY (g.sources))
        ORDER BY u.pgt_id LIMIT 1);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.other_tolerance(bigint, bigint[], integer) IS
    'Which stream table below a hold_back one chooses the cuts of the group within another tolerance, as part of a '
    'sentence; NULL if none.';

-- check_hold_back() refuses this. But a table that is adopted into a group is somebody else's, and of two sessions that
-- make a group and alter a stream table neither sees what the other does.
CREATE OR REPLACE FUNCTION pgtrickle_private.showing_more(upstream bigint[], p_group_id integer) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN (
        SELECT format('reads %s, which shows more: set watermark_gating => ''hold_back'' there, too', u.pgt_relid)
        FROM pgt_stream_tables AS u
        WHERE u.pgt_id = ANY (upstream) AND u.watermark_gating <> 'hold_back'
            AND EXISTS (SELECT FROM overlapping_groups(u.pgt_id) AS o WHERE o.group_id = p_group_id)
        ORDER BY u.pgt_id LIMIT 1);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.showing_more(bigint[], integer) IS
    'Which stream table below a hold_back one reads a source of the group without holding it back, as part of a '
    'sentence; NULL if none.';

CREATE OR REPLACE FUNCTION pgtrickle_private.agreement(
        p_pgt_id bigint, p_group_id integer, upstream bigint[],
        OUT effective pgtrickle.progress, OUT agreed pgtrickle.progress, OUT caps jsonb, OUT behind regclass,
            OUT unreadable regclass, OUT idle text)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    found record;
BEGIN
    SELECT array_agg(e.progress ORDER BY e.progress) AS all_of_them,
        array_agg(e.progress ORDER BY e.progress) FILTER (WHERE NOT e.idle) AS loading,
           COALESCE(jsonb_object_agg(e.source::oid, to_jsonb(e.cut)) FILTER (WHERE d.direct), '{}') AS caps,
               min(e.source::oid) FILTER (WHERE d.behind) AS behind,
           min(e.source::oid) FILTER (WHERE NOT can_read(upstream, e.source, e.cut)) AS unreadable,
           string_agg(format('%s (idle at %s)', e.source, progress_text(e.progress)), ', '
               ORDER BY e.source::text) FILTER (WHERE e.idle) AS idle
    INTO found
    FROM agreed_entries(p_pgt_id, p_group_id) AS e CROSS JOIN LATERAL (
        SELECT bool_or(d.pgt_id = p_pgt_id) AS direct, bool_or(NOT cut_covers(e.cut, d.frontier)) AS behind
        FROM pgt_dependencies AS d WHERE d.pgt_id = ANY (upstream) AND d.source_relid = e.source
            AND d.source_type = 'TABLE') AS d;
    effective := found.all_of_them[1];
    agreed := COALESCE(found.loading[1], found.all_of_them[cardinality(found.all_of_them)]);
    caps := found.caps;
    behind := found.behind;
    unreadable := found.unreadable;
    idle := found.idle;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.agreement(bigint, integer, bigint[]) IS
    'At which cuts the sources of a group agree, by their watermarks alone, and how far that is complete. Also which '
    'source has a cut that does not cover what the stream table, or one that it reads, shows already, or that can no '
    'longer be read, or not yet. All NULL where they agree at none.';

CREATE OR REPLACE FUNCTION pgtrickle_private.hold_back_group(
        p_pgt_id bigint, p_group_id integer, upstream bigint[],
        OUT decision text, OUT reason text, OUT waiting_for text, OUT effective pgtrickle.progress, OUT caps jsonb,
            OUT let_through pgtrickle.progress)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    watermark_group CONSTANT pgt_watermark_groups := (SELECT g FROM pgt_watermark_groups AS g
        WHERE g.group_id = p_group_id);
    stream_table CONSTANT pgt_stream_tables := (SELECT t FROM pgt_stream_tables AS t WHERE t.pgt_id = p_pgt_id);
    found CONSTANT record := agreement(p_pgt_id, p_group_id, upstream);
    obstacle CONSTANT text := CASE WHEN cardinality(upstream) > 1
        THEN COALESCE(showing_more(upstream, p_group_id), other_tolerance(p_pgt_id, upstream, p_group_id)) END;
    missing record;
    whole record;
    staying record;
BEGIN
    decision := 'run';
    effective := found.effective;
    caps := found.caps;
    IF effective IS NULL OR found.behind IS NOT NULL OR found.unreadable IS NOT NULL THEN
        caps := frontier_caps(p_pgt_id, watermark_group.sources);
        missing := missing_entry(watermark_group, upstream);
        whole := read_whole(upstream, watermark_group.sources);
        IF whole.source IS NOT NULL THEN
            -- check_held_sources() refuses this. But a source may get children, or another obstacle, afterwards.
            decision := 'waiting';
            reason := format('%s cannot be held back: it %s', whole.source, whole.obstacle);
            effective := NULL;
            RETURN;
        ELSIF NOT missing.overtaken THEN
            waiting_for := (SELECT array_to_string(NULLIF(a.never_advanced, '{}'), ', ')
                FROM group_alignment(p_group_id) AS a);
            reason := COALESCE(waiting_for || ' never advanced', why_unreadable(upstream, missing.source)
                || CASE WHEN is_final((SELECT e.progress FROM latest_entry(missing.source, unbounded()) AS e))
                    THEN ', and cannot advance further: take its watermark back by pgtrickle.reset_watermark(), and '
                        'advance it again' ELSE '' END);
            waiting_for := COALESCE(waiting_for, missing.source::text);
            -- A filled stream table that this group has let through, or that can read this source itself while another
            -- one cannot, waits: if it ran without a cap, it would leave the cut that it shows. So it is where capture
            -- was installed anew, and what came before cannot be told from what came after.
            decision := CASE WHEN stream_table.require_watermark OR stream_table.status <> 'INITIALIZING' AND (
                                 stream_table.let_through ? p_group_id::text OR EXISTS (
                                     SELECT FROM pgt_dependencies AS d
                                         CROSS JOIN LATERAL latest_entry(d.source_relid, unbounded()) AS e
                                     WHERE d.pgt_id = p_pgt_id AND d.source_relid = missing.source
                                         AND d.source_type = 'TABLE'
                                         AND can_read(ARRAY[p_pgt_id], d.source_relid, e.cut)))
                             THEN 'waiting' ELSE 'run' END;
            effective := NULL;
            caps := '{}';
            RETURN;
        END IF;
        staying := stay(stream_table, watermark_group, upstream, COALESCE(missing.source, found.behind),
            found.unreadable, caps);
        decision := staying.decision;
        reason := staying.reason;
        waiting_for := staying.waiting_for;
        effective := staying.effective;
    ELSE
        let_through := effective;
        reason := format('agrees at %s', progress_text(found.agreed)) || COALESCE(', without ' || found.idle, '');
    END IF;
    IF obstacle IS NOT NULL THEN
        decision := 'waiting';
        reason := obstacle;
        let_through := NULL;
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.hold_back_group(bigint, integer, bigint[]) IS
    'What one group asks of a hold_back stream table: at which cut to read each source, and with let_through through '
    'which watermark it agrees now.';

CREATE OR REPLACE FUNCTION pgtrickle_private.stay(
        stream_table pgtrickle.pgt_stream_tables, watermark_group pgtrickle.pgt_watermark_groups, upstream bigint[],
        behind regclass, unreadable regclass, frontiers jsonb,
        OUT decision text, OUT reason text, OUT waiting_for text, OUT effective pgtrickle.progress)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    waiting_for := last_name(COALESCE(behind,
        (SELECT a.slowest FROM group_alignment(watermark_group.group_id) AS a)));
    reason := CASE
        WHEN behind IS NOT NULL
            THEN format('stays where it is until a watermark of %s covers what it shows', waiting_for)
        WHEN unreadable IS NOT NULL
            THEN format('waits for a later agreement: what %s held at this one is no longer known',
                last_name(unreadable))
        ELSE format('there is no %s at which its sources agree, waiting for %s',
                    CASE WHEN watermark_group.batch_tolerance IS NULL THEN 'event time' ELSE 'batch' END, waiting_for)
                        END;
    -- Of the kind of this group only: of the other one another group decides.
    effective := CASE WHEN watermark_group.batch_tolerance IS NULL
        THEN ROW(stream_table.effective_watermark, NULL)::progress
                      ELSE ROW(NULL, stream_table.effective_batch)::progress END;
    -- Frontiers keep in place what has one, but not the stream tables among the sources, of which some may move on
    -- meanwhile.
    decision := CASE WHEN frontiers = '{}' AND stream_table.status = 'INITIALIZING' OR behind IS NOT NULL
        AND cardinality(upstream) > 1
                        OR behind IS NULL AND unreadable IS NOT NULL OR EXISTS (
                            SELECT FROM pgt_dependencies AS d
                            WHERE d.pgt_id = stream_table.pgt_id AND d.source_relid = ANY (watermark_group.sources)
                                AND d.source_type = 'TABLE'
                                AND NOT frontiers ? d.source_relid::oid::text)
                     THEN 'waiting' ELSE 'run' END;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.stay(pgtrickle.pgt_stream_tables, pgtrickle.pgt_watermark_groups, bigint[],
    regclass, regclass, jsonb) IS
    'What a hold_back stream table does that cannot be read at the newest cuts of a group: it stays at its frontiers, '
    'or waits where it has none.';
