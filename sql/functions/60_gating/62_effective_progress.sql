-- How far a stream table is complete that reads others as they are, which were not brought up to date beside it, and
-- how far one is that no watermark group concerns.

-- The frontier stays where it is while nothing changes, so that a cut beyond it may lack nothing all the same.
CREATE OR REPLACE FUNCTION pgtrickle_private.lacks_changes(p_pgt_id bigint, p_source regclass, through pgtrickle.cut)
    RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    dependency record;
    lacking boolean;
BEGIN
    SELECT d.frontier, c.buffer, t.reinitialize_reason INTO dependency
    FROM pgt_dependencies AS d JOIN pgt_stream_tables AS t USING (pgt_id)
        LEFT JOIN pgt_change_tracking AS c ON c.source_relid = d.source_relid AND d.source_type <> 'UNCAPTURED'
    WHERE d.pgt_id = p_pgt_id AND d.source_relid = p_source;
    IF (dependency.frontier).snapshot IS NULL OR dependency.buffer IS NULL OR dependency.reinitialize_reason IS NOT NULL
        THEN
        RETURN true;
    ELSIF (through).snapshot IS NOT NULL AND cut_covers(dependency.frontier, through) THEN
        RETURN false;
    END IF;
    EXECUTE format('SELECT EXISTS (SELECT FROM %s WHERE pgt_xid >= $1 AND NOT covers($2, pgt_xid, pgt_pos) AND '
        '(($3).snapshot IS NULL OR covers($3, pgt_xid, pgt_pos)))',
                   dependency.buffer)
    INTO lacking USING pg_snapshot_xmin((dependency.frontier).snapshot), dependency.frontier, through;
    RETURN lacking;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.lacks_changes(bigint, regclass, pgtrickle.cut) IS
    'Whether a stream table may lack changes of a direct source that this cut covers, or with NULL any at all. May '
    'answer true when in doubt, never false.';

-- Newest first, and not all of a long history: what is passed over is claimed by a later refresh.
CREATE OR REPLACE FUNCTION pgtrickle_private.shown_through(p_pgt_id bigint, p_source regclass,
    wanted pgtrickle.progress) RETURNS pgtrickle.progress
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    refreshed_at CONSTANT timestamptz := (SELECT t.data_timestamp FROM pgt_stream_tables AS t
        WHERE t.pgt_id = p_pgt_id);
    entry record;
BEGIN
    -- Then a group of which it is a source vouches for nothing yet.
    IF NOT EXISTS (SELECT FROM pgt_watermark_history AS h WHERE h.source_relid = p_source AND h.progress >= wanted) THEN
        RETURN wanted;
    END IF;
    FOR entry IN
        (SELECT h.progress, h.cut FROM pgt_watermark_history AS h WHERE h.source_relid = p_source
            AND h.progress >= wanted ORDER BY h.progress LIMIT 1)
        UNION ALL
        (SELECT h.progress, h.cut FROM pgt_watermark_history AS h
         WHERE h.source_relid = p_source AND h.progress < wanted
             AND h.advanced_at <= refreshed_at ORDER BY h.progress DESC LIMIT 100)
    LOOP
        IF NOT lacks_changes(p_pgt_id, p_source, entry.cut) THEN
            RETURN entry.progress;
        END IF;
    END LOOP;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.shown_through(bigint, regclass, pgtrickle.progress) IS
    'The first advance of a direct source that reaches what is wanted, or else a newest one before it, of which the '
    'stream table lacks no change; NULL if none is '
    'found. What is wanted itself where the source is not there yet.';

CREATE OR REPLACE FUNCTION pgtrickle_private.left_behind(p_pgt_id bigint, standing oid[], refreshed oid[])
    RETURNS TABLE (pgt_id bigint, source regclass, below integer)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    WITH RECURSIVE read(pgt_id, fresh) AS (
        SELECT p_pgt_id, true
        UNION
        SELECT t.pgt_id, r.fresh AND t.pgt_relid = ANY (refreshed)
        FROM read AS r JOIN pgt_dependencies AS d USING (pgt_id)
            JOIN pgt_stream_tables AS t ON t.pgt_relid = d.source_relid
        WHERE NOT (r.fresh AND t.pgt_relid = ANY (standing)))
    SELECT r.pgt_id, d.source_relid, t.pgt_id
    FROM read AS r JOIN pgt_dependencies AS d USING (pgt_id)
        LEFT JOIN pgt_stream_tables AS t ON t.pgt_relid = d.source_relid
    WHERE NOT r.fresh
$$;
COMMENT ON FUNCTION pgtrickle_private.left_behind(bigint, oid[], oid[]) IS
    'What a stream table reads through others that were not refreshed beside it: each direct source of each, with its '
    'number if that is a stream table as well. '
    'Those standing are where all sources are; those refreshed are only as far as what they read.';

