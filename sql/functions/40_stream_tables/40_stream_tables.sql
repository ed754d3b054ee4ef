-- Creating stream tables: what is noted of the query, and its sources.

-- Functions of the user may name things without a schema. pg_catalog stays first, where nothing can shadow it.
CREATE OR REPLACE FUNCTION pgtrickle_private.resolved_search_path(search_path text) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET quote_all_identifiers = off
AS $$
DECLARE
    schemas name[];
BEGIN
    PERFORM set_config('search_path', search_path, true);
    schemas := pg_catalog.current_schemas(false);
    PERFORM pg_catalog.set_config('search_path', 'pg_catalog, pgtrickle, pgtrickle_private, pg_temp', true);
    RETURN (SELECT string_agg(quote_ident(schema), ', ' ORDER BY position)
            FROM (SELECT 'pg_catalog'::name, 0
                  UNION ALL SELECT s.schema, s.position FROM unnest(schemas) WITH ORDINALITY AS s(schema, position)
                  WHERE s.schema NOT IN ('pg_catalog', 'pg_temp')) AS path(schema, position));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.resolved_search_path(text) IS
    'The schemas that a search_path means now, as a search_path that starts with pg_catalog.';

-- Money is written and read by a locale, and nobody knows what a function of users goes by.
CREATE OR REPLACE FUNCTION pgtrickle_private.goes_by_locale(view regclass) RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN EXISTS (SELECT FROM query_functions(view) AS f JOIN pg_proc AS p ON p.oid = f
                   WHERE p.oid >= 16384 OR p.proname ~ '^to_(char|number|date|timestamp)$|tsvector|tsquery|^ts_')
        OR EXISTS (SELECT FROM types_used(view) AS t(id) WHERE t.id IN ('money'::regtype, 'money[]'::regtype));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.goes_by_locale(regclass) IS
    'Whether the result of a view may depend on a locale or on the default text search configuration of the session.';

-- A locale or a text search configuration may not be there where a dump is restored: it is kept only where it matters.
DROP FUNCTION IF EXISTS pgtrickle_private.session_settings();
CREATE OR REPLACE FUNCTION pgtrickle_private.session_settings(view regclass) RETURNS jsonb
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT jsonb_object_agg(name,
        CASE name WHEN 'DateStyle' THEN 'ISO, ' || split_part(setting, ', ', 2) ELSE setting END)
    FROM pg_settings
    WHERE name IN ('TimeZone', 'DateStyle', 'IntervalStyle', 'array_nulls', 'xmlbinary', 'xmloption')
        OR name IN ('lc_monetary', 'lc_numeric', 'lc_time', 'default_text_search_config') AND goes_by_locale(view)
        OR name = 'timezone_abbreviations' AND (setting, reset_val) <> ('Default', 'Default')
$$;
COMMENT ON FUNCTION pgtrickle_private.session_settings(regclass) IS
    'Settings of this session that change what the query of a view means.';

-- A catalog that is upgraded pins from now on what it did not pin. Nobody knows what the creators had set; what the
-- database gives now is what the next refresh would have gone by.
UPDATE pgtrickle.pgt_stream_tables AS t SET session_settings = s.settings
FROM (SELECT k.pgt_id, pgtrickle_private.session_settings(k.view_relid) || k.session_settings AS settings
      FROM pgtrickle.pgt_stream_tables AS k) AS s
WHERE s.pgt_id = t.pgt_id AND s.settings <> t.session_settings;

CREATE OR REPLACE FUNCTION pgtrickle_private.full_reason(view regclass) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN (
        SELECT COALESCE(time_dependence(view),
            string_agg(format('%s %s', s.source_relid, s.obstacle), '; ' ORDER BY s.source_relid::text))
        FROM query_sources(view) AS s WHERE s.obstacle IS NOT NULL);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.full_reason(regclass) IS
    'Why the stream table over a hidden view can only be refreshed as a whole, as far as the database knows, or NULL.';

-- What an earlier version took for independent of the clock is computed anew in every tick from now on.
UPDATE pgtrickle.pgt_stream_tables AS t
SET full_reason = pgtrickle_private.full_reason(t.view_relid), time_dependent = true
WHERE NOT t.time_dependent AND pgtrickle_private.time_dependence(t.view_relid) IS NOT NULL;

CREATE OR REPLACE FUNCTION pgtrickle_private.record_full_reason(pgt_id bigint) RETURNS void
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    UPDATE pgt_stream_tables AS t
    SET full_reason = pgtrickle_private.full_reason(t.view_relid),
        time_dependent = time_dependence(t.view_relid) IS NOT NULL
    WHERE t.pgt_id = record_full_reason.pgt_id
$$;
COMMENT ON FUNCTION pgtrickle_private.record_full_reason(bigint) IS
    'Records whether the stream table can only be refreshed as a whole now.';

CREATE OR REPLACE FUNCTION pgtrickle_private.functions_below(view regclass) RETURNS SETOF oid
    LANGUAGE plpgsql STABLE ROWS 10 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN QUERY
    WITH RECURSIVE called(classid, objid) AS (
        SELECT 'pg_rewrite'::regclass::oid, r.oid FROM views_below(view) AS b(relid)
            JOIN pg_rewrite AS r ON r.ev_class = b.relid
        UNION
        SELECT d.refclassid, d.refobjid FROM called AS c JOIN pg_depend AS d ON d.classid = c.classid
            AND d.objid = c.objid
        WHERE d.refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass))
    SELECT objid FROM called WHERE classid = 'pg_proc'::regclass;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.functions_below(regclass) IS
    'Functions of users that a view calls, also through operators, aggregates and functions that PostgreSQL has '
    'parsed.';

