-- The late ledger: listing it, and putting rows into the source that were kept out.

-- With row security on, who may select need not see all rows; the ledger has no policies.
CREATE OR REPLACE FUNCTION pgtrickle_private.reads_all(caller name, relation regclass) RETURNS boolean
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT COALESCE((
        SELECT has_table_privilege(r.oid, c.oid, 'SELECT')
            AND (NOT c.relrowsecurity OR r.rolsuper OR r.rolbypassrls OR pg_has_role(r.oid, c.relowner, 'USAGE')
                AND NOT c.relforcerowsecurity)
        FROM pg_class AS c, pg_roles AS r WHERE c.oid = relation AND r.rolname = caller), false)
$$;
COMMENT ON FUNCTION pgtrickle_private.reads_all(name, regclass) IS
    'Whether a role may read a relation, and no policy hides rows of it.';

CREATE OR REPLACE FUNCTION pgtrickle_private.check_reads_all(caller name, source regclass, action text) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM check_there(source);
    IF NOT reads_all(caller, source) THEN
        RAISE EXCEPTION 'permission denied to % %', action, source
            USING ERRCODE = '42501', CONSTRAINT = 'insufficient_privilege',
                  HINT = format('GRANT SELECT ON %s TO %I; with row security on, only who bypasses it sees every row.',
                      qualified_name(source), caller);
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_reads_all(name, regclass, text) IS
    'Error 42501 for a role that may not read every row of the source.';

-- Within a view current_user is whoever reads it, although its tables are read with the rights of the owner.
CREATE OR REPLACE VIEW pgtrickle.pgt_readable_late_rows WITH (security_barrier) AS
SELECT l.* FROM pgtrickle.pgt_late_rows AS l
WHERE l.source_relid = ANY (ARRAY(
    SELECT s.source_relid FROM (SELECT DISTINCT d.source_relid FROM pgtrickle.pgt_late_rows AS d) AS s
    WHERE pgtrickle_private.reads_all(current_user, s.source_relid)));
COMMENT ON VIEW pgtrickle.pgt_readable_late_rows IS
    'The late ledger, of the sources of which the reader may read every row.';

-- Infinite times are at no distance from others.
CREATE OR REPLACE FUNCTION pgtrickle_private.distance(later timestamptz, earlier timestamptz) RETURNS interval
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT CASE WHEN isfinite(later) AND isfinite(earlier) THEN later - earlier END
$$;
COMMENT ON FUNCTION pgtrickle_private.distance(timestamptz, timestamptz) IS
    'How much later one time is than another; NULL where one is infinite.';

CREATE OR REPLACE FUNCTION pgtrickle.late_rows(only_source regclass DEFAULT NULL, only_status text DEFAULT NULL,
    max_rows integer DEFAULT 20)
    RETURNS TABLE (late_id bigint, source text, event_time timestamptz, watermark timestamptz, lag interval,
        row_data jsonb,
                   arrived_at timestamptz, arrived_by text, status text, settled_at timestamptz, settled_by text)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF only_source IS NOT NULL THEN
        PERFORM check_reads_all(current_user, only_source, 'list late rows of');
    END IF;
    IF only_status IS NOT NULL THEN
        PERFORM check_choice('only_status', only_status, 'loaded', 'kept_out', 'replayed', 'discarded');
    END IF;
    RETURN QUERY
    SELECT l.late_id, qualified_name(l.source_relid), l.event_time, l.watermark, distance(l.watermark, l.event_time),
        l.row_data,
           l.arrived_at, l.arrived_by, l.status, l.settled_at, l.settled_by
    FROM pgt_readable_late_rows AS l
    WHERE (only_source IS NULL OR l.source_relid = only_source) AND (only_status IS NULL OR l.status = only_status)
    ORDER BY l.late_id DESC LIMIT row_limit(max_rows);
END
$$;
COMMENT ON FUNCTION pgtrickle.late_rows(regclass, text, integer) IS
    'Rows that came below the watermark in force, newest first: of one source or of all that the caller may read, in '
    'one status or in any. loaded: it is in the '
    'source, and in stream tables; kept_out: it is later than the source''s limit and waits here; replayed, '
    'discarded: it was kept out before.';

-- Locked in one order, so that concurrent calls wait for each other and share the rows out.
CREATE OR REPLACE FUNCTION pgtrickle_private.lock_kept_out(source regclass, late_ids bigint[]) RETURNS bigint[]
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT ARRAY(
        SELECT l.late_id FROM pgt_late_rows AS l
        WHERE l.source_relid = source AND l.status = 'kept_out' AND (late_ids IS NULL OR l.late_id = ANY (late_ids))
        ORDER BY l.late_id FOR UPDATE)
$$;
COMMENT ON FUNCTION pgtrickle_private.lock_kept_out(regclass, bigint[]) IS
    'Locks rows that were kept out of a source, all or those named, and returns their numbers.';

