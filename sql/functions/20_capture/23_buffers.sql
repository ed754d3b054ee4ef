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
    IF is_copied() THEN
        RETURN NEW;
    END IF;
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

-- What one cut covers, a cut that covers that one covers too. One of many consumers that stand at different cuts is
-- behind all others as a rule.
CREATE OR REPLACE FUNCTION pgtrickle_private.lowest_cuts(cuts pgtrickle.cut[]) RETURNS pgtrickle.cut[]
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    lowest CONSTANT cut := (SELECT c FROM unnest(cuts) AS c ORDER BY pg_snapshot_xmax(c.snapshot), c::text LIMIT 1);
BEGIN
    RETURN (SELECT array_agg(DISTINCT c::text)::cut[] FROM unnest(cuts) AS c
            WHERE c::text = lowest::text
                -- Asked of most, and faster than the general question.
                OR ((pg_snapshot_xmin(c.snapshot) < pg_snapshot_xmax(lowest.snapshot)
                        OR pg_snapshot_xmin(c.snapshot) <= lowest.xid)
                    AND NOT cut_covers(c, lowest)));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.lowest_cuts(pgtrickle.cut[]) IS
    'Those of some cuts that together cover what all of them cover, sorted; NULL of none.';

-- Of the cuts of a source a later one covers an earlier one. So as soon as one of its advances can be read, that pins
-- what all later ones need.
CREATE OR REPLACE FUNCTION pgtrickle_private.first_cut_is_awaited(source regclass, cleaned pgtrickle.cut[])
    RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM pgt_dependencies AS d JOIN pgt_stream_tables AS t USING (pgt_id)
        WHERE d.source_relid = source AND d.source_type = 'TABLE' AND (d.frontier).snapshot IS NULL
            AND t.watermark_gating = 'hold_back' AND NOT EXISTS (
                SELECT FROM latest_entry(source, unbounded()) AS e
                WHERE cut_is_readable(e.cut, d.captured_xid, d.captured_pos, COALESCE(cleaned, '{}'))));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.first_cut_is_awaited(regclass, pgtrickle.cut[]) IS
    'Whether a stream table that holds back is not filled yet, and can read none of the advances of this source that '
    'are committed.';

-- An advance that is not committed cannot be seen, and its cut may be older than what others show by now. But it has
-- the watermark locked before it takes its cut, so that covers the committed advances. And its transaction has its
-- number by then. A frontier is older than the number of the refresh that stored it, which is the xmin of its row:
-- where all transactions with lower numbers have ended, those that are open took their cuts later. The xmax of a
-- snapshot does not tell that: it is lower than the numbers of some that were open.
-- At REPEATABLE READ a transaction may have read long before it wrote, and so got its number: that is not noticed, and
-- what holds back waits for an advance that it can read.
CREATE OR REPLACE FUNCTION pgtrickle_private.open_advances_cover(source regclass, cuts pgtrickle.cut[])
    RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    oldest_open CONSTANT xid := pg_snapshot_xmin(pg_current_snapshot())::xid;
    newest CONSTANT cut := (SELECT e.cut FROM latest_entry(source, unbounded()) AS e);
BEGIN
    RETURN EXISTS (SELECT FROM unnest(cuts) AS c WHERE cut_covers(newest, c))
        OR EXISTS (
            SELECT FROM pgt_dependencies AS d
            WHERE d.source_relid = source AND d.source_type <> 'UNCAPTURED' AND (d.frontier).snapshot IS NOT NULL
                -- Else it covers a transaction that may have ended later than the snapshot was taken.
                AND (d.frontier).xid IS NULL AND age(d.xmin) > age(oldest_open));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.open_advances_cover(regclass, pgtrickle.cut[]) IS
    'Whether the cut of an advance of this source that is not committed yet, or is still to come, certainly covers '
    'what all of these cuts, with those that its consumers show among them, cover.';

CREATE OR REPLACE FUNCTION pgtrickle_private.needed_cuts(source regclass, cleaned pgtrickle.cut[])
    RETURNS pgtrickle.cut[]
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    cuts cut[] := pinned_cuts(source, cleaned);
BEGIN
    IF EXISTS (SELECT FROM pgt_feeds AS f WHERE f.source_relid = source) THEN
        cuts := cuts || ARRAY(SELECT f FROM feed_frontiers(source) AS f);
    END IF;
    IF cuts IS NOT NULL AND EXISTS (SELECT FROM pgt_stream_tables AS t WHERE t.watermark_retention IS NOT NULL) THEN
        cuts := cuts || ARRAY(SELECT r FROM retained_cuts(source, cleaned) AS r);
    END IF;
    RETURN CASE WHEN NOT first_cut_is_awaited(source, cleaned) OR open_advances_cover(source, cuts)
        THEN lowest_cuts(cuts) END;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.needed_cuts(regclass, pgtrickle.cut[]) IS
    'The lowest of the cuts from which changes of a source are still read, will be, or are retained; NULL before any '
    'stream table was filled, and while a first load may need what an open transaction has a cut of.';

