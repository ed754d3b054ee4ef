-- As which role each relation below a query is read, and whether that role may read it and sees every row of it.

CREATE OR REPLACE FUNCTION pgtrickle.reads_as_invoker(view oid) RETURNS boolean
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
    SELECT EXISTS (
        SELECT FROM pg_class AS c CROSS JOIN LATERAL pg_options_to_table(c.reloptions) AS o
        WHERE c.oid = view AND o.option_name = 'security_invoker' AND o.option_value::boolean)
$$;
COMMENT ON FUNCTION pgtrickle.reads_as_invoker(oid) IS
    'Whether a view reads as whoever queries it (security_invoker), not as its owner.';

-- A security_invoker view within a view of somebody else still reads as whoever asked first. That is who refreshes, and
-- the owner of the hidden view, whom the stream table belongs to: a superuser who refreshes widens nothing.
-- What is captured is read by the refresh itself, whatever views stand between.
CREATE OR REPLACE FUNCTION pgtrickle.relations_read(view regclass)
    RETURNS TABLE (relid oid, reader oid, through oid, columns text[])
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
    WITH asking AS (
        SELECT current_user::regrole::oid AS reader UNION SELECT c.relowner FROM pg_class AS c WHERE c.oid = view),
    named AS MATERIALIZED (
        SELECT n.*, n.named_by <> view AND NOT reads_as_invoker(n.named_by) AS as_owner, ARRAY(
            SELECT a.attname::text FROM pg_attribute AS a
            WHERE a.attrelid = n.relid AND a.attnum > 0 AND NOT a.attisdropped AND (n.whole_row OR EXISTS (
                SELECT FROM pg_rewrite AS r JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
                WHERE r.ev_class = n.named_by AND d.refclassid = 'pg_class'::regclass
                    AND d.refobjid = n.relid AND d.refobjsubid = a.attnum))) AS columns
        FROM relations_named(view) AS n)
    SELECT n.relid, c.relowner, n.named_by, n.columns FROM named AS n JOIN pg_class AS c ON c.oid = n.named_by WHERE n.as_owner
    UNION ALL
    SELECT n.relid, a.reader, NULL, n.columns FROM named AS n CROSS JOIN asking AS a WHERE NOT n.as_owner
    UNION ALL
    SELECT s.source_relid, a.reader, NULL, s.columns_used FROM query_sources(view) AS s CROSS JOIN asking AS a
    WHERE s.source_type <> 'UNCAPTURED' AND EXISTS (SELECT FROM named AS n WHERE n.as_owner)
$$;
COMMENT ON FUNCTION pgtrickle.relations_read(regclass) IS
    'Every reading below a hidden view: the relation, the role as which it is read, the view that has it read as its owner '
    '(NULL: it is read as whoever refreshes, or owns the stream table), and the columns.';

CREATE OR REPLACE FUNCTION pgtrickle.may_read(reader oid, relation oid, columns text[]) RETURNS boolean
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
    SELECT has_table_privilege(reader, relation, 'SELECT') OR (
        has_any_column_privilege(reader, relation, 'SELECT')
        AND (SELECT bool_and(has_column_privilege(reader, relation, name, 'SELECT')) FROM unnest(columns) AS name) IS NOT FALSE)
$$;
COMMENT ON FUNCTION pgtrickle.may_read(oid, oid, text[]) IS 'Whether a role may read these columns of a relation.';

-- The rule of PostgreSQL (check_enable_rls), for a role that is not the current one. Policies of partitions and of children
-- do not count where their parent is read.
CREATE OR REPLACE FUNCTION pgtrickle.policies_apply(reader oid, relation oid) RETURNS boolean
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
    SELECT c.relrowsecurity AND NOT r.rolsuper AND NOT r.rolbypassrls
        AND (c.relforcerowsecurity OR NOT pg_has_role(r.oid, c.relowner, 'USAGE'))
    FROM pg_class AS c CROSS JOIN pg_roles AS r WHERE c.oid = relation AND r.oid = reader
$$;
COMMENT ON FUNCTION pgtrickle.policies_apply(oid, oid) IS
    'Whether row-level security decides which rows of a relation a role sees.';

CREATE OR REPLACE FUNCTION pgtrickle.access_problems(view regclass) RETURNS TABLE (code text, message text, hint text)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
BEGIN
    RETURN QUERY
    WITH readings AS MATERIALIZED (
        SELECT r.relid, r.reader, r.columns, r.through IS NOT NULL AS by_view,
               qualified_name(r.relid) AS relation, r.reader::regrole::text AS role,
               CASE WHEN r.through IS NOT NULL THEN format(', which the view %s reads as %s', qualified_name(r.through), r.reader::regrole)
                    WHEN r.reader <> current_user::regrole THEN format(', which the stream table reads as %s', r.reader::regrole) END AS whence
        FROM relations_read(view) AS r)
    SELECT '42501', format('permission denied for %s%s', r.relation, r.whence), format('GRANT SELECT ON %s TO %s.', r.relation, r.role)
    FROM readings AS r WHERE NOT may_read(r.reader, r.relid, r.columns)
    UNION
    SELECT '0A000', format('row-level security filters what %s sees of %s%s', r.role, r.relation, r.whence),
           CASE WHEN r.by_view
               THEN 'Everybody who may read a stream table sees the same rows: give the view to an owner to whom the policies do not apply, '
                    || 'or write their conditions into the query and read the table itself.'
               ELSE 'Create and refresh the stream table as a role that the policies do not apply to.' END
    FROM readings AS r WHERE policies_apply(r.reader, r.relid);
END
$$;
COMMENT ON FUNCTION pgtrickle.access_problems(regclass) IS
    'Why a stream table over a hidden view must not be refreshed: relations that the role as which they are read may not read (42501), '
    'or of which row-level security hides rows from it (0A000).';

CREATE OR REPLACE FUNCTION pgtrickle.refuse_access(code text, message text, hint text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION USING MESSAGE = message, ERRCODE = code, HINT = hint,
        CONSTRAINT = CASE code WHEN '42501' THEN 'insufficient_privilege' ELSE 'query_refused' END;
END
$$;
COMMENT ON FUNCTION pgtrickle.refuse_access(text, text, text) IS 'Raises a problem that access_problems() found.';

-- Policies of partitions and children are told too: who could not read those directly may read the stream table.
CREATE OR REPLACE FUNCTION pgtrickle.tell_of_policies(p_pgt_id integer) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
DECLARE
    secured text;
    stream_table text;
BEGIN
    SELECT qualified_name(t.pgt_relid), string_agg(DISTINCT qualified_name(c.oid), ', ' ORDER BY qualified_name(c.oid)) INTO stream_table, secured
    FROM pgt_stream_tables AS t
    CROSS JOIN LATERAL relations_named(t.view_relid) AS n
    JOIN pg_class AS c ON c.relrowsecurity AND (c.oid = n.relid OR c.oid = ANY (capture_relations(n.relid)))
    WHERE t.pgt_id = p_pgt_id
    GROUP BY t.pgt_relid;
    IF secured IS NOT NULL THEN
        RAISE NOTICE 'the stream table % does not carry the row-level security of %: whoever may read it sees all of its rows', stream_table, secured
            USING CONSTRAINT = 'policies_not_carried',
                  HINT = format('Grant SELECT on it with care, or give it policies of its own: ALTER TABLE %s ENABLE ROW LEVEL SECURITY.', stream_table);
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle.tell_of_policies(integer) IS
    'Says, as a notice, that a stream table has no policies of its own where a table below it has some.';