CREATE OR REPLACE FUNCTION pgtrickle_private.settle_late_rows(caller name, late_ids bigint[], status text)
    RETURNS bigint
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    settled bigint;
BEGIN
    UPDATE pgt_late_rows AS l
    SET status = settle_late_rows.status, settled_at = clock_timestamp(), settled_by = COALESCE(caller, l.settled_by),
        replay_xid = NULL, replay_time = NULL
    WHERE l.late_id = ANY (late_ids) AND l.status = 'kept_out';
    GET DIAGNOSTICS settled = ROW_COUNT;
    RETURN settled;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.settle_late_rows(name, bigint[], text) IS
    'Gives rows that were kept out another status, and returns how many.';

CREATE OR REPLACE FUNCTION pgtrickle_private.check_replay(caller name, source regclass, action text) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM check_loader(caller, source, action);
    PERFORM check_reads_all(caller, source, action);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_replay(name, regclass, text) IS
    'Refuses what is for those only who may load into the source and read all of it.';

CREATE OR REPLACE FUNCTION pgtrickle_private.discard_kept_out(caller name, source regclass, late_ids bigint[])
    RETURNS bigint
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM check_replay(caller, source, 'discard late rows of');
    IF late_ids IS NULL THEN
        PERFORM refuse_value('late_ids', NULL, 'Name the rows: late_rows() has their late_id.');
    END IF;
    RETURN settle_late_rows(caller, lock_kept_out(source, late_ids), 'discarded');
END
$$;
COMMENT ON FUNCTION pgtrickle_private.discard_kept_out(name, regclass, bigint[]) IS
    'Discards rows that were kept out of a source, for its caller; returns how many.';

CREATE OR REPLACE FUNCTION pgtrickle.discard_late_rows(source regclass, late_ids bigint[]) RETURNS bigint
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    answer jsonb;
BEGIN
    INSERT INTO pgt_calls (call, source, arguments)
        VALUES ('discard_late_rows', source, jsonb_build_object('late_ids', late_ids)) RETURNING result INTO answer;
    RETURN answer::bigint;
END
$$;
COMMENT ON FUNCTION pgtrickle.discard_late_rows(regclass, bigint[]) IS
    'Marks these rows, which were kept out of the source, as not wanted; returns how many were marked. Needs INSERT '
    'and SELECT on the source.';

-- A row that is being put back may pass the limit, and is known again by its event time, as it is declared now.
CREATE OR REPLACE FUNCTION pgtrickle_private.begin_replay(caller name, source regclass, late_ids bigint[]) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp SET TimeZone = 'UTC'
        SET DateStyle = 'ISO'
AS $$
DECLARE
    declared pgt_event_times;
    claimed bigint[];
    lost text;
BEGIN
    PERFORM check_replay(caller, source, 'replay late rows of');
    claimed := lock_kept_out(source, late_ids);
    SELECT v.key INTO lost FROM pgt_late_rows AS l CROSS JOIN LATERAL jsonb_each_text(l.row_data) AS v
    WHERE l.late_id = ANY (claimed) AND v.value IS NOT NULL AND NOT EXISTS (
        SELECT FROM pg_attribute AS a
        WHERE a.attrelid = source AND a.attname = v.key AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '')
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION '% no longer has column %, for which late rows have values', source, quote_ident(lost)
            USING ERRCODE = '42703', CONSTRAINT = 'invalid_argument',
                  HINT = 'Nothing was replayed. Give the column its name back, or insert the rows by hand and discard '
                      'them here.';
    END IF;
    SELECT * INTO declared FROM pgt_event_times AS e WHERE e.source_relid = source;
    EXECUTE format('UPDATE pgtrickle.pgt_late_rows AS l SET settled_by = $2, replay_xid = pg_current_xact_id(), '
        'replay_time = %s WHERE l.late_id = ANY ($1)',
                   CASE WHEN declared IS NULL THEN 'NULL' ELSE
                       format('(SELECT %s FROM (SELECT (l.row_data ->> %L)::%s AS %I) AS p)',
                              event_time_of(declared, 'p'), declared.column_name, declared.column_type,
                                  declared.column_name) END)
    USING claimed, caller;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.begin_replay(name, regclass, bigint[]) IS
    'Lets rows that were kept out of a source pass its limit, each once, until the transaction ends, for its caller.';

CREATE OR REPLACE FUNCTION pgtrickle_private.being_replayed(source regclass)
    RETURNS TABLE (event_time timestamptz, copies bigint)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN QUERY
    SELECT l.replay_time, count(*) FROM pgt_late_rows AS l
    WHERE l.source_relid = source AND l.replay_xid = pg_current_xact_id_if_assigned() AND l.status = 'kept_out'
        GROUP BY 1;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.being_replayed(regclass) IS
    'How many rows of each event time this transaction is putting back into a source.';

-- Only what was seen to come in is called replayed: of rows of one event time those that look the same, unless a
-- trigger of the table changed them.
CREATE OR REPLACE FUNCTION pgtrickle_private.note_replayed(source regclass, event_time timestamptz, came jsonb[])
    RETURNS bigint
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN settle_late_rows(NULL, ARRAY(
        SELECT l.late_id FROM pgt_late_rows AS l
        WHERE l.source_relid = source AND l.replay_xid = pg_current_xact_id_if_assigned() AND l.status = 'kept_out'
            AND l.replay_time = note_replayed.event_time
        ORDER BY l.row_data = ANY (came) DESC, l.late_id LIMIT cardinality(came)), 'replayed');
