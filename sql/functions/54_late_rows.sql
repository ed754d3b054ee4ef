-- The late ledger: listing it, and putting rows into the source that were kept out.

-- With row security on, who may select need not see all rows; the ledger has no policies.
CREATE OR REPLACE FUNCTION pgtrickle.caller_reads_all(relation regclass) RETURNS boolean
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
    SELECT COALESCE((
        SELECT has_table_privilege(r.oid, c.oid, 'SELECT')
            AND (NOT c.relrowsecurity OR r.rolsuper OR r.rolbypassrls OR pg_has_role(r.oid, c.relowner, 'USAGE') AND NOT c.relforcerowsecurity)
        FROM pg_class AS c, pg_roles AS r WHERE c.oid = relation AND r.rolname = calling_role()), false)
$$;
COMMENT ON FUNCTION pgtrickle.caller_reads_all(regclass) IS 'Whether the caller may read a relation, and no policy hides rows of it.';

CREATE OR REPLACE FUNCTION pgtrickle.check_reads_all(source regclass, action text) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
BEGIN
    IF NOT caller_reads_all(source) THEN
        RAISE EXCEPTION 'permission denied to % %', action, source
            USING ERRCODE = '42501', CONSTRAINT = 'insufficient_privilege',
                  HINT = format('GRANT SELECT ON %s TO %I; with row security on, only who bypasses it sees what came late.', qualified_name(source), calling_role());
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle.check_reads_all(regclass, text) IS 'Error 42501 for a caller who may not read every row of the source.';

-- Infinite times are at no distance from others.
CREATE OR REPLACE FUNCTION pgtrickle.distance(later timestamptz, earlier timestamptz) RETURNS interval
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
    SELECT CASE WHEN isfinite(later) AND isfinite(earlier) THEN later - earlier END
$$;
COMMENT ON FUNCTION pgtrickle.distance(timestamptz, timestamptz) IS 'How much later one time is than another; NULL where one is infinite.';

CREATE OR REPLACE FUNCTION pgtrickle.late_rows(only_source regclass DEFAULT NULL, only_status text DEFAULT NULL, max_rows integer DEFAULT 20)
    RETURNS TABLE (late_id bigint, source text, event_time timestamptz, watermark timestamptz, lag interval, row_data jsonb,
                   arrived_at timestamptz, arrived_by text, status text, settled_at timestamptz, settled_by text)
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
BEGIN
    IF only_source IS NOT NULL THEN
        PERFORM check_reads_all(only_source, 'list late rows of');
    END IF;
    IF only_status IS NOT NULL THEN
        PERFORM check_choice('only_status', only_status, 'loaded', 'kept_out', 'replayed', 'discarded');
    END IF;
    RETURN QUERY
    SELECT l.late_id, qualified_name(l.source_relid), l.event_time, l.watermark, distance(l.watermark, l.event_time), l.row_data,
           l.arrived_at, l.arrived_by, l.status, l.settled_at, l.settled_by
    FROM pgt_late_rows AS l
    WHERE (only_source IS NULL OR l.source_relid = only_source) AND (only_status IS NULL OR l.status = only_status)
        AND l.source_relid = ANY (ARRAY(
            SELECT s.source_relid FROM (SELECT DISTINCT d.source_relid FROM pgt_late_rows AS d WHERE only_source IS NULL OR d.source_relid = only_source) AS s
            WHERE caller_reads_all(s.source_relid)))
    ORDER BY l.late_id DESC LIMIT max_rows;
END
$$;
COMMENT ON FUNCTION pgtrickle.late_rows(regclass, text, integer) IS
    'Rows that came below the watermark in force, newest first: of one source or of all that the caller may read, in one status or in any. loaded: it is in the '
    'source, and in stream tables; kept_out: it is later than the source''s limit and waits here; replayed, discarded: it was kept out before.';

-- Locked in one order, so that concurrent calls wait for each other and share the rows out.
CREATE OR REPLACE FUNCTION pgtrickle.settle_late_rows(source regclass, late_ids bigint[], status text) RETURNS SETOF jsonb
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
    WITH wanted AS (
        SELECT l.late_id FROM pgt_late_rows AS l
        WHERE l.source_relid = source AND l.status = 'kept_out' AND (late_ids IS NULL OR l.late_id = ANY (late_ids))
        ORDER BY l.late_id FOR UPDATE
    ), settled AS (
        UPDATE pgt_late_rows AS l SET status = settle_late_rows.status, settled_at = clock_timestamp(), settled_by = session_user
        FROM wanted WHERE l.late_id = wanted.late_id RETURNING l.late_id, l.row_data)
    SELECT row_data FROM settled ORDER BY late_id
$$;
COMMENT ON FUNCTION pgtrickle.settle_late_rows(regclass, bigint[], text) IS
    'Gives rows that were kept out another status, and returns them.';

CREATE OR REPLACE FUNCTION pgtrickle.check_replay(source regclass, action text) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
BEGIN
    PERFORM check_loader(source, action);
    PERFORM check_reads_all(source, action);
END
$$;
COMMENT ON FUNCTION pgtrickle.check_replay(regclass, text) IS 'Refuses what is for those only who may insert into the source and read all of it.';

