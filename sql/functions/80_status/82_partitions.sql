-- The partitions of sources, for whoever may read all of their rows.

CREATE OR REPLACE VIEW pgtrickle.pgt_readable_partitions WITH (security_barrier) AS
SELECT s.source_relid, p.partition_name, p.watermark, p.silent_since,
    pgtrickle_private.partition_state(p.watermark, p.silent_since, s.idle_timeout,
        greatest(s.judged_at, pg_catalog.now())) AS state
FROM pgtrickle.pgt_partitioned_sources AS s JOIN pgtrickle.pgt_source_partitions AS p USING (source_relid)
WHERE s.source_relid = ANY (ARRAY(
    SELECT r.source_relid FROM pgtrickle.pgt_partitioned_sources AS r
    WHERE pgtrickle_private.reads_all(current_user, r.source_relid)));
COMMENT ON VIEW pgtrickle.pgt_readable_partitions IS
    'The partitions of sources of which the reader may read every row: their names are values of those rows.';

CREATE OR REPLACE FUNCTION pgtrickle.partitions(only_source regclass DEFAULT NULL)
    RETURNS TABLE (source text, partition_name text, state text, watermark timestamptz, silent_since timestamptz,
        waited_for boolean)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT qualified_name(p.source_relid), p.partition_name, p.state, p.watermark, p.silent_since,
        p.state = 'active' AND p.watermark IS NOT DISTINCT FROM first_value(p.watermark) OVER (
            PARTITION BY p.source_relid ORDER BY p.state, p.watermark NULLS FIRST)
    FROM pgt_readable_partitions AS p WHERE only_source IS NULL OR p.source_relid = only_source
    ORDER BY 1, 2
$$;
COMMENT ON FUNCTION pgtrickle.partitions(regclass) IS
    'The partitions of one source, or of all whose rows the caller may read: active, idle (nothing came for longer '
    'than the idle timeout of the last load) or exhausted, through when each is complete, since when its silence '
    'counts, and for which the watermark of the source waits.';