CREATE OR REPLACE FUNCTION pgtrickle_private.covered_by_all(cuts pgtrickle.cut[]) RETURNS text
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT format('pgt_xid <= %L::xid8 AND %s', min(greatest(pg_snapshot_xmax(c.snapshot), c.xid)::text::numeric),
        COALESCE(string_agg(format('pgtrickle.covers($1[%s], pgt_xid, pgt_pos)', c.number), ' AND '), 'false'))
    FROM unnest(cuts) WITH ORDINALITY AS c(snapshot, xid, pos, lsn, number)
$$;
COMMENT ON FUNCTION pgtrickle_private.covered_by_all(pgtrickle.cut[]) IS
    'The condition that a change is covered by all cuts, which it takes as its parameter; false for none.';

-- What is retained may be most of the buffer, and no statistics say so; so it is found by the index if there is one.
-- With scans forbidden the estimated cost is huge, which must not make PostgreSQL compile the plan.
CREATE OR REPLACE FUNCTION pgtrickle_private.holds_covered(buffer text, cuts pgtrickle.cut[]) RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET enable_seqscan = off SET jit = off
AS $$
DECLARE
    found boolean;
BEGIN
    EXECUTE format('SELECT EXISTS (SELECT FROM %s WHERE %s)', buffer, covered_by_all(cuts)) INTO found USING cuts;
    RETURN found;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.holds_covered(text, pgtrickle.cut[]) IS
    'Whether a change buffer holds a change that all these cuts cover.';

CREATE OR REPLACE FUNCTION pgtrickle_private.clean_change_buffer(source regclass) RETURNS bigint
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET enable_seqscan = off SET jit = off
AS $$
DECLARE
    change_buffer text;
    cleaned cut[];
    cuts cut[];
    deleted bigint;
BEGIN
    -- Never waits: a refresh that holds this row is about to move its frontier, the next clean-up will do.
    SELECT buffer, cleaned_through INTO change_buffer, cleaned FROM pgt_change_tracking
        WHERE source_relid = source FOR UPDATE SKIP LOCKED;
    cuts := needed_cuts(source, cleaned);
    IF change_buffer IS NULL THEN
        RETURN 0;
    END IF;
    EXECUTE format('DELETE FROM %s WHERE %s', change_buffer, covered_by_all(cuts)) USING cuts;
    GET DIAGNOSTICS deleted = ROW_COUNT;
    IF deleted > 0 THEN
        UPDATE pgt_change_tracking SET cleaned_through = cuts WHERE source_relid = source;
    END IF;
    RETURN deleted;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.clean_change_buffer(regclass) IS
    'Deletes the changes of one source that every filled consumer already shows; returns how many.';

CREATE OR REPLACE FUNCTION pgtrickle_private.clean_change_buffers(sources oid[]) RETURNS bigint
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    tracked record;
    deleted bigint := 0;
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
    -- as they did at the last clean-up, nothing is left to delete; a buffer without a page never held anything. Where
    -- one of many was refreshed, others mostly still need all that there is: nothing is locked to find that out.
    FOR tracked IN
        SELECT k.source_relid, k.buffer, k.cleaned_through, needed_cuts(k.source_relid, k.cleaned_through) AS cuts
        FROM pgt_change_tracking AS k
        WHERE k.source_relid = ANY (sources::regclass[]) AND pg_relation_size(to_regclass(k.buffer)) > 0
            AND has_table_privilege(to_regclass(k.buffer)::oid, 'DELETE')
    LOOP
        IF tracked.cleaned_through::text IS DISTINCT FROM tracked.cuts::text
            AND holds_covered(tracked.buffer, tracked.cuts) THEN
            deleted := deleted + clean_change_buffer(tracked.source_relid);
        END IF;
        PERFORM fit_buffer_index(tracked.source_relid, tracked.buffer);
    END LOOP;
    RETURN deleted;
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
