-- Limits of feeds: beyond them a feed is cut off, half way there somebody is warned.

CREATE OR REPLACE FUNCTION pgtrickle_private.cut_off(feed_ids bigint[], reason text) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    UPDATE pgt_feeds AS f SET cut_off_at = clock_timestamp(), cut_off_reason = reason
    WHERE f.feed_id = ANY (feed_ids) AND f.cut_off_at IS NULL;
    PERFORM alert('feed', f.feed_name, true, format('feed %s was cut off: %s', f.feed_name, reason)),
        alert('feed_lag', f.feed_name, false, format('feed %s was cut off', f.feed_name))
    FROM pgt_feeds AS f WHERE f.feed_id = ANY (feed_ids);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.cut_off(bigint[], text) IS
    'Keeps no more changes for these feeds, and tells so.';

-- Each row takes more than 48 bytes of a page, so a buffer that is small enough need not be counted.
CREATE OR REPLACE FUNCTION pgtrickle_private.feed_excess(feed pgtrickle.pgt_feeds) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET enable_seqscan = off SET jit = off
AS $$
DECLARE
    buffer CONSTANT text := (SELECT t.buffer FROM pgt_change_tracking AS t WHERE t.source_relid = feed.source_relid);
    waiting_since CONSTANT timestamptz := (SELECT min(v.recorded_at) FROM versions_of(feed.source_relid) AS v
        WHERE v.version > COALESCE(feed.read_version, 0) AND cut_covers(v.cut, feed.frontier)
            AND (v.cut).snapshot::text <> (feed.frontier).snapshot::text);
    waiting bigint := 0;
BEGIN
    IF waiting_since < clock_timestamp() - least(feed.max_age, interval '1000 years') THEN
        RETURN format('a version waited longer than %s to be read', written_interval(feed.max_age));
    END IF;
    IF pg_relation_size(to_regclass(buffer)) / 48 > feed.max_rows THEN
        EXECUTE format('SELECT count(*) FROM (SELECT FROM %s WHERE pgt_xid >= $1 '
            'AND NOT pgtrickle.covers($2, pgt_xid, pgt_pos) LIMIT $3) AS c', buffer) INTO waiting
        USING pg_snapshot_xmin((feed.frontier).snapshot)::text::xid8, feed.frontier, feed.max_rows + 1;
    END IF;
    RETURN CASE WHEN waiting > feed.max_rows THEN format('more than %s changes waited to be read', feed.max_rows) END;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.feed_excess(pgtrickle.pgt_feeds) IS
    'Which limit of a feed is passed, or NULL.';

CREATE OR REPLACE FUNCTION pgtrickle_private.warn_of_lag(feed pgtrickle.pgt_feeds) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    excess text;
BEGIN
    feed.max_age := feed.max_age / 2;
    feed.max_rows := feed.max_rows / 2;
    excess := feed_excess(feed);
    PERFORM alert('feed_lag', feed.feed_name, excess IS NOT NULL, CASE
        WHEN excess IS NULL THEN format('feed %s was read', feed.feed_name)
        ELSE format('feed %s is half way to being cut off: %s', feed.feed_name, excess) END);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.warn_of_lag(pgtrickle.pgt_feeds) IS
    'Tells once that half of a limit of a feed is passed, and once that it is not any more.';

CREATE OR REPLACE FUNCTION pgtrickle_private.cut_off_laggards() RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    feed pgt_feeds;
    excess text;
BEGIN
    FOR feed IN SELECT f.* FROM pgt_feeds AS f WHERE f.cut_off_at IS NULL FOR UPDATE SKIP LOCKED LOOP
        excess := feed_excess(feed);
        IF excess IS NULL THEN
            PERFORM warn_of_lag(feed);
        ELSE
            PERFORM cut_off(ARRAY[feed.feed_id], excess);
        END IF;
    END LOOP;
    DELETE FROM pgt_versions AS v WHERE v.version < (
        SELECT min(f.read_version) FROM pgt_feeds AS f WHERE f.source_relid = v.source_relid AND f.cut_off_at IS NULL
        HAVING count(*) = count(f.read_version))
        OR NOT EXISTS (SELECT FROM pgt_feeds AS f WHERE f.source_relid = v.source_relid AND f.cut_off_at IS NULL);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.cut_off_laggards() IS
    'Cuts off the feeds that are beyond a limit, warns of those half way there, and forgets versions that every reader '
    'has passed.';
