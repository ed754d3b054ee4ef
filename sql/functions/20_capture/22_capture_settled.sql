-- Changes that were missed, made good without installing capture anew: so hardly anybody is kept from the source.

CREATE OR REPLACE FUNCTION pgtrickle_private.capture_again_from(source regclass, since jsonb, reason text) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    UPDATE pgt_change_tracking AS t SET installed_at = clock_timestamp(), captured_columns = (
            SELECT COALESCE(jsonb_object_agg(c.key, c.value || since), '{}') FROM jsonb_each(t.captured_columns) AS c)
        WHERE t.source_relid = source;
    UPDATE pgt_dependencies AS d SET captured_xid = (since ->> 'xid')::xid8, captured_pos = (since ->> 'pos')::bigint
        WHERE d.source_relid = source AND d.source_type <> 'UNCAPTURED';
    PERFORM cut_off_feeds(source);
    PERFORM mark_reinitialize(d.pgt_id, reason) FROM (
        SELECT d.pgt_id FROM pgt_dependencies AS d
        WHERE d.source_relid = source AND d.source_type <> 'UNCAPTURED' ORDER BY d.pgt_id) AS d;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.capture_again_from(regclass, jsonb, text) IS
    'Has every stream table that reads the source reinitialized, and only cuts read that cover this transaction and '
    'the position in it.';

-- Every transaction either noted a gap or is captured in full: so changes can be read from the cuts on that cover the
-- one that noted the gaps. Where several did, or columns were captured later, from those of this transaction on.
CREATE OR REPLACE FUNCTION pgtrickle_private.settle_gaps(source regclass) RETURNS boolean
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    reason CONSTANT text := reason_of_repair(source);
    tracking pgt_change_tracking;
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
    PERFORM capture_again_from(source, COALESCE(since, captured_from()), reason);
    -- A session whose plan knows a temporary child does not notice that it was dropped.
    PERFORM write_capture_functions(tracking);
    RETURN true;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.settle_gaps(regclass) IS
    'Makes good that gaps were noted. False, and nothing done, where capture is not as it was installed.';

-- Only the triggers of partitions that came or went are written or dropped, which waits for whoever writes to these.
-- Of rows that came to such a partition through the table, a gap is noted as long as its triggers do not know it.
CREATE OR REPLACE FUNCTION pgtrickle_private.follow_partitions(source regclass) RETURNS boolean
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    reason CONSTANT text := reason_of_repair(source);
    parts CONSTANT oid[] := capture_relations(source);
    tracking pgt_change_tracking;
    stray record;
BEGIN
    SELECT * INTO tracking FROM pgt_change_tracking WHERE source_relid = source FOR UPDATE;
    IF NOT FOUND OR tracking.relations = parts
        OR (SELECT c.relkind FROM pg_class AS c WHERE c.oid = source) IS DISTINCT FROM 'p'
        OR capture_obstacle(source) IS NOT NULL OR tracking.capture_mode <> capture_mode(source)
        OR capture_columns_problem(source, tracking.buffer,
            ARRAY(SELECT jsonb_object_keys(tracking.captured_columns))) IS NOT NULL THEN
        RETURN false;
    END IF;
    FOR stray IN
        SELECT s.trigger_name, s.relation FROM stray_triggers(source, parts) AS s
    LOOP
        EXECUTE format('DROP TRIGGER %I ON %s', stray.trigger_name, stray.relation);
    END LOOP;
    PERFORM write_capture(source);
    DELETE FROM pgt_capture_gaps WHERE source_relid = source;
    PERFORM capture_again_from(source, captured_from(), reason);
    RETURN true;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.follow_partitions(regclass) IS
    'Has partitions captured that were attached, and no longer those that were detached. False, and nothing done, '
    'where something else is wrong with capture of the source.';

CREATE OR REPLACE FUNCTION pgtrickle_private.make_good(source regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF NOT settle_gaps(source) AND NOT follow_partitions(source) THEN
        PERFORM repair_capture(source);
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.make_good(regclass) IS
    'Makes good that changes of a source were missed, by the least that will do.';
