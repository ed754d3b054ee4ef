-- Feeds: who follows the changes of a source or stream table, and how long they are kept for that.

CREATE OR REPLACE FUNCTION pgtrickle_private.feed_view(relation regclass) RETURNS text
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT format('pgtrickle.pgt_changes_%s', relation::oid)
$$;
COMMENT ON FUNCTION pgtrickle_private.feed_view(regclass) IS
    'The view that shows the change buffer of a relation to those who may read all of the relation.';

-- Within a view current_user is whoever reads it, although its table is read with the rights of the owner.
CREATE OR REPLACE FUNCTION pgtrickle_private.write_feed_view(relation regclass, buffer text, columns text[])
    RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET client_min_messages = warning
AS $$
DECLARE
    view CONSTANT text := feed_view(relation);
BEGIN
    EXECUTE format('DROP VIEW IF EXISTS %s', view);
    EXECUTE format('CREATE VIEW %s WITH (security_barrier) AS SELECT pgt_weight, pgt_xid, pgt_pos%s FROM %s '
        'WHERE pgtrickle_private.reads_all(current_user, %s::oid::regclass)', view,
        (SELECT string_agg(format(', %I', c.name), '' ORDER BY c.place)
            FROM unnest(columns) WITH ORDINALITY AS c (name, place)), buffer, relation::oid);
    EXECUTE format('COMMENT ON VIEW %s IS %L', view,
        format('Changes of %s, for who may read every row of it.', qualified_name(relation)));
    PERFORM hand_over(view::regclass);
    EXECUTE format('REVOKE ALL ON TYPE %s FROM PUBLIC', view);
    EXECUTE format('GRANT SELECT ON %s TO PUBLIC', view);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.write_feed_view(regclass, text, text[]) IS
    'Shows the change buffer of a relation to those who may read all of the relation.';

CREATE OR REPLACE FUNCTION pgtrickle_private.check_feed(name text, relation regclass, owner name) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    obstacle CONSTANT text := capture_obstacle(relation);
BEGIN
    IF COALESCE(btrim(name), '') = '' THEN
        PERFORM refuse_value('name', name, 'Give the feed a name.');
    ELSIF owner IS NULL THEN
        PERFORM refuse_value('owner', NULL, 'Name the role that reads the feed.');
    ELSIF NOT EXISTS (SELECT FROM pg_roles AS r WHERE r.rolname = owner) THEN
        PERFORM refuse_value('owner', owner, 'There is no such role: name the one that reads the feed.');
    ELSIF relation IS NULL OR NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = relation) THEN
        PERFORM refuse_value('relation', relation::text, 'Name a table or stream table.');
    ELSIF (SELECT c.relpersistence = 't' FROM pg_class AS c WHERE c.oid = relation) THEN
        PERFORM refuse_value('relation', relation::text,
            'A temporary table is gone with its session: follow an ordinary one.');
    ELSIF obstacle IS NOT NULL THEN
        RAISE EXCEPTION 'the changes of % cannot be followed: it %', relation, obstacle
            USING ERRCODE = '42809', CONSTRAINT = 'invalid_argument', HINT = 'Follow a table or a stream table.';
    ELSIF EXISTS (SELECT FROM pgt_feeds AS f WHERE f.feed_name = name) THEN
        RAISE EXCEPTION 'there is a feed % already', quote_literal(name)
            USING ERRCODE = '42710', CONSTRAINT = 'invalid_argument',
                HINT = 'Drop it by pgtrickle.drop_feed(), or choose another name.';
    ELSIF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'a feed can be created at READ COMMITTED only'
            USING ERRCODE = '25001', CONSTRAINT = 'invalid_argument', HINT = 'Create it in a transaction of its own.';
    END IF;
    PERFORM check_length('name', name);
    PERFORM check_reads_all(owner, relation, 'follow the changes of');
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_feed(text, regclass, name) IS
    'Refuses a feed of what cannot be followed, of a name that is taken, or of an owner who may not read every row.';

-- Whoever comes first after the feed has a version to read from: the last one that the buffer still reaches.
CREATE OR REPLACE FUNCTION pgtrickle_private.first_frontier(relation regclass, since pgtrickle.cut)
    RETURNS pgtrickle.cut
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    now cut := current_cut();
    newest cut;
BEGIN
    now.xid := pg_current_xact_id();
    now.pos := nextval('pgtrickle.change_pos');
    SELECT (v.cut).* INTO newest FROM versions_of(relation) AS v ORDER BY v.version DESC LIMIT 1;
    RETURN CASE WHEN cut_is_readable(newest, since.xid, since.pos, (SELECT t.cleaned_through
        FROM pgt_change_tracking AS t WHERE t.source_relid = relation)) THEN newest ELSE now END;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.first_frontier(regclass, pgtrickle.cut) IS
    'What a new feed keeps the changes from: the newest version if it can be read, else now.';