CREATE OR REPLACE FUNCTION pgtrickle.discard_late_rows(source regclass, late_ids bigint[]) RETURNS bigint
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
BEGIN
    PERFORM check_replay(source, 'discard late rows of');
    IF late_ids IS NULL THEN
        PERFORM refuse_value('late_ids', NULL, 'Name the rows: late_rows() has their late_id.');
    END IF;
    RETURN (SELECT count(*) FROM settle_late_rows(source, late_ids, 'discarded'));
END
$$;
COMMENT ON FUNCTION pgtrickle.discard_late_rows(regclass, bigint[]) IS
    'Says of these rows that were kept out of the source that they are not wanted; returns how many that changed. Needs INSERT and SELECT on the source.';

CREATE OR REPLACE FUNCTION pgtrickle.claim_late_rows(source regclass, late_ids bigint[] DEFAULT NULL) RETURNS SETOF jsonb
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
DECLARE
    claimed jsonb[];
    lost text;
BEGIN
    PERFORM check_replay(source, 'replay late rows of');
    claimed := ARRAY(SELECT settle_late_rows(source, late_ids, 'replayed'));
    SELECT v.key INTO lost FROM unnest(claimed) AS c CROSS JOIN LATERAL jsonb_each_text(c) AS v
    WHERE v.value IS NOT NULL AND NOT EXISTS (
        SELECT FROM pg_attribute AS a
        WHERE a.attrelid = source AND a.attname = v.key AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '')
    LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION '% no longer has column %, for which late rows have values', source, quote_ident(lost)
            USING ERRCODE = '42703', CONSTRAINT = 'invalid_argument',
                  HINT = 'Nothing was replayed. Give the column its name back, or insert the rows by hand and discard them here.';
    END IF;
    RETURN QUERY SELECT unnest(claimed);
END
$$;
COMMENT ON FUNCTION pgtrickle.claim_late_rows(regclass, bigint[]) IS
    'The inner part of replay_late_rows(): marks rows replayed and returns them. Needs INSERT and SELECT on the source.';

-- The rights are the caller's: triggers, defaults and policies of the table run as for any INSERT of theirs. json and
-- domains are cast, because to jsonb_populate_record a JSON string is a value of json as it stands.
CREATE OR REPLACE FUNCTION pgtrickle.replay_late_rows(
        source regclass, late_ids bigint[] DEFAULT NULL, skip_conflicts boolean DEFAULT false, search_path text DEFAULT current_setting('search_path'))
    RETURNS bigint
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pg_temp SET lc_monetary = 'C'
AS $$
DECLARE
    claimed CONSTANT jsonb[] := ARRAY(SELECT claim_late_rows(source, late_ids));
    template CONSTANT text := 'INSERT INTO %1$s (%2$s) OVERRIDING SYSTEM VALUE SELECT %3$s FROM pg_catalog.unnest($1) WITH ORDINALITY AS r(data, place), '
        'LATERAL pg_catalog.jsonb_populate_record(NULL::%1$s, r.data) AS p '
        'WHERE ARRAY(SELECT pg_catalog.jsonb_object_keys(r.data)) OPERATOR(pg_catalog.=) $2 ORDER BY r.place%4$s';
    shape text[];
    statement text;
    inserted bigint;
    replayed bigint := 0;
BEGIN
    -- Rows that came before and after a column was added: those without it get its default.
    FOR shape IN SELECT DISTINCT ARRAY(SELECT jsonb_object_keys(c)) FROM unnest(claimed) AS c LOOP
        SELECT format(template, source, string_agg(quote_ident(a.attname), ', '),
                      string_agg(CASE WHEN v.cast_it THEN format('(r.data OPERATOR(pg_catalog.->>) %L)::%s', a.attname, format_type(a.atttypid, a.atttypmod))
                                      ELSE format('p.%I', a.attname) END, ', '),
                      CASE WHEN skip_conflicts THEN ' ON CONFLICT DO NOTHING' ELSE '' END) INTO statement
        FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid
        CROSS JOIN LATERAL (SELECT t.typtype = 'd' OR t.oid IN ('json'::regtype, 'jsonb'::regtype)) AS v(cast_it)
        WHERE a.attrelid = source AND a.attname = ANY (shape) AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '';
        PERFORM set_config('pgtrickle.replaying', source::oid::text, true), set_config('search_path', replay_late_rows.search_path, true);
        EXECUTE statement USING claimed, shape;
        GET DIAGNOSTICS inserted = ROW_COUNT;
        PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pgtrickle, pg_temp', true), pg_catalog.set_config('pgtrickle.replaying', '', true);
        replayed := replayed + inserted;
    END LOOP;
    RETURN replayed;
END
$$;
COMMENT ON FUNCTION pgtrickle.replay_late_rows(regclass, bigint[], boolean, text) IS
    'Puts rows into the source that were kept out of it: all, or those named, each once; returns how many. They keep the watermark they missed in the ledger, are '
    'not noted there again, and no watermark moves. A row that PostgreSQL refuses fails the whole call; with skip_conflicts, one that is there already is passed '
    'over. Needs INSERT and SELECT on the source.';
