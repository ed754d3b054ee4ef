-- What an upgrade could not do to objects of other roles: each of them does it, or has it done, later.

-- An upgrade left them for trigger functions that it could not write.
CREATE OR REPLACE FUNCTION pgtrickle_private.drop_idle_copies() RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET standard_conforming_strings = on
AS $$
DECLARE
    idle regprocedure;
BEGIN
    FOR idle IN
        SELECT c.oid FROM pg_proc AS c JOIN pg_proc AS p USING (proname, proargtypes)
        WHERE c.pronamespace = 'pgtrickle'::regnamespace AND p.pronamespace = 'pgtrickle_private'::regnamespace
            AND NOT EXISTS (SELECT FROM pg_proc AS g WHERE g.pronamespace = 'pgtrickle_changes'::regnamespace
                            AND g.prosrc ~ format('\mpgtrickle\.%s\(', c.proname))
    LOOP
        EXECUTE format('DROP FUNCTION %s', idle);
    END LOOP;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.drop_idle_copies() IS
    'Drops copies of private functions that no generated trigger function calls any more.';

-- An upgrade could not alter the buffers of other roles.
CREATE OR REPLACE FUNCTION pgtrickle_private.add_change_clocks() RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    buffer regclass;
BEGIN
    FOR buffer IN
        SELECT c.oid FROM pgt_change_tracking AS k JOIN pg_class AS c ON c.oid = to_regclass(k.buffer)
        WHERE pg_has_role(c.relowner, 'USAGE') AND NOT EXISTS (
            SELECT FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attname = 'pgt_at' AND NOT a.attisdropped)
    LOOP
        EXECUTE format('ALTER TABLE %s ADD COLUMN pgt_at timestamptz', buffer);
        EXECUTE format('ALTER TABLE %s ALTER COLUMN pgt_at SET DEFAULT clock_timestamp()', buffer);
    END LOOP;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.add_change_clocks() IS
    'Lets those change buffers note when changes come that do not yet.';

-- Earlier versions made them without a guard.
CREATE OR REPLACE FUNCTION pgtrickle_private.guard_kept_tables() RETURNS void
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT guard_kept(c.oid) FROM pgt_stream_tables AS s, kept_beside(s.pgt_id) AS k JOIN pg_class AS c ON c.oid = k
    WHERE pg_has_role(c.relowner, 'USAGE') AND NOT EXISTS (
        SELECT FROM pg_trigger AS g WHERE g.tgrelid = c.oid AND g.tgname = 'pgtrickle_guard')
$$;
COMMENT ON FUNCTION pgtrickle_private.guard_kept_tables() IS
    'Guards what is kept beside stream tables and is not guarded yet.';

-- Earlier versions let a subscription that brings the whole database fill them.
CREATE OR REPLACE FUNCTION pgtrickle_private.keep_all_copies_out() RETURNS void
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT keep_copies_out(c.oid) FROM (
        SELECT to_regclass(k.buffer) FROM pgt_change_tracking AS k
        UNION ALL SELECT b FROM pgt_stream_tables AS s, kept_beside(s.pgt_id) AS b) AS made(relation)
    JOIN pg_class AS c ON c.oid = made.relation
    WHERE pg_has_role(c.relowner, 'USAGE') AND NOT EXISTS (
        SELECT FROM pg_trigger AS g WHERE g.tgrelid = c.oid AND g.tgname = 'pgtrickle_copied')
$$;
COMMENT ON FUNCTION pgtrickle_private.keep_all_copies_out() IS
    'Does what keep_copies_out() does for what was made before there was that.';

-- Earlier versions captured the same by functions that differ as this says. What they wrote otherwise, of partitioned
-- tables and of generated columns, is computed anew.
CREATE OR REPLACE FUNCTION pgtrickle_private.former_capture_body(body text) RETURNS text
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
        SET standard_conforming_strings = on
AS $$
    SELECT regexp_replace(
        replace(replace(replace(replace(body,
            E'\n<<pgt>>\nDECLARE\n    pos CONSTANT', E'\nDECLARE\n    pgt_pos CONSTANT'),
            E'\n    lsn CONSTANT pg_lsn', E'\n    pgt_lsn CONSTANT pg_lsn'),
            'pg_current_xact_id(), pgt.pos, pgt.lsn', 'pg_current_xact_id(), pgt_pos, pgt_lsn'),
            $new$IN ('repeatable read', 'serializable')$new$, $old$<> 'read committed'$old$),
        '\n    BEGIN\n    (    EXECUTE [^\n]*\n)    EXCEPTION WHEN insufficient_privilege THEN\n[^\n]*\n'
            '        RETURN NULL;\n    END;\n', E'\n\\1')
$$;
COMMENT ON FUNCTION pgtrickle_private.former_capture_body(text) IS
    'The body of a capture function as earlier versions wrote it.';

CREATE OR REPLACE FUNCTION pgtrickle_private.renew_capture_functions() RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    former record;
BEGIN
    FOR former IN
        SELECT f.function_name, f.body, k.source_name
        FROM pgt_change_tracking AS k JOIN pg_class AS c ON c.oid = k.source_relid CROSS JOIN LATERAL capture_functions(
            k.source_relid, k.buffer, ARRAY(SELECT jsonb_object_keys(k.captured_columns))) AS f
        JOIN pg_proc AS p ON p.proname = f.function_name AND p.pronamespace = 'pgtrickle_changes'::regnamespace
        WHERE pg_has_role(p.proowner, 'USAGE') AND p.prosrc = former_capture_body(f.body) AND p.prosrc <> f.body
            -- Which it took for those of a change.
            AND NOT EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = k.source_relid AND NOT a.attisdropped
                            AND a.attname IN ('pgt_pos', 'pgt_lsn'))
    LOOP
        PERFORM write_trigger_function(former.function_name, former.body, 'Captures changes of ' || former.source_name,
            'SET search_path = pg_catalog, pg_temp');
    END LOOP;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.renew_capture_functions() IS
    'Writes capture functions anew that earlier versions wrote in other words.';
