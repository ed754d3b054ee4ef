-- Cuts: which changes a cut covers, and cuts taken now.

-- Defaults to false for a NULL cut: nothing is covered before the first refresh, and NOT covers(...) must not be NULL.
CREATE OR REPLACE FUNCTION pgtrickle.covers(c pgtrickle.cut, xid xid8, pos bigint) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN COALESCE(pg_catalog.pg_visible_in_snapshot(xid, (c).snapshot) OR (xid = (c).xid AND pos <= (c).pos), false);
COMMENT ON FUNCTION pgtrickle.covers(pgtrickle.cut, xid8, bigint) IS
    'Whether the cut covers a change of transaction xid at position pos. A NULL cut covers nothing.';

-- PL/pgSQL, although one expression: its plan is kept, and gating asks for every stream table at every tick.
CREATE OR REPLACE FUNCTION pgtrickle.cut_covers(later pgtrickle.cut, earlier pgtrickle.cut) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN CASE
        WHEN (earlier).snapshot IS NULL THEN true
        WHEN (later).snapshot IS NULL THEN false
        ELSE pg_snapshot_xmax((earlier).snapshot) <= pg_snapshot_xmax((later).snapshot)
            AND NOT EXISTS (
                SELECT FROM pg_snapshot_xip((later).snapshot) AS running
                WHERE pg_visible_in_snapshot(running, (earlier).snapshot))
            AND ((earlier).xid IS NULL OR covers(later, (earlier).xid, (earlier).pos))
    END;
END
$$;
COMMENT ON FUNCTION pgtrickle.cut_covers(pgtrickle.cut, pgtrickle.cut) IS
    'Whether every change that the earlier cut covers is covered by the later one. May answer false when in doubt, '
    'never true.';

-- Some platforms refuse the function, as does every standby; the position is informative only, so its absence must not
-- break a loader, or a look at a standby.
DO $probe$
DECLARE
    expression text := 'CASE WHEN NOT pg_is_in_recovery() THEN pg_current_wal_insert_lsn() END';
BEGIN
    BEGIN
        PERFORM pg_current_wal_insert_lsn();
    EXCEPTION WHEN OTHERS THEN
        expression := 'NULL::pg_lsn';
    END;
    EXECUTE format(
        'CREATE OR REPLACE FUNCTION pgtrickle_private.current_lsn() RETURNS pg_lsn '
        'LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp AS %L',
        format('BEGIN RETURN %s; END', expression));
END
$probe$;
COMMENT ON FUNCTION pgtrickle_private.current_lsn() IS
    'The current WAL insert position; NULL on a standby, or where the platform refuses it (probed at install).';

-- PostgreSQL leaves a transaction out of the list of running ones in its own snapshot. So its xid looks visible there
-- as soon as any younger transaction has ended, even a savepoint of its own that was rolled back.
-- PL/pgSQL, for its plans are kept: each refresh takes a cut.
CREATE OR REPLACE FUNCTION pgtrickle_private.committed_snapshot() RETURNS pg_snapshot
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    snapshot CONSTANT pg_snapshot := pg_current_snapshot();
    own CONSTANT xid8 := pg_current_xact_id_if_assigned();
BEGIN
    IF own IS NULL OR NOT pg_visible_in_snapshot(own, snapshot) THEN
        RETURN snapshot;
    END IF;
    RETURN (SELECT format('%s:%s:%s', pg_snapshot_xmin(snapshot), pg_snapshot_xmax(snapshot),
            string_agg(running::text, ',' ORDER BY running))
        FROM (SELECT pg_snapshot_xip(snapshot) UNION ALL SELECT own) AS r(running))::pg_snapshot;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.committed_snapshot() IS
    'The current snapshot with the own transaction among the running ones.';

CREATE OR REPLACE FUNCTION pgtrickle.current_cut() RETURNS pgtrickle.cut
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    now cut := ROW(committed_snapshot(), NULL, NULL, NULL)::cut;
BEGIN
    -- Taken after the snapshot, so that no change that the snapshot shows has a higher position.
    now.lsn := current_lsn();
    RETURN now;
END
$$;
COMMENT ON FUNCTION pgtrickle.current_cut() IS
    'The cut of the current snapshot: everything the current statement sees, its own writes excepted.';
