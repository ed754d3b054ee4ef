-- Keeping change buffers small, and what a frontier may be.

CREATE OR REPLACE FUNCTION pgtrickle_private.cut_is_readable(c pgtrickle.cut, captured_xid xid8, captured_pos bigint,
    cleaned_through pgtrickle.cut[]) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN covers(c, captured_xid, captured_pos)
        AND (cardinality(cleaned_through) = 0
             OR EXISTS (SELECT FROM generate_subscripts(cleaned_through, 1) AS i
                 WHERE cut_covers(c, cleaned_through[i])));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.cut_is_readable(pgtrickle.cut, xid8, bigint, pgtrickle.cut[]) IS
    'Whether the change buffer still holds every change beyond the cut.';

-- A refresh that fills a stream table at an old cut races with the clean-up of what other consumers no longer need.
-- Both lock the tracking row, so the one that comes second sees what the first has done.
CREATE OR REPLACE FUNCTION pgtrickle_private.check_frontier() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    cleaned cut[];
BEGIN
    SELECT cleaned_through INTO cleaned FROM pgt_change_tracking WHERE source_relid = NEW.source_relid FOR SHARE;
    IF FOUND AND NOT cut_is_readable(NEW.frontier, NEW.captured_xid, NEW.captured_pos, cleaned) THEN
        RAISE EXCEPTION 'the change buffer of % no longer reaches back to this frontier', NEW.source_name
            USING ERRCODE = '40001', CONSTRAINT = 'frontier_not_readable',
                  HINT = 'Refresh again: another refresh cleaned the buffer, or capture was repaired.';
    END IF;
    RETURN NEW;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_frontier() IS
    'Refuses (40001) a frontier from which later changes could not be read any more.';

CREATE OR REPLACE TRIGGER check_frontier BEFORE UPDATE OF frontier ON pgtrickle.pgt_dependencies
    FOR EACH ROW WHEN (NEW.source_type <> 'UNCAPTURED' AND (NEW.frontier).snapshot IS NOT NULL
                       AND NEW.frontier::text IS DISTINCT FROM OLD.frontier::text)
    EXECUTE FUNCTION pgtrickle_private.check_frontier();
ALTER TABLE pgtrickle.pgt_dependencies ENABLE ALWAYS TRIGGER check_frontier;

CREATE OR REPLACE FUNCTION pgtrickle_private.pinned_cuts(source regclass, cleaned pgtrickle.cut[])
    RETURNS pgtrickle.cut[]
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    -- A held-back consumer that is not filled yet will start from a cut of the past: it pins the oldest that it can
    -- read.
    RETURN (SELECT array_agg(DISTINCT pin::text)::cut[]
    FROM pgt_dependencies AS d JOIN pgt_stream_tables AS t USING (pgt_id) CROSS JOIN LATERAL (
        SELECT d.frontier AS pin WHERE (d.frontier).snapshot IS NOT NULL
        UNION ALL
        (SELECT h.cut FROM pgt_watermark_history AS h
         WHERE (d.frontier).snapshot IS NULL AND t.watermark_gating = 'hold_back' AND h.source_relid = d.source_relid
             AND cut_is_readable(h.cut, d.captured_xid, d.captured_pos, COALESCE(cleaned, '{}'))
         ORDER BY h.history_id LIMIT 1)) AS p
    WHERE d.source_relid = source AND d.source_type <> 'UNCAPTURED');
END
$$;
COMMENT ON FUNCTION pgtrickle_private.pinned_cuts(regclass, pgtrickle.cut[]) IS
    'The cuts from which the consumers of a source still read its changes, or will; NULL before any was filled.';

-- What is retained may be most of the buffer, and no statistics say so; so it is found by the index if there is one.
-- With scans forbidden the estimated cost is huge, which must not make PostgreSQL compile the plan.
CREATE OR REPLACE FUNCTION pgtrickle_private.clean_change_buffer(source regclass) RETURNS bigint
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET enable_seqscan = off SET jit = off
AS $$
DECLARE
    change_buffer text;
    cleaned cut[];
    frontiers cut[];
    deleted bigint;
