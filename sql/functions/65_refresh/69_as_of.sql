-- Reading a stream table's query as of an earlier watermark: which cuts that is, and keeping the changes that it takes.

CREATE OR REPLACE FUNCTION pgtrickle_private.base_readings(p_pgt_id bigint)
    RETURNS TABLE (source regclass, source_type text, since pgtrickle.cut)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT d.source_relid, d.source_type, ROW(NULL, d.captured_xid, d.captured_pos, NULL)::cut
    FROM upstream_tables(p_pgt_id) AS u JOIN pgt_dependencies AS d USING (pgt_id) WHERE d.source_type <> 'STREAM_TABLE'
$$;
COMMENT ON FUNCTION pgtrickle_private.base_readings(bigint) IS
    'What a stream table reads that is no stream table, directly and through others: once per reader, with the '
    'transaction, and the position in it, since which it is captured.';

-- Of an earlier version, which knew event times only.
DROP FUNCTION IF EXISTS pgtrickle_private.as_of_cuts(integer, timestamptz);

-- A source that never advanced belongs to the same moment as the newest of the advances that the others are read at.
-- One that did, but lost its history in a restore, is none of these: of its past nothing is known.
CREATE OR REPLACE FUNCTION pgtrickle_private.as_of_cuts(p_pgt_id bigint, wanted pgtrickle.progress)
    RETURNS TABLE (source regclass, captured boolean, progress pgtrickle.progress, oldest pgtrickle.progress,
        cut pgtrickle.cut, readable boolean)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    WITH read AS (
        SELECT b.source, bool_and(b.source_type = 'TABLE') AS captured, array_agg(b.since) AS since
        FROM base_readings(p_pgt_id) AS b GROUP BY b.source),
    recorded AS (
        SELECT h.source_relid AS source, h.history_id, h.progress, h.cut FROM read AS r
            JOIN pgt_watermark_history AS h ON h.source_relid = r.source
        UNION ALL
        SELECT w.source_relid, 0, ROW(w.watermark, w.batch)::progress, w.cut FROM read AS r
            JOIN pgt_watermarks AS w ON w.source_relid = r.source
        WHERE NOT EXISTS (SELECT FROM pgt_watermark_history AS h WHERE h.source_relid = w.source_relid)),
    known AS (
        SELECT r.*, (SELECT h.progress FROM recorded AS h WHERE h.source = r.source ORDER BY h.progress
            LIMIT 1) AS oldest FROM read AS r),
    advance AS (
        SELECT k.source, h.history_id, h.progress, h.cut
        FROM known AS k CROSS JOIN LATERAL (
            SELECT * FROM recorded AS a WHERE a.source = k.source AND a.progress <= wanted
            ORDER BY a.progress DESC LIMIT 1) AS h
        -- In the order of the type everything by event time is before every batch.
        WHERE reaches(wanted, k.oldest)),
    chosen AS (
        SELECT k.source, k.captured, k.since, k.oldest, a.progress,
               CASE WHEN k.oldest IS NULL THEN (SELECT n.cut FROM advance AS n ORDER BY n.history_id DESC LIMIT 1)
                   ELSE a.cut END AS cut
        FROM known AS k LEFT JOIN advance AS a USING (source))
    SELECT c.source, c.captured, c.progress, c.oldest, c.cut,
           (SELECT bool_and(cut_is_readable(c.cut, s.xid, s.pos, COALESCE(t.cleaned_through, '{}')))
               FROM unnest(c.since) AS s)
    FROM chosen AS c LEFT JOIN pgt_change_tracking AS t ON t.source_relid = c.source
    ORDER BY c.source::text
$$;
COMMENT ON FUNCTION pgtrickle_private.as_of_cuts(bigint, pgtrickle.progress) IS
    'For each base table that a stream table reads, directly and through others: its newest watermark not after this '
    'one and of its kind, the oldest that is '
    'known, of either kind, the cut to read it at, and whether its change buffer still reaches back there.';

CREATE OR REPLACE FUNCTION pgtrickle_private.retained_from(p_source regclass, retention interval) RETURNS bigint
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT COALESCE(max(h.history_id), 0) FROM pgt_watermark_history AS h
    WHERE h.source_relid = p_source AND h.advanced_at <= clock_timestamp() - least(retention, interval '1000 years')
$$;
COMMENT ON FUNCTION pgtrickle_private.retained_from(regclass, interval) IS
    'The advance that was the newest of a source so long ago: it and all later ones are retained; 0 for all.';

-- Cuts that the buffer no longer reaches are passed over: what was cleaned does not come back.
-- Of each function within PostgreSQL expects a thousand rows, which must not make it compile the plan: that takes a
-- hundred times longer than to follow it.
CREATE OR REPLACE FUNCTION pgtrickle_private.retained_cuts(p_source regclass, cleaned pgtrickle.cut[])
    RETURNS SETOF pgtrickle.cut
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET jit = off
AS $$
    SELECT p.cut
    FROM pgt_stream_tables AS t
    CROSS JOIN LATERAL (
        SELECT (b.since).xid, (b.since).pos FROM base_readings(t.pgt_id) AS b WHERE b.source = p_source
            AND (b.since).xid IS NOT NULL
        ORDER BY 1 DESC, 2 DESC LIMIT 1) AS r
    CROSS JOIN LATERAL base_sources(t.pgt_id) AS o
    CROSS JOIN LATERAL (
        SELECT h.cut FROM pgt_watermark_history AS h
        WHERE h.source_relid = o.source AND h.history_id >= retained_from(o.source, t.watermark_retention)
            AND cut_is_readable(h.cut, r.xid, r.pos, cleaned)
        ORDER BY h.history_id LIMIT 1) AS p
    WHERE t.watermark_retention IS NOT NULL
$$;
COMMENT ON FUNCTION pgtrickle_private.retained_cuts(regclass, pgtrickle.cut[]) IS
    'The cuts that watermark_retention keeps readable on a source: of every base table beside which it is read, the '
    'oldest that is retained.';