-- A rule carries the transaction that wrote it: CREATE OR REPLACE VIEW writes it anew. A function changes with its
-- grants too, so what it means is compared instead.
CREATE OR REPLACE FUNCTION pgtrickle_private.view_stamp(view regclass) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN md5(concat_ws('|',
        (SELECT string_agg(format('%s %s', r.oid, r.xmin), ',' ORDER BY r.oid)
         FROM views_below(view) AS b(relid) JOIN pg_rewrite AS r ON r.ev_class = b.relid),
        (SELECT string_agg(md5(format('%s %s %s %s %s %s %s %s', p.oid, p.proname, p.pronamespace, p.provolatile,
            p.prosrc, p.probin, p.prosqlbody,
                                      p.proconfig)
             || format(' %s %s %s %s %s', p.prolang, p.proisstrict, p.prosecdef, p.proargdefaults, a)), ','
                 ORDER BY p.oid)
         FROM functions_below(view) AS f(oid) JOIN pg_proc AS p USING (oid)
             LEFT JOIN pg_aggregate AS a ON a.aggfnoid = p.oid),
        labels_shown(view), found_by_name(view)));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.view_stamp(regclass) IS
    'A text that changes when the view, a view that it reads, or a function that these call is replaced, what it '
    'turns into text or JSON has other labels, or its text may mean something else.';

CREATE OR REPLACE FUNCTION pgtrickle_private.record_source(pgt_id bigint, source regclass, source_type text,
    columns text[]) RETURNS void
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    INSERT INTO pgt_dependencies AS d (pgt_id, source_relid, source_name, source_type, columns_used, captured_xid,
        captured_pos)
    SELECT pgt_id, source, qualified_name(source), source_type, columns, (c.since).xid, (c.since).pos
    FROM (SELECT CASE WHEN source_type <> 'UNCAPTURED' THEN install_capture(source, columns) END AS since) AS c
    ON CONFLICT ON CONSTRAINT pgt_dependencies_pkey DO UPDATE
    SET source_name = EXCLUDED.source_name, source_type = EXCLUDED.source_type,
        columns_used = EXCLUDED.columns_used,
        captured_xid = EXCLUDED.captured_xid, captured_pos = EXCLUDED.captured_pos;
    SELECT note_readers(source)
$$;
COMMENT ON FUNCTION pgtrickle_private.record_source(bigint, regclass, text, text[]) IS
    'Records a dependency and has its columns captured.';

CREATE OR REPLACE FUNCTION pgtrickle_private.lock_query_sources(view regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    sources regclass[];
    buffers text[];
BEGIN
    SELECT array_agg(s.source_relid), array_agg(b.buffer) FILTER (WHERE b.buffer IS NOT NULL) INTO sources, buffers
    FROM query_sources(view) AS s
        LEFT JOIN LATERAL unnest(buffers_to_extend(s.source_relid, s.columns_used)) AS b(buffer) ON true
    WHERE s.source_type <> 'UNCAPTURED';
    PERFORM lock_sources(COALESCE(sources, '{}'), 'SHARE ROW EXCLUSIVE', COALESCE(buffers, '{}'));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.lock_query_sources(regclass) IS
    'Locks, all at once, the sources of a hidden view whose changes are to be captured.';

CREATE OR REPLACE FUNCTION pgtrickle_private.record_sources(pgt_id bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    view CONSTANT regclass := (SELECT t.view_relid FROM pgt_stream_tables AS t WHERE t.pgt_id = record_sources.pgt_id);
BEGIN
    PERFORM lock_query_sources(view);
    PERFORM record_source(record_sources.pgt_id, s.source_relid, s.source_type, s.columns_used)
    FROM query_sources(view) AS s ORDER BY s.source_relid::oid;
    PERFORM refuse_access(p.code, p.message, p.hint) FROM access_problems(view) AS p ORDER BY p.message LIMIT 1;
    PERFORM check_cycle(record_sources.pgt_id);
    PERFORM number_cycles();
    UPDATE pgt_stream_tables AS t SET view_stamp = pgtrickle_private.view_stamp(view)
        WHERE t.pgt_id = record_sources.pgt_id;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.record_sources(bigint) IS
    'Records the sources of a stream table and has them captured, all locked at once. Errors as check_source_rights() '
    'has them.';

CREATE OR REPLACE FUNCTION pgtrickle_private.refuse_differential(refresh_mode text, full_reason text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF refresh_mode IN ('DIFFERENTIAL', 'DIFFERENTIAL_STRICT') AND full_reason IS NOT NULL THEN
        RAISE EXCEPTION 'the stream table cannot be refreshed differentially: %', full_reason
            USING ERRCODE = '0A000', CONSTRAINT = 'not_differentiable',
                  HINT = 'Use refresh_mode => ''AUTO'' or ''FULL''.';
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.refuse_differential(text, text) IS
    'Error 0A000 if DIFFERENTIAL is asked for where only FULL is possible.';
