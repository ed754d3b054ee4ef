-- How the watermark of each source moves, and how much came too late for it.

CREATE OR REPLACE FUNCTION pgtrickle_private.late_counts(source regclass, OUT late_rows bigint, OUT waiting bigint,
    OUT ratio double precision)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    declared pgt_event_times;
    arrived bigint;
    not_inserted bigint;
BEGIN
    SELECT * INTO declared FROM pgt_event_times AS e WHERE e.source_relid = source;
    SELECT count(*) FILTER (WHERE l.arrived_at >= declared.declared_at) + declared.late_forgotten,
           count(*) FILTER (WHERE l.status = 'kept_out'),
           count(*) FILTER (WHERE l.status IN ('kept_out', 'discarded') AND l.arrived_at >= declared.declared_at)
    INTO late_rows, waiting, not_inserted FROM pgt_late_rows AS l WHERE l.source_relid = source;
    arrived := rows_inserted(source) - declared.rows_before + not_inserted;
    -- The statistics of a transaction that just ended may be missing yet, those before a reset are gone.
    ratio := CASE WHEN arrived >= late_rows AND arrived > 0 THEN late_rows::double precision / arrived END;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.late_counts(regclass) IS
    'Late rows of a source since its event time was declared, how many of them wait to be replayed, and their share '
    'of all rows that came.';

CREATE OR REPLACE FUNCTION pgtrickle_private.watermark_pace(
        source regclass, OUT advances bigint, OUT rate double precision, OUT last_interval interval,
            OUT median_interval interval)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT count(*),
           percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM h.step)::double precision)
           / NULLIF(percentile_cont(0.5) WITHIN
               GROUP (ORDER BY extract(epoch FROM h.since)::double precision) FILTER (WHERE h.step IS NOT NULL), 0),
           (array_agg(h.since ORDER BY h.history_id DESC))[1],
           percentile_cont(0.5) WITHIN GROUP (ORDER BY h.since)
    FROM (SELECT a.history_id, a.advanced_at - lag(a.advanced_at) OVER (ORDER BY a.history_id) AS since,
                 distance(a.watermark, lag(a.watermark) OVER (ORDER BY a.history_id)) AS step
          FROM pgt_watermark_history AS a WHERE a.source_relid = source) AS h
$$;
COMMENT ON FUNCTION pgtrickle_private.watermark_pace(regclass) IS
    'How a watermark moved, by the advances in its history: their number, the median step over the median time '
    'between two, and the last and the median of these times.';

CREATE OR REPLACE FUNCTION pgtrickle.watermark_metrics()
    RETURNS TABLE (source text, watermark timestamptz, lag interval, group_lag interval, idle boolean,
        idle_share double precision, advances bigint,
                   rate double precision, last_interval interval, median_interval interval, since_advance interval,
                   late_rows bigint, late_waiting bigint, late_ratio double precision)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    WITH members AS MATERIALIZED (
        SELECT g.group_id, m.source, (m.progress).watermark, m.idle, (a.high).watermark AS max_watermark
        FROM pgt_watermark_groups AS g CROSS JOIN LATERAL group_members(g.group_id) AS m
            CROSS JOIN LATERAL group_alignment(g.group_id) AS a
    ), sources AS (
        SELECT w.source_relid AS source FROM pgt_watermarks AS w UNION SELECT e.source_relid FROM pgt_event_times AS e
    )
    SELECT qualified_name(s.source), w.watermark, distance(now(), w.watermark),
           (SELECT max(greatest(distance(m.max_watermark, m.watermark), '0')) FROM members AS m
               WHERE m.source = s.source AND m.watermark < 'infinity' AND m.max_watermark < 'infinity'),
           (SELECT bool_or(m.idle) FROM members AS m WHERE m.source = s.source),
           (SELECT avg(o.idle::integer)::double precision FROM (
                SELECT bool_or(m.idle) AS idle FROM members AS m
                    WHERE m.group_id IN (SELECT own.group_id FROM members AS own WHERE own.source = s.source)
                GROUP BY m.source) AS o),
           p.advances, p.rate, p.last_interval, p.median_interval, now() - w.advanced_at, l.late_rows, l.waiting,
               l.ratio
    FROM sources AS s LEFT JOIN pgt_watermarks AS w ON w.source_relid = s.source
    CROSS JOIN LATERAL watermark_pace(s.source) AS p CROSS JOIN LATERAL late_counts(s.source) AS l
    ORDER BY 1
$$;
COMMENT ON FUNCTION pgtrickle.watermark_metrics() IS
    'The watermark of each source as numbers. lag: behind the clock; group_lag: behind the fastest source of its '
    'groups. idle_share: of the sources of its groups. '
    'advances, rate (the median step of event time over the median time between two advances; 1 keeps up), '
    'last_interval and median_interval (between advances; compare since_advance with it) by the '
    'history that is kept. late_rows and late_ratio count since the event time was declared; NULL without one. The '
    'ratio rests on PostgreSQL''s statistics: '
    'approximate, and NULL after they were reset. Regressions are in Python''s metrics only: an advance that moves '
    'back is refused, and its transaction leaves no trace.';
