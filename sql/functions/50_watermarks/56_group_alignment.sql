-- How far the sources of a group are, and whether they agree.

CREATE OR REPLACE FUNCTION pgtrickle_private.tolerance_of(stream_table pgtrickle.pgt_stream_tables,
    watermark_group pgtrickle.pgt_watermark_groups)
    RETURNS pgtrickle.distance
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN ROW(CASE WHEN watermark_group.tolerance IS NOT NULL
        THEN COALESCE(stream_table.watermark_tolerance, watermark_group.tolerance) END,
               CASE WHEN watermark_group.batch_tolerance IS NOT NULL
                   THEN COALESCE(stream_table.batch_tolerance, watermark_group.batch_tolerance) END
           )::distance;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.tolerance_of(pgtrickle.pgt_stream_tables, pgtrickle.pgt_watermark_groups) IS
    'How far the watermarks of the group may be apart for a stream table, or for none in particular.';

-- A final watermark says that nothing more will come and agrees with every other. An idle source is left out of the
-- comparison, but what it has not asserted nobody may claim: complete_through is the least of all.
CREATE OR REPLACE FUNCTION pgtrickle_private.group_alignment(p_group_id integer DEFAULT NULL,
    stream_table pgtrickle.pgt_stream_tables DEFAULT NULL)
    RETURNS TABLE (group_id integer, group_name text, sources regclass[], tolerance pgtrickle.distance,
        low pgtrickle.progress, high pgtrickle.progress,
                   lag pgtrickle.distance, aligned boolean, never_advanced regclass[], slowest regclass,
                       fastest regclass, idle regclass[],
                   complete_through pgtrickle.progress)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN QUERY
    SELECT g.group_id, g.group_name, g.sources, v.tolerance, v.low, v.high, distance_between(v.low, v.high),
           CASE WHEN cardinality(a.never_advanced) = 0 THEN reaches(beyond(v.low, v.tolerance), v.high) END,
           a.never_advanced, a.slowest_first[1], COALESCE(a.fastest_first[1], a.slowest_first[1]), a.idle, a.advanced[1]
    FROM pgt_watermark_groups AS g CROSS JOIN LATERAL (
        SELECT array_agg(m.progress ORDER BY m.progress) FILTER (WHERE m.compared) AS from_low,
               array_agg(m.progress ORDER BY m.progress DESC) FILTER (WHERE m.compared AND NOT m.final) AS from_high,
               COALESCE(array_agg(m.source ORDER BY m.place) FILTER (WHERE m.progress IS NULL), '{}') AS never_advanced,
               array_agg(m.source ORDER BY m.progress, m.source::oid) FILTER (WHERE m.compared) AS slowest_first,
               array_agg(m.source ORDER BY m.progress DESC, m.source::oid) FILTER (WHERE m.compared
                   AND NOT m.final) AS fastest_first,
               COALESCE(array_agg(m.source ORDER BY m.place) FILTER (WHERE m.idle), '{}') AS idle,
               array_agg(m.progress ORDER BY m.progress) FILTER (WHERE NOT m.progress IS NULL) AS advanced
        -- IS NOT NULL would ask for watermarks of both kinds.
        FROM (SELECT t.*, NOT (t.progress IS NULL OR t.idle) AS compared, is_final(t.progress) AS final
            FROM group_members(g.group_id) AS t) AS m) AS a
    CROSS JOIN LATERAL (
        SELECT tolerance_of(stream_table, g) AS tolerance, COALESCE(a.from_low[1], n.newest) AS low,
               COALESCE(a.from_high[1], a.from_low[cardinality(a.from_low)], n.newest) AS high
        FROM (SELECT a.advanced[cardinality(a.advanced)] AS newest) AS n) AS v
    WHERE p_group_id IS NULL OR g.group_id = p_group_id
    ORDER BY g.group_name;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.group_alignment(integer, pgtrickle.pgt_stream_tables) IS
    'How far the watermarks of each group, or of one, are apart, within the tolerance of a stream table if one is '
    'given; aligned is NULL while a source never '
    'advanced. Final watermarks and idle sources are left out of the comparison; a group of idle sources only is '
    'aligned at the newest of their watermarks. '
    'complete_through is the least of all.';
