-- What stream tables do not show yet: the oldest change of each source, and when it came.

CREATE OR REPLACE FUNCTION pgtrickle_private.most_transactions() RETURNS bigint
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT sum(current_setting(s)::bigint) + 2
    FROM unnest(ARRAY['max_connections', 'max_prepared_transactions', 'autovacuum_max_workers',
        'max_worker_processes', 'max_wal_senders']) AS s
$$;
COMMENT ON FUNCTION pgtrickle_private.most_transactions() IS
    'More transactions than can be open at the same time.';

-- One change is looked at for each transaction, in the order in which transactions began to write. Only those that were
-- open at the same time may have committed in another order: so the oldest commit is among the first few. By an index
-- they are found however long the buffer is; without one it is read once.
CREATE OR REPLACE FUNCTION pgtrickle_private.oldest_beyond(
        buffer text, frontier pgtrickle.cut,
        OUT known boolean, OUT xid xid8, OUT pos bigint, OUT changed_at timestamptz, OUT clock text)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET enable_seqscan = off SET jit = off SET lock_timeout = '10ms'
AS $$
DECLARE
    first CONSTANT xid8 := pg_snapshot_xmin(frontier.snapshot);
    commits CONSTANT boolean := current_setting('track_commit_timestamp') = 'on';
    something boolean;
    transactions text := $query$
            SELECT c.pgt_xid, min(c.pgt_pos) AS pgt_pos, min(c.pgt_at) AS pgt_at FROM %1$s AS c WHERE c.pgt_xid >= $2
            GROUP BY c.pgt_xid ORDER BY c.pgt_xid$query$;
BEGIN
    known := true;
    IF pg_relation_size(to_regclass(buffer)) = 0 THEN
        RETURN;
    END IF;
    EXECUTE format('SELECT EXISTS (SELECT FROM %s WHERE pgt_xid >= $1)', buffer) INTO something USING first;
    IF NOT something THEN
        RETURN;
    ELSIF buffer_index(to_regclass(buffer)) IS NOT NULL THEN
        transactions := $query$
            (SELECT c.pgt_xid, c.pgt_pos, c.pgt_at FROM %1$s AS c WHERE c.pgt_xid >= $2 ORDER BY c.pgt_xid LIMIT 1)
            UNION ALL
            SELECT n.* FROM written AS w CROSS JOIN LATERAL (
                SELECT c.pgt_xid, c.pgt_pos, c.pgt_at FROM %1$s AS c
                WHERE c.pgt_xid > w.pgt_xid ORDER BY c.pgt_xid LIMIT 1) AS n$query$;
    END IF;
    EXECUTE format('WITH RECURSIVE written AS (' || transactions || $query$
        ), beyond AS (
            (SELECT w.* FROM written AS w
             WHERE NOT pg_visible_in_snapshot(w.pgt_xid, ($1).snapshot) AND w.pgt_xid IS DISTINCT FROM ($1).xid
             LIMIT $3)
            UNION ALL
            (SELECT c.pgt_xid, c.pgt_pos, c.pgt_at FROM %1$s AS c
             WHERE c.pgt_xid = ($1).xid AND c.pgt_pos > ($1).pos
                AND NOT pg_visible_in_snapshot(c.pgt_xid, ($1).snapshot) LIMIT 1))
        SELECT b.pgt_xid, b.pgt_pos, COALESCE(t.committed_at, b.pgt_at),
            CASE WHEN t.committed_at IS NOT NULL THEN 'commit' WHEN b.pgt_at IS NOT NULL THEN 'capture' END
        FROM beyond AS b CROSS JOIN LATERAL (
            SELECT CASE WHEN $4 THEN pg_xact_commit_timestamp(b.pgt_xid::xid) END AS committed_at) AS t
        ORDER BY 3 NULLS FIRST LIMIT 1 $query$, buffer)
    INTO xid, pos, changed_at, clock USING frontier, first, most_transactions(), commits;
EXCEPTION WHEN lock_not_available OR undefined_table OR insufficient_privilege THEN
    known := false;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.oldest_beyond(text, pgtrickle.cut) IS
    'The oldest change of a buffer that a frontier does not cover (xid is NULL where it covers all), and when it came: '
    'by its commit, or by the clock when it was captured, or NULL. Not known while somebody alters the buffer.';

