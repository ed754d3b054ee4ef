-- As which role each relation below a query is read, and whether that role may read it and sees every row of it.

-- A security_invoker view within a view of somebody else still reads as whoever asked first. That is who refreshes, and
-- the owner of the hidden view, whom the stream table belongs to: a superuser who refreshes widens nothing.
-- What is captured is read by the refresh itself, whatever views stand between.
CREATE OR REPLACE FUNCTION pgtrickle_private.relations_read(view regclass)
    RETURNS TABLE (relid oid, reader oid, through oid, named_by oid, whole_row boolean)
    LANGUAGE plpgsql STABLE ROWS 10 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN QUERY
    WITH asking AS MATERIALIZED (
        SELECT r.oid AS role FROM pg_roles AS r WHERE r.rolname = current_user
        UNION SELECT c.relowner FROM pg_class AS c WHERE c.oid = view),
    named AS MATERIALIZED (
        SELECT n.relid AS id, n.named_by AS by_view, n.whole_row AS whole, c.relowner AS view_owner, n.named_by <> view
            AND NOT EXISTS (
            SELECT FROM pg_options_to_table(c.reloptions) AS o WHERE o.option_name = 'security_invoker'
                AND o.option_value::boolean) AS as_owner
        FROM relations_named(view) AS n JOIN pg_class AS c ON c.oid = n.named_by)
    SELECT n.id, n.view_owner, n.by_view, n.by_view, n.whole FROM named AS n WHERE n.as_owner
    UNION ALL
    SELECT n.id, a.role, NULL, n.by_view, n.whole FROM named AS n CROSS JOIN asking AS a WHERE NOT n.as_owner
    UNION ALL
    SELECT n.id, a.role, NULL, n.by_view, n.whole
    FROM named AS n CROSS JOIN asking AS a
    JOIN pgt_dependencies AS d ON d.source_relid = n.id AND d.source_type <> 'UNCAPTURED'
    JOIN pgt_stream_tables AS t ON t.pgt_id = d.pgt_id AND t.view_relid = view
    WHERE n.as_owner;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.relations_read(regclass) IS
    'Every reading below a hidden view: the relation, the role as which it is read, the view that has it read as its '
    'owner '
    '(NULL: it is read as whoever refreshes, or owns the stream table), the view that names it, and whether a whole '
    'row is used there.';

CREATE OR REPLACE FUNCTION pgtrickle_private.may_read_columns(reader oid, relation oid, named_by oid, whole_row boolean)
    RETURNS boolean
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT has_any_column_privilege(reader, relation, 'SELECT') AND NOT EXISTS (
        SELECT FROM pg_attribute AS a
        WHERE a.attrelid = relation AND a.attnum > 0 AND NOT a.attisdropped
            AND NOT has_column_privilege(reader, relation, a.attnum, 'SELECT')
            AND (whole_row OR EXISTS (
                SELECT FROM pg_rewrite AS r JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass
                    AND d.objid = r.oid
                WHERE r.ev_class = named_by AND d.refclassid = 'pg_class'::regclass AND d.refobjid = relation
                    AND d.refobjsubid = a.attnum)))
$$;
COMMENT ON FUNCTION pgtrickle_private.may_read_columns(oid, oid, oid, boolean) IS
    'Whether a role may read those columns of a relation that a view uses, or any if it uses none.';

-- Policies apply by the rule of PostgreSQL (check_enable_rls). Those of partitions and of children do not count where
-- their parent is read.
CREATE OR REPLACE FUNCTION pgtrickle_private.access_problems(view regclass)
    RETURNS TABLE (code text, message text, hint text)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN QUERY
    WITH judged AS MATERIALIZED (
        SELECT r.relid, r.through, o.rolname,
               NOT has_table_privilege(r.reader, r.relid, 'SELECT')
                   AND NOT may_read_columns(r.reader, r.relid, r.named_by, r.whole_row) AS unreadable,
               c.relrowsecurity AND NOT o.rolsuper AND NOT o.rolbypassrls
                   AND (c.relforcerowsecurity OR NOT pg_has_role(r.reader, c.relowner, 'USAGE')) AS filtered
        FROM relations_read(view) AS r JOIN pg_class AS c ON c.oid = r.relid JOIN pg_roles AS o ON o.oid = r.reader),
    told AS (
        SELECT j.unreadable, j.filtered, j.through IS NOT NULL AS by_view, qualified_name(j.relid) AS relation,
            quote_ident(j.rolname) AS role,
               CASE WHEN j.through IS NOT NULL
                   THEN format(', which the view %s reads as %I', qualified_name(j.through), j.rolname)
                    WHEN j.rolname <> current_user THEN format(', which the stream table reads as %I', j.rolname)
                        END AS whence
        FROM judged AS j WHERE j.unreadable OR j.filtered)
    SELECT '42501', format('permission denied for %s%s', t.relation, t.whence),
        format('GRANT SELECT ON %s TO %s.', t.relation, t.role)
    FROM told AS t WHERE t.unreadable
    UNION
    SELECT '0A000', format('row-level security filters what %s sees of %s%s', t.role, t.relation, t.whence),
           CASE WHEN t.by_view
               THEN 'Everybody who may read a stream table sees the same rows: give the view to an owner to whom the '
                   'policies do not apply, '
                    || 'or write their conditions into the query and read the table itself.'
               ELSE 'Create and refresh the stream table as a role that the policies do not apply to.' END
    FROM told AS t WHERE t.filtered;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.access_problems(regclass) IS
    'Why a stream table over a hidden view must not be refreshed: relations that the role as which they are read may '
    'not read (42501), '
    'or of which row-level security hides rows from it (0A000).';

CREATE OR REPLACE FUNCTION pgtrickle_private.refuse_access(code text, message text, hint text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION USING MESSAGE = message, ERRCODE = code, HINT = hint,
        CONSTRAINT = CASE code WHEN '42501' THEN 'insufficient_privilege' ELSE 'query_refused' END;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.refuse_access(text, text, text) IS
    'Raises a problem that access_problems() found.';

-- Policies of partitions and children are told too: who could not read those directly may read the stream table.
CREATE OR REPLACE FUNCTION pgtrickle_private.tell_of_policies(p_pgt_id bigint) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    secured text;
    stream_table text;
BEGIN
    SELECT qualified_name(t.pgt_relid),
        string_agg(DISTINCT qualified_name(c.oid), ', ' ORDER BY qualified_name(c.oid)) INTO stream_table, secured
    FROM pgt_stream_tables AS t
    CROSS JOIN LATERAL relations_named(t.view_relid) AS n
    JOIN pg_class AS c ON c.relrowsecurity AND (c.oid = n.relid OR c.oid = ANY (capture_relations(n.relid)))
    WHERE t.pgt_id = p_pgt_id
    GROUP BY t.pgt_relid;
    IF secured IS NOT NULL THEN
        RAISE NOTICE 'the stream table % does not carry the row-level security of %: whoever may read it sees all of '
            'its rows', stream_table, secured
            USING CONSTRAINT = 'policies_not_carried',
                  HINT = format('Grant SELECT on it with care, or give it policies of its own: ALTER TABLE %s ENABLE '
                      'ROW LEVEL SECURITY.', stream_table);
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.tell_of_policies(bigint) IS
    'Says, as a notice, that a stream table has no policies of its own where a table below it has some.';
