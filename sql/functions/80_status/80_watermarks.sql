-- Watermarks and their groups. SECURITY DEFINER so that a monitor needs no rights on the catalog.

CREATE OR REPLACE FUNCTION pgtrickle.watermarks()
    RETURNS TABLE (source_table text, schema_name text, watermark timestamptz, updated_at timestamptz,
        advanced_by text, wal_lsn text,
        source text, advanced_at timestamptz, last_seen_at timestamptz, lsn pg_lsn, batch bigint, event_time text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT n.table_name, n.schema_name, w.watermark, w.updated_at, w.advanced_by, w.wal_lsn_at_advance,
        last_name(w.source_relid), w.advanced_at, w.last_seen_at, (w.cut).lsn, w.batch, e.column_name
    FROM pgt_watermarks AS w CROSS JOIN LATERAL parts_of_name(w.source_relid) AS n
        LEFT JOIN pgt_event_times AS e USING (source_relid)
    ORDER BY last_name(w.source_relid)
$$;
COMMENT ON FUNCTION pgtrickle.watermarks() IS
    'The current watermark of each source, an event time or the number of a batch, when it moved (updated_at, or '
    'advanced_at), when its loader was last seen, and the column that is its event time, if one is declared.';

CREATE OR REPLACE FUNCTION pgtrickle.watermark_history(source regclass)
    RETURNS TABLE (watermark timestamptz, advanced_at timestamptz, advanced_by text, lsn pg_lsn, batch bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT h.watermark, h.advanced_at, h.advanced_by, (h.cut).lsn, h.batch FROM pgt_watermark_history AS h
    WHERE h.source_relid = source ORDER BY h.progress DESC
$$;
COMMENT ON FUNCTION pgtrickle.watermark_history(regclass) IS 'Every advance of a source, newest first.';

CREATE OR REPLACE FUNCTION pgtrickle.watermark_history(
        source text, search_path text DEFAULT current_setting('search_path'))
    RETURNS TABLE (watermark timestamptz, advanced_at timestamptz, advanced_by text, lsn pg_lsn, batch bigint)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT h.watermark, h.advanced_at, h.advanced_by, h.lsn, h.batch
    FROM watermark_history(source_named(source, search_path)) AS h
$$;
COMMENT ON FUNCTION pgtrickle.watermark_history(text, text) IS
    'The same for a source that comes by its name, as text.';

CREATE OR REPLACE FUNCTION pgtrickle.watermark_groups()
    RETURNS TABLE (group_name text, source_count integer, tolerance_secs double precision, created_at timestamptz,
        sources text[], tolerance interval, stale_after interval, on_stale text, idle_after interval,
        batch_tolerance bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT g.group_name, cardinality(g.sources), g.tolerance_secs, g.created_at,
        ARRAY(SELECT last_name(s) FROM unnest(g.sources) AS s), g.tolerance, g.stale_after, g.on_stale,
        g.idle_after, g.batch_tolerance
    FROM pgt_watermark_groups AS g ORDER BY 1
$$;
COMMENT ON FUNCTION pgtrickle.watermark_groups() IS
    'The watermark groups. One with a batch_tolerance goes by batch numbers.';

CREATE OR REPLACE FUNCTION pgtrickle_private.not_held_back(p_group_id integer)
    RETURNS TABLE (stream_table regclass, waiting_for text, reason text)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT t.pgt_relid, h.waiting_for, h.reason
    FROM pgt_watermark_groups AS g CROSS JOIN pgt_stream_tables AS t CROSS JOIN LATERAL gating_scope(t.pgt_id) AS s
    CROSS JOIN LATERAL hold_back_group(t.pgt_id, p_group_id, s.upstream) AS h
    WHERE g.group_id = p_group_id AND t.watermark_gating = 'hold_back' AND p_group_id = ANY (s.groups)
        AND h.let_through IS NULL
        AND tolerance_of(t, g) = tolerance_of(NULL, g)
    ORDER BY t.pgt_relid::text
$$;
COMMENT ON FUNCTION pgtrickle_private.not_held_back(integer) IS
    'The hold_back stream tables, but for those with a tolerance of their own, that cannot be read where the sources '
    'of a group agree, and why.';

CREATE OR REPLACE FUNCTION pgtrickle_private.last_let_through(p_group_id integer) RETURNS pgtrickle.progress
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT ROW(max((p.reached).watermark), max((p.reached).batch))::progress
    FROM pgt_stream_tables AS t
        CROSS JOIN LATERAL (SELECT jsonb_populate_record(NULL::progress,
        t.let_through -> p_group_id::text) AS reached) AS p
    WHERE t.let_through ? p_group_id::text AND p_group_id IN (SELECT g.group_id FROM gating_groups(t.pgt_id) AS g)
$$;
COMMENT ON FUNCTION pgtrickle_private.last_let_through(integer) IS
    'The newest watermark at which a group let a stream table through that heeds it; NULL if it never did.';

CREATE OR REPLACE FUNCTION pgtrickle_private.keeps_waiting(p_group_id integer) RETURNS boolean
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT EXISTS (
        SELECT FROM pgt_stream_tables AS t CROSS JOIN LATERAL gating_scope(t.pgt_id) AS s
        CROSS JOIN LATERAL groups_decision(t.pgt_id, s.gating, ARRAY[p_group_id], s.upstream) AS d
        WHERE p_group_id = ANY (s.groups) AND d.decision <> 'run')
$$;
COMMENT ON FUNCTION pgtrickle_private.keeps_waiting(integer) IS
    'Whether some stream table may not be refreshed because of a watermark group.';

CREATE OR REPLACE FUNCTION pgtrickle.watermark_status()
    RETURNS TABLE (group_name text, min_watermark timestamptz, max_watermark timestamptz, lag_secs double precision,
        aligned boolean, sources_with_watermark integer, sources_total integer,
        lag interval, tolerance interval, effective_watermark timestamptz, waiting_for text, reason text, idle text[],
        min_batch bigint, max_batch bigint, batch_lag numeric, batch_tolerance bigint, effective_batch bigint,
        agreed_watermark timestamptz, agreed_batch bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
    SET TimeZone = 'UTC' SET DateStyle = 'ISO' SET IntervalStyle = 'postgres'
AS $$
    SELECT a.group_name, (a.low).watermark, (a.high).watermark,
        CASE WHEN (a.tolerance).span IS NOT NULL
            THEN COALESCE(extract(epoch FROM (a.lag).span)::double precision, 0) END,
        COALESCE(a.aligned, NOT keeps_waiting(a.group_id)),
        cardinality(a.sources) - cardinality(a.never_advanced), cardinality(a.sources),
        (a.lag).span, (a.tolerance).span, (l.last).watermark,
        CASE WHEN a.aligned IS NULL THEN last_names(a.never_advanced) WHEN a.aligned THEN u.waiting_for
            ELSE last_name(a.slowest) END,
        CASE WHEN a.aligned IS NULL THEN format('%s never advanced', last_names(a.never_advanced))
            WHEN a.aligned THEN format('aligned at %s', progress_text(a.low))
            ELSE format('%s is %s behind %s, tolerance %s', last_name(a.slowest), distance_text(a.lag),
                last_name(a.fastest), distance_text(a.tolerance)) END
            || COALESCE(', without ' || last_names(a.idle) || ' (idle)', '')
            || COALESCE('; ' || u.sentences, ''),
        ARRAY(SELECT last_name(s) FROM unnest(a.idle) AS s),
        (a.low).batch, (a.high).batch, (a.lag).batches, (a.tolerance).batches::bigint, (l.last).batch,
        e.watermark, e.batch
    FROM group_alignment() AS a
    CROSS JOIN LATERAL (SELECT last_let_through(a.group_id) AS last) AS l
    CROSS JOIN LATERAL (
        SELECT min((e.progress).watermark) AS watermark, min((e.progress).batch) AS batch
        FROM agreed_entries(NULL, a.group_id) AS e WHERE a.aligned IS NOT NULL) AS e
    CROSS JOIN LATERAL (
        SELECT string_agg(DISTINCT u.waiting_for, ', ') AS waiting_for,
            string_agg(format('%s: %s', u.stream_table, u.reason), '; ') AS sentences
        FROM not_held_back(a.group_id) AS u WHERE COALESCE(e.watermark::text, e.batch::text) IS NOT NULL) AS u
$$;
COMMENT ON FUNCTION pgtrickle.watermark_status() IS
    'How each watermark group stands. aligned says what the gate decides: while a source never advanced, the group '
    'holds nothing back and is aligned, unless a stream table must wait for it (require_watermark). '
    'effective_watermark is the last event time at which it let a stream table '
    'through: at which it was aligned, or its sources '
    'agreed for one that holds back, when that was refreshed; NULL while it has let none through. agreed_watermark is '
    'that of the newest event time at which its '
    'sources agree, what holding back can show now, whatever any stream table shows. Idle sources are left out of the '
    'comparison, but not of these two. '
    'The reason also says which stream tables that hold back cannot be read there, and of an aligned group '
    'waiting_for is what they wait for. Of a group that goes by '
    'batch numbers the columns named for batches are filled instead.';