BEGIN
    -- Never waits: a refresh that holds this row is about to move its frontier, the next clean-up will do.
    SELECT buffer, cleaned_through INTO change_buffer, cleaned FROM pgt_change_tracking
        WHERE source_relid = source FOR UPDATE SKIP LOCKED;
    frontiers := pinned_cuts(source, cleaned);
    IF EXISTS (SELECT FROM pgt_feeds AS f WHERE f.source_relid = source) THEN
        frontiers := frontiers || ARRAY(SELECT DISTINCT ON (f::text) f FROM feed_frontiers(source) AS f);
    END IF;
    IF change_buffer IS NULL OR frontiers IS NULL
        OR has_table_privilege(to_regclass(change_buffer)::oid, 'DELETE') IS NOT TRUE THEN
        RETURN 0;
    ELSIF EXISTS (SELECT FROM pgt_stream_tables AS t WHERE t.watermark_retention IS NOT NULL) THEN
        frontiers := frontiers || ARRAY(SELECT DISTINCT ON (r::text) r FROM retained_cuts(source, cleaned) AS r);
    END IF;
    EXECUTE format('DELETE FROM %s WHERE pgt_xid <= $2 AND %s', change_buffer,
        (SELECT string_agg(format('pgtrickle.covers($1[%s], pgt_xid, pgt_pos)', i), ' AND ')
            FROM generate_subscripts(frontiers, 1) AS i))
    USING frontiers, (SELECT greatest(pg_snapshot_xmax(f.snapshot), f.xid) AS highest
        FROM unnest(frontiers) AS f ORDER BY highest LIMIT 1);
    GET DIAGNOSTICS deleted = ROW_COUNT;
    IF deleted > 0 THEN
        UPDATE pgt_change_tracking SET cleaned_through = frontiers WHERE source_relid = source;
    END IF;
    PERFORM fit_buffer_index(source, change_buffer);
    RETURN deleted;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.clean_change_buffer(regclass) IS
    'Deletes the changes of one source that every filled consumer already shows; returns how many.';

CREATE OR REPLACE FUNCTION pgtrickle_private.clean_change_buffers(sources oid[]) RETURNS bigint
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    -- An older snapshot would not see the frontier that a refresh stored meanwhile.
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'change buffers can be cleaned at READ COMMITTED only'
            USING ERRCODE = '25001', CONSTRAINT = 'invalid_argument',
                  HINT = 'Call it outside of the snapshot transaction.';
    END IF;
    IF EXISTS (SELECT FROM pgt_feeds) THEN
        PERFORM cut_off_laggards();
    END IF;
    -- To look into the buffers of all sources would take each tick longer the more there are. Where the consumers stand
    -- as they did at the last clean-up, nothing is left to delete; a buffer without a page never held anything.
    RETURN (
        SELECT COALESCE(sum(clean_change_buffer(k.source_relid)), 0)
        FROM pgt_change_tracking AS k
        WHERE k.source_relid = ANY (sources::regclass[]) AND CASE
            WHEN pg_relation_size(to_regclass(k.buffer)) = 0 THEN false
            WHEN EXISTS (SELECT FROM pgt_stream_tables AS t WHERE t.watermark_retention IS NOT NULL)
                OR EXISTS (SELECT FROM pgt_feeds AS f WHERE f.source_relid = k.source_relid) THEN true
            ELSE k.cleaned_through::text IS DISTINCT FROM pinned_cuts(k.source_relid, k.cleaned_through)::text
        END);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.clean_change_buffers(oid[]) IS
    'Deletes the changes of some sources that every consumer already shows; returns how many.';

CREATE OR REPLACE FUNCTION pgtrickle.clean_change_buffers() RETURNS bigint
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN clean_change_buffers(ARRAY(SELECT t.source_relid::oid FROM pgt_change_tracking AS t));
END
$$;
COMMENT ON FUNCTION pgtrickle.clean_change_buffers() IS
    'Deletes the changes that every consumer already shows; returns how many. A frontier held back keeps what lies '
    'beyond it.';