CREATE OR REPLACE FUNCTION pgtrickle.create_feed(
        name text, relation regclass, owner name DEFAULT current_user, max_age interval DEFAULT '7 days',
        max_rows bigint DEFAULT 10000000) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    columns text[];
    since cut;
    tracked pgt_change_tracking;
BEGIN
    PERFORM check_feed(name, relation, owner);
    IF max_age <= interval '0' THEN
        PERFORM refuse_value('max_age', max_age::text, 'Use more than 0, or NULL for no limit.');
    ELSIF max_rows <= 0 THEN
        PERFORM refuse_value('max_rows', max_rows::text, 'Use 1 or more, or NULL for no limit.');
    END IF;
    -- Waits for a refresh under way, which records no version yet; the trigger on this row records the first one.
    UPDATE pgt_stream_tables AS t SET followed = true WHERE t.pgt_relid = relation AND NOT t.followed;
    -- Else what was missed before would be held against the new feed.
    IF EXISTS (SELECT FROM pgt_change_tracking AS t WHERE t.source_relid = relation)
            AND capture_problem(relation) IS NOT NULL THEN
        PERFORM make_good(relation);
    END IF;
    columns := present_columns(relation);
    since := install_capture(relation, columns);
    PERFORM note_readers(relation);
    SELECT t.* INTO tracked FROM pgt_change_tracking AS t WHERE t.source_relid = relation FOR UPDATE;
    IF since.pos IS NULL THEN
        since.xid := pg_current_xact_id();
        since.pos := nextval('pgtrickle.change_pos');
    END IF;
    INSERT INTO pgt_feeds (feed_name, source_relid, source_name, feed_owner, columns_used, captured_xid, captured_pos,
        frontier, max_age, max_rows, system_identifier)
    VALUES (name, relation, qualified_name(relation), owner, columns, since.xid, since.pos,
        first_frontier(relation, since), max_age, max_rows, (SELECT c.system_identifier FROM pg_control_system() AS c));
    PERFORM write_feed_view(relation, tracked.buffer, columns);
END
$$;
COMMENT ON FUNCTION pgtrickle.create_feed(text, regclass, name, interval, bigint) IS
    'Keeps the changes of a source or stream table, all its columns, for a reader that follows them by '
    'pgtrickle.changes(); advance_feed() says how far it came. For the owner of the feed, who must be allowed to read '
    'every row. It is cut off, and must read everything again, once a version waits longer than max_age to be read, or '
    'more changes than max_rows wait; NULL is no limit.';

CREATE OR REPLACE FUNCTION pgtrickle_private.feed_named(name text) RETURNS pgtrickle.pgt_feeds
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    feed pgt_feeds;
BEGIN
    SELECT f.* INTO feed FROM pgt_feeds AS f WHERE f.feed_name = name;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no feed %', COALESCE(quote_literal(name), 'NULL')
            USING ERRCODE = '42704', CONSTRAINT = 'invalid_argument',
                HINT = did_you_mean(name, ARRAY(SELECT f.feed_name FROM pgt_feeds AS f))
                       || 'SELECT feed FROM pgtrickle.feeds() lists those that exist.';
    END IF;
    RETURN feed;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.feed_named(text) IS 'The feed of this name; error 42704 if there is none.';

CREATE OR REPLACE FUNCTION pgtrickle.drop_feed(name text) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET client_min_messages = warning
AS $$
DECLARE
    dropped CONSTANT pgt_feeds := feed_named(name);
BEGIN
    DELETE FROM pgt_feeds AS f WHERE f.feed_id = dropped.feed_id;
    PERFORM alert('feed', name, false, format('feed %s was dropped', name)),
        alert('feed_lag', name, false, format('feed %s was dropped', name));
    IF EXISTS (SELECT FROM pgt_feeds AS f WHERE f.source_relid = dropped.source_relid) THEN
        RETURN;
    END IF;
    UPDATE pgt_stream_tables AS t SET followed = false WHERE t.pgt_relid = dropped.source_relid;
    EXECUTE format('DROP VIEW IF EXISTS %s', feed_view(dropped.source_relid));
    DELETE FROM pgt_versions AS v WHERE v.source_relid = dropped.source_relid;
    IF EXISTS (SELECT FROM pgt_change_tracking AS t WHERE t.source_relid = dropped.source_relid) THEN
        PERFORM trim_capture(dropped.source_relid);
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle.drop_feed(text) IS
    'Forgets a feed, and ends the capture that nobody else needs.';