CREATE OR REPLACE FUNCTION pgtrickle_private.missing_changes(p_pgt_ids bigint[])
    RETURNS TABLE (pgt_id bigint, source regclass, xid xid8, pos bigint, changed_at timestamptz,
        arrived_at timestamptz, clock text)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT t.pgt_id, NULL::regclass, NULL::xid8, NULL::bigint,
        COALESCE(t.data_timestamp, t.created_at), COALESCE(t.data_timestamp, t.created_at),
        CASE WHEN t.frontier_version = 0 THEN 'creation' ELSE 'refresh' END
    FROM pgt_stream_tables AS t
    WHERE (p_pgt_ids IS NULL OR t.pgt_id = ANY (p_pgt_ids))
        AND (t.frontier_version = 0 OR t.reinitialize_reason IS NOT NULL OR t.time_dependent
            OR EXISTS (SELECT FROM pgt_dependencies AS d WHERE d.pgt_id = t.pgt_id
                AND (d.source_type = 'UNCAPTURED' OR (d.frontier).snapshot IS NULL)));
    -- Stream tables that stand at the same cut lack the same changes, which are looked for once.
    RETURN QUERY
    WITH reading AS MATERIALIZED (
        SELECT t.pgt_id, t.data_timestamp, d.source_relid, k.buffer, d.frontier::text AS frontier
        FROM pgt_stream_tables AS t JOIN pgt_dependencies AS d USING (pgt_id)
            JOIN pgt_change_tracking AS k USING (source_relid)
        WHERE (p_pgt_ids IS NULL OR t.pgt_id = ANY (p_pgt_ids)) AND t.frontier_version > 0
            AND t.reinitialize_reason IS NULL AND d.source_type <> 'UNCAPTURED' AND (d.frontier).snapshot IS NOT NULL
    ), looked AS MATERIALIZED (
        SELECT w.buffer, w.frontier, o.*
        FROM (SELECT DISTINCT r.buffer, r.frontier FROM reading AS r) AS w
            CROSS JOIN LATERAL oldest_beyond(w.buffer, w.frontier::cut) AS o
        WHERE o.xid IS NOT NULL OR NOT o.known)
    SELECT d.pgt_id, d.source_relid, o.xid, o.pos, COALESCE(h.oldest_change_at, o.changed_at, d.data_timestamp),
        COALESCE(o.changed_at, d.data_timestamp),
        CASE WHEN o.changed_at IS NULL THEN 'refresh' ELSE COALESCE(h.change_clock, o.clock) END
    FROM reading AS d JOIN looked AS o USING (buffer, frontier)
        LEFT JOIN pgt_stream_tables AS u ON u.pgt_relid = d.source_relid
        LEFT JOIN LATERAL (
            -- What a stream table wrote came into a base table before.
            SELECT r.oldest_change_at, r.change_clock FROM pgt_refresh_history AS r
            WHERE r.pgt_id = u.pgt_id AND r.refresh_xid = o.xid ORDER BY r.refresh_id DESC LIMIT 1) AS h ON true;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.missing_changes(bigint[]) IS
    'The oldest change of each source that a stream table, of these or, for NULL, of all, does not show: when it came '
    'to a base table, and when to the source. clock says how that is known: commit; capture, before the commit; '
    'refresh: no earlier than the data of the stream table; creation: it was never filled.';

CREATE OR REPLACE FUNCTION pgtrickle_private.oldest_missing()
    RETURNS TABLE (pgt_id bigint, source regclass, xid xid8, pos bigint, changed_at timestamptz,
        arrived_at timestamptz, clock text, culprit_id bigint, input_id bigint)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH RECURSIVE own AS MATERIALIZED (
        SELECT DISTINCT ON (m.pgt_id) m.* FROM missing_changes(NULL) AS m ORDER BY m.pgt_id, m.changed_at, m.source::oid
    ), reached AS (
        SELECT o.pgt_id AS culprit_id, o.pgt_id, NULL::bigint AS input_id FROM own AS o
        UNION
        SELECT r.culprit_id, d.pgt_id, r.pgt_id
        FROM reached AS r JOIN pgt_stream_tables AS t ON t.pgt_id = r.pgt_id
            JOIN pgt_dependencies AS d ON d.source_relid = t.pgt_relid
        WHERE d.pgt_id <> r.culprit_id)
    SELECT DISTINCT ON (r.pgt_id) r.pgt_id, o.source, o.xid, o.pos, o.changed_at, o.arrived_at, o.clock,
        r.culprit_id, r.input_id
    FROM reached AS r JOIN own AS o ON o.pgt_id = r.culprit_id
    ORDER BY r.pgt_id, o.changed_at, r.input_id NULLS FIRST;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.oldest_missing() IS
    'The oldest change that each stream table does not show, and which stream table it waits for: itself, or one that '
    'it reads (culprit_id), through which of its direct inputs (input_id). Without a row: it shows everything.';

CREATE OR REPLACE FUNCTION pgtrickle_private.came_through(p_pgt_id bigint) RETURNS timestamptz
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN (
        SELECT min(h.oldest_change_at)
        FROM pgt_dependencies AS d JOIN pgt_stream_tables AS u ON u.pgt_relid = d.source_relid
            CROSS JOIN LATERAL (
                SELECT r.oldest_change_at FROM (
                    SELECT n.refresh_xid, n.oldest_change_at FROM pgt_refresh_history AS n
                    WHERE n.pgt_id = u.pgt_id ORDER BY n.refresh_id DESC LIMIT 100) AS r
                WHERE r.refresh_xid IS NOT NULL AND NOT covers(d.frontier, r.refresh_xid, 9223372036854775807)) AS h
        WHERE d.pgt_id = p_pgt_id AND (d.frontier).snapshot IS NOT NULL);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.came_through(bigint) IS
    'When the oldest change came that the stream tables among its sources took in since a stream table last read '
    'them, by their last 100 refreshes; for the transaction that moves its frontier on.';

-- What the snapshot of the caller shows: of a change buffer that was rewritten since, it shows nothing.
CREATE OR REPLACE FUNCTION pgtrickle_private.incomplete_since(p_pgt_id bigint) RETURNS timestamptz
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    tables CONSTANT bigint[] := ARRAY(SELECT u.pgt_id FROM upstream_tables(p_pgt_id) AS u);
    oldest CONSTANT timestamptz := (SELECT min(m.changed_at) FROM missing_changes(tables) AS m);
BEGIN
    IF EXISTS (SELECT FROM base_sources(p_pgt_id) AS b JOIN pgt_change_tracking AS k ON k.source_relid = b.source
               WHERE capture_problem(b.source) IS NOT NULL)
        OR EXISTS (SELECT FROM pgt_stream_tables AS t WHERE t.pgt_id = ANY (tables)
                   AND (lasting_problem(t) IS NOT NULL OR rewritten_source(t.pgt_id, false) IS NOT NULL))
    THEN
        RETURN least(oldest, filled_at(p_pgt_id));
    END IF;
    RETURN oldest;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.incomplete_since(bigint) IS
    'When the oldest change came that a stream table does not show; its data_timestamp where changes may have been '
    'missed, NULL where it shows all that its sources have.';
