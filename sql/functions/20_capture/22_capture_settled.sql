-- Gaps in capture that is as it was installed: nothing is installed anew, and nobody is kept from reading or writing.

-- Every transaction either noted a gap or is captured in full: so changes can be read from the cuts on that cover the
-- one that noted the gaps. Where several did, or columns were captured later, from those of this transaction on.
CREATE OR REPLACE FUNCTION pgtrickle_private.settle_gaps(source regclass) RETURNS boolean
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    tracking pgt_change_tracking;
    reason CONSTANT text := format('changes of %s may have been missed: %s', qualified_name(source),
        capture_problem(source));
    since jsonb;
BEGIN
    SELECT * INTO tracking FROM pgt_change_tracking WHERE source_relid = source FOR UPDATE;
    IF NOT FOUND OR capture_damage(source) IS NOT NULL THEN
        RETURN false;
    END IF;
    WITH settled AS (
        DELETE FROM pgt_capture_gaps AS g WHERE g.source_relid = source RETURNING g.xid, g.pos
    ), noted AS (
        SELECT array_agg(DISTINCT s.xid) AS xids, CASE WHEN bool_and(s.pos IS NOT NULL) THEN max(s.pos) END AS pos
        FROM settled AS s
    )
    SELECT jsonb_build_object('xid', n.xids[1]::text, 'pos', n.pos) INTO since FROM noted AS n
    WHERE cardinality(n.xids) = 1 AND n.xids[1] IS NOT NULL AND NOT EXISTS (
        SELECT FROM jsonb_each(tracking.captured_columns) AS c WHERE (c.value ->> 'xid')::xid8 > n.xids[1]);
    since := COALESCE(since, captured_from());
    UPDATE pgt_change_tracking AS t SET installed_at = clock_timestamp(), captured_columns = (
            SELECT COALESCE(jsonb_object_agg(c.key, c.value || since), '{}') FROM jsonb_each(t.captured_columns) AS c)
        WHERE t.source_relid = source;
    UPDATE pgt_dependencies AS d SET captured_xid = (since ->> 'xid')::xid8, captured_pos = (since ->> 'pos')::bigint
        WHERE d.source_relid = source AND d.source_type <> 'UNCAPTURED';
    PERFORM cut_off_feeds(source);
    PERFORM mark_reinitialize(d.pgt_id, reason) FROM (
        SELECT d.pgt_id FROM pgt_dependencies AS d
        WHERE d.source_relid = source AND d.source_type <> 'UNCAPTURED' ORDER BY d.pgt_id) AS d;
    RETURN true;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.settle_gaps(regclass) IS
    'Has every stream table that reads the source reinitialized, and no cut read any more from which changes were '
    'missed. False, and nothing done, where capture is not as it was installed.';

CREATE OR REPLACE FUNCTION pgtrickle_private.make_good(source regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF NOT settle_gaps(source) THEN
        PERFORM repair_capture(source);
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.make_good(regclass) IS
    'Settles gaps in capture of a source, or repairs capture where that is not as it was installed.';