CREATE OR REPLACE FUNCTION pgtrickle_private.advance_feed_of(caller name, name text, read bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    feed pgt_feeds := feed_named(name);
    reached cut;
BEGIN
    IF NOT (pg_has_role(caller, catalog_owner(), 'USAGE') OR EXISTS (
        SELECT FROM pg_roles AS r WHERE r.rolname = feed.feed_owner AND pg_has_role(caller, r.oid, 'USAGE'))) THEN
        RAISE EXCEPTION 'feed % is that of %', quote_literal(name), quote_ident(feed.feed_owner)
            USING ERRCODE = '42501', CONSTRAINT = 'insufficient_privilege',
                HINT = 'Create a feed of your own by pgtrickle.create_feed().';
    END IF;
    SELECT f.* INTO feed FROM pgt_feeds AS f WHERE f.feed_name = name FOR UPDATE;
    IF NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = feed.source_relid) THEN
        RAISE EXCEPTION '%, which feed % follows, was dropped', feed.source_name, quote_literal(name)
            USING ERRCODE = '42P01', CONSTRAINT = 'unknown_table',
                HINT = format('Forget the feed: SELECT pgtrickle.drop_feed(%L).', name);
    ELSIF feed.cut_off_at IS NOT NULL THEN
        PERFORM refuse_version(feed.source_relid, format('feed %s was cut off: %s', quote_literal(name),
            feed.cut_off_reason));
    ELSIF read <= feed.read_version THEN
        RETURN;
    END IF;
    SELECT (v.cut).* INTO reached FROM versions_of(feed.source_relid) AS v WHERE v.version = read;
    IF NOT FOUND THEN
        PERFORM refuse_version(feed.source_relid, no_version(feed.source_relid, read));
    ELSIF cut_covers(reached, feed.frontier) THEN
        UPDATE pgt_feeds AS f SET frontier = reached, read_version = read, read_at = clock_timestamp()
        WHERE f.feed_id = feed.feed_id;
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.advance_feed_of(name, text, bigint) IS
    'Says how far a feed was read, for its caller.';

CREATE OR REPLACE FUNCTION pgtrickle.advance_feed(name text, version bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    INSERT INTO pgt_calls (call, arguments)
        VALUES ('advance_feed', jsonb_build_object('name', name, 'version', version));
END
$$;
COMMENT ON FUNCTION pgtrickle.advance_feed(text, bigint) IS
    'Says that the reader of a feed has all through this version, and needs its changes no more. An earlier version '
    'than it said before changes nothing. For the owner of the feed. Error 55000 if the feed was cut off.';

-- A feed that was cut off needs nothing more, but its buffer must not grow either.
CREATE OR REPLACE FUNCTION pgtrickle_private.feed_frontiers(relation regclass) RETURNS SETOF pgtrickle.cut
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT CASE WHEN f.cut_off_at IS NULL THEN f.frontier ELSE current_cut() END
    FROM pgt_feeds AS f WHERE f.source_relid = relation
$$;
COMMENT ON FUNCTION pgtrickle_private.feed_frontiers(regclass) IS
    'From where on the feeds of a relation need its changes.';

CREATE OR REPLACE FUNCTION pgtrickle.feeds()
    RETURNS TABLE (feed text, relation text, owner text, read_version bigint, newest_version bigint,
        read_watermark timestamptz, read_batch bigint, newest_watermark timestamptz, newest_batch bigint,
        versions_behind bigint, waiting_since timestamptz, max_age interval, max_rows bigint, cut_off_reason text)
    LANGUAGE sql STABLE SECURITY DEFINER ROWS 10 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT f.feed_name, f.source_name, f.feed_owner, f.read_version, n.version, (r.progress).watermark,
        (r.progress).batch, (n.progress).watermark, (n.progress).batch, b.versions, b.since, f.max_age, f.max_rows,
        COALESCE(f.cut_off_reason, CASE WHEN NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = f.source_relid)
            THEN format('%s was dropped', f.source_name) END)
    FROM pgt_feeds AS f
    LEFT JOIN LATERAL (SELECT * FROM versions_of(f.source_relid) AS v ORDER BY v.version DESC LIMIT 1) AS n ON true
    LEFT JOIN LATERAL (
        SELECT * FROM versions_of(f.source_relid) AS v WHERE v.version = f.read_version) AS r ON true
    CROSS JOIN LATERAL (
        SELECT count(*) AS versions, min(v.recorded_at) AS since FROM versions_of(f.source_relid) AS v
        WHERE v.version > COALESCE(f.read_version, 0) AND cut_covers(v.cut, f.frontier)) AS b
    ORDER BY f.feed_name
$$;
COMMENT ON FUNCTION pgtrickle.feeds() IS
    'Who follows which source or stream table: how far each feed was read, how far it could be, since when the oldest '
    'version waits that was not read, and why it was cut off if it was.';