DROP FUNCTION IF EXISTS pgtrickle_private.claimable(integer, pgtrickle.progress, oid[], oid[]);

CREATE OR REPLACE FUNCTION pgtrickle_private.effective_progress(
    p_pgt_id bigint, decided pgtrickle.progress, standing oid[], refreshed oid[],
    OUT effective_watermark timestamptz, OUT effective_batch bigint)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    wanted progress;
    shown progress;
    item record;
BEGIN
    effective_watermark := (decided).watermark;
    effective_batch := (decided).batch;
    FOR item IN
        SELECT l.pgt_id, l.source, l.below, (kind_of(ROW(w.watermark, w.batch)::progress) = 'event time') AS by_time
        FROM left_behind(p_pgt_id, standing, refreshed) AS l
        CROSS JOIN LATERAL (SELECT l.source AS base WHERE l.below IS NULL UNION ALL SELECT b.source
            FROM base_sources(l.below) AS b) AS s
        JOIN pgt_watermarks AS w ON w.source_relid = s.base
        -- Without groups only a stream table with frozen rows says how far it is complete: as far as each of them.
        WHERE NOT EXISTS (SELECT FROM gating_groups(p_pgt_id))
            OR EXISTS (SELECT FROM gating_groups(p_pgt_id) AS h JOIN pgt_watermark_groups AS g USING (group_id)
                WHERE s.base = ANY (g.sources))
    LOOP
        wanted := CASE WHEN item.by_time THEN ROW(effective_watermark, NULL)::progress
            ELSE ROW(NULL, effective_batch)::progress END;
        CONTINUE WHEN wanted IS NULL;
        shown := CASE WHEN item.below IS NULL THEN shown_through(item.pgt_id, item.source, wanted)
                      WHEN NOT lacks_changes(item.pgt_id, item.source, NULL) THEN wanted END;
        IF item.by_time THEN
            effective_watermark := CASE WHEN NOT shown IS NULL THEN least(effective_watermark, (shown).watermark) END;
        ELSE
            effective_batch := CASE WHEN NOT shown IS NULL THEN least(effective_batch, (shown).batch) END;
        END IF;
    END LOOP;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.effective_progress(bigint, pgtrickle.progress, oid[], oid[]) IS
    'How far a stream table is complete that reads others which were not refreshed beside it: no further than was '
    'decided, and no further than what those show, by their frontiers.';

CREATE OR REPLACE FUNCTION pgtrickle_private.ungated_watermark(p_pgt_id bigint, upstream bigint[])
    RETURNS timestamptz
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    held record;
BEGIN
    IF NOT EXISTS (SELECT FROM pgt_stream_tables AS t WHERE t.pgt_id = p_pgt_id AND t.frozen_after IS NOT NULL) THEN
        RETURN NULL;
    END IF;
    -- What it reads through a stream table that holds back is no further than that one.
    held := held_below(array_remove(upstream, p_pgt_id));
    RETURN (SELECT least(min(w.watermark), held.watermark) FROM base_sources(p_pgt_id) AS b
            JOIN pgt_watermarks AS w ON w.source_relid = b.source
            WHERE w.watermark IS NOT NULL AND NOT 'event time' = ANY (held.kinds_without)
            HAVING count(*) > 0);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.ungated_watermark(bigint, bigint[]) IS
    'How far a stream table with frozen rows is complete where no watermark group concerns it: the least of the event '
    'times through which its tables are complete. NULL where none is, and for stream tables without frozen rows.';

CREATE OR REPLACE FUNCTION pgtrickle_private.farthest(a jsonb, b jsonb) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp SET TimeZone = 'UTC'
AS $$
BEGIN
    RETURN (
        SELECT COALESCE(jsonb_object_agg(m.key, to_jsonb(ROW(m.watermark, m.batch)::progress)), '{}')
        FROM (SELECT e.key, max((p.reached).watermark) AS watermark, max((p.reached).batch) AS batch
              FROM (SELECT * FROM jsonb_each(a) UNION ALL SELECT * FROM jsonb_each(b)) AS e
              CROSS JOIN LATERAL (SELECT jsonb_populate_record(NULL::progress, e.value) AS reached) AS p
                  GROUP BY e.key) AS m);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.farthest(jsonb, jsonb) IS
    'By the number of each group in one of them, the farthest watermark that stands for it.';

CREATE OR REPLACE FUNCTION pgtrickle_private.farther_only(before jsonb, now jsonb) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN (
        SELECT COALESCE(jsonb_object_agg(key, value), '{}') FROM jsonb_each(now)
        WHERE NOT reaches(jsonb_populate_record(NULL::progress, before -> key),
            jsonb_populate_record(NULL::progress, value)));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.farther_only(jsonb, jsonb) IS
    'Of the watermarks that stand for groups now those that are farther than before.';