END
$$;
COMMENT ON FUNCTION pgtrickle_private.note_replayed(regclass, timestamptz, jsonb[]) IS
    'Notes how many rows of an event time came in, of those that this transaction is putting back.';

-- Nobody has seen a row come in that the triggers no longer judge, because it is no longer late or they are gone.
CREATE OR REPLACE FUNCTION pgtrickle_private.end_replay(caller name, source regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    judged_below CONSTANT timestamptz := (
        SELECT w.watermark FROM pgt_event_times AS e JOIN pgt_watermarks AS w USING (source_relid)
        WHERE e.source_relid = source AND event_time_damage(e) IS NULL);
BEGIN
    PERFORM check_replay(caller, source, 'replay late rows of');
    PERFORM settle_late_rows(caller, array_agg(l.late_id), CASE WHEN l.replay_time < judged_below THEN 'discarded'
        ELSE 'replayed' END)
    FROM pgt_late_rows AS l
    WHERE l.source_relid = source AND l.replay_xid = pg_current_xact_id_if_assigned() AND l.status = 'kept_out'
        GROUP BY l.replay_time < judged_below;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.end_replay(name, regclass) IS
    'Ends what begin_replay() began, for its caller: a row that did not come in, as it is there already or a trigger '
    'dropped it, counts as discarded.';

-- The rights are the caller's: triggers, defaults and policies of the table run as for any INSERT of theirs. json and
-- domains are cast, because to jsonb_populate_record a JSON string is a value of json as it stands.
CREATE OR REPLACE FUNCTION pgtrickle.replay_late_rows(
        source regclass, late_ids bigint[] DEFAULT NULL, skip_conflicts boolean DEFAULT false,
            search_path text DEFAULT current_setting('search_path'))
    RETURNS bigint
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp SET lc_monetary = 'C'
        SET array_nulls = on SET xmloption = content
AS $$
DECLARE
    claimed jsonb[];
    template CONSTANT text := 'INSERT INTO %1$s (%2$s) OVERRIDING SYSTEM VALUE SELECT %3$s FROM pg_catalog.unnest($1) '
        'WITH ORDINALITY AS r(data, place), '
        'LATERAL pg_catalog.jsonb_populate_record(NULL::%1$s, r.data) AS p '
        'WHERE ARRAY(SELECT pg_catalog.jsonb_object_keys(r.data)) OPERATOR(pg_catalog.=) $2 ORDER BY r.place%4$s';
    shape text[];
    statement text;
    inserted bigint;
    replayed bigint := 0;
BEGIN
    INSERT INTO pgt_calls (call, source, arguments)
        VALUES ('begin_replay', source, jsonb_build_object('late_ids', late_ids));
    claimed := ARRAY(SELECT l.row_data FROM pgt_readable_late_rows AS l
                     WHERE l.source_relid = source AND l.replay_xid = pg_current_xact_id() ORDER BY l.late_id);
    -- Rows that came before and after a column was added: those without it get its default.
    FOR shape IN SELECT DISTINCT ARRAY(SELECT jsonb_object_keys(c)) FROM unnest(claimed) AS c LOOP
        SELECT format(template, source, string_agg(quote_ident(a.attname), ', '),
                      string_agg(CASE WHEN v.cast_it
                          THEN format('(r.data OPERATOR(pg_catalog.->>) %L)::%s.%I', a.attname,
                          t.typnamespace::regnamespace, t.typname)
                                      ELSE format('p.%I', a.attname) END, ', '),
                      CASE WHEN skip_conflicts THEN ' ON CONFLICT DO NOTHING' ELSE '' END) INTO statement
        FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid
        CROSS JOIN LATERAL (SELECT t.typtype = 'd' OR t.oid IN ('json'::regtype, 'jsonb'::regtype)) AS v(cast_it)
        WHERE a.attrelid = source AND a.attname = ANY (shape) AND a.attnum > 0 AND NOT a.attisdropped
            AND a.attgenerated = '';
        PERFORM set_config('search_path', replay_late_rows.search_path, true);
        EXECUTE statement USING claimed, shape;
        GET DIAGNOSTICS inserted = ROW_COUNT;
        PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pgtrickle, pgtrickle_private, pg_temp', true);
        replayed := replayed + inserted;
    END LOOP;
    INSERT INTO pgt_calls (call, source) VALUES ('end_replay', source);
    RETURN replayed;
END
$$;
COMMENT ON FUNCTION pgtrickle.replay_late_rows(regclass, bigint[], boolean, text) IS
    'Puts rows into the source that were kept out of it: all, or those named, each once; returns how many. They keep '
    'the watermark they missed in the ledger, are '
    'not noted there again, and no watermark moves. A row that PostgreSQL refuses fails the whole call; with '
    'skip_conflicts, one that is there already is passed '
    'over, and discarded. Needs INSERT and SELECT on the source.';
