-- What a refresher needs rights on: what it lacks fails one stream table, and no other.

CREATE OR REPLACE FUNCTION pgtrickle_private.hides_rows(stream_table regclass) RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN (SELECT c.relrowsecurity AND c.relforcerowsecurity FROM pg_class AS c WHERE c.oid = stream_table)
        AND NOT EXISTS (SELECT FROM pg_roles AS o WHERE o.rolname = catalog_owner() AND (o.rolsuper OR o.rolbypassrls));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.hides_rows(regclass) IS
    'Whether row-level security is forced on a stream table, so that its owner sees and changes some of its rows only.';

CREATE OR REPLACE FUNCTION pgtrickle_private.missing_right(p_pgt_id bigint, OUT sentence text, OUT remedy text)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    -- What was made for it: a refresh does with it what only an owner may.
    SELECT format('%s belongs to %I, and %I is no member of that role', c.oid::regclass, pg_get_userbyid(c.relowner),
        current_user),
           format('ALTER %s %s OWNER TO %I;', CASE c.relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END, c.oid::regclass,
               catalog_owner())
    INTO sentence, remedy
    FROM pg_class AS c
    WHERE NOT pg_has_role(c.relowner, 'USAGE') AND c.oid = ANY (ARRAY(
        SELECT unnest(ARRAY[t.pgt_relid, t.view_relid]::oid[] || ARRAY(SELECT kept_beside(p_pgt_id)::oid))
        FROM pgt_stream_tables AS t WHERE t.pgt_id = p_pgt_id
        UNION ALL SELECT to_regclass(k.buffer) FROM pgt_dependencies AS d
            JOIN pgt_change_tracking AS k USING (source_relid) WHERE d.pgt_id = p_pgt_id))
    ORDER BY c.oid LIMIT 1;
    IF sentence IS NULL THEN
        SELECT format('permission denied for %s', c.oid::regclass),
            format('GRANT SELECT ON %s TO %I;', c.oid::regclass, catalog_owner())
        INTO sentence, remedy
        FROM pgt_dependencies AS d JOIN pg_class AS c ON c.oid = d.source_relid
        WHERE d.pgt_id = p_pgt_id AND d.source_type <> 'UNCAPTURED' AND NOT has_table_privilege(c.oid, 'SELECT') AND (
            NOT has_any_column_privilege(c.oid, 'SELECT') OR EXISTS (
                SELECT FROM pg_attribute AS a
                WHERE a.attrelid = c.oid AND a.attname = ANY (d.columns_used) AND NOT a.attisdropped
                    AND NOT has_column_privilege(c.oid, a.attnum, 'SELECT')))
        ORDER BY c.oid LIMIT 1;
    END IF;
    IF sentence IS NULL THEN
        SELECT format('row-level security is forced on %s, which hides rows from its owner', t.pgt_relid),
            format('ALTER TABLE %s NO FORCE ROW LEVEL SECURITY;', t.pgt_relid)
        INTO sentence, remedy
        FROM pgt_stream_tables AS t WHERE t.pgt_id = p_pgt_id AND hides_rows(t.pgt_relid);
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.missing_right(bigint) IS
    'A right that the current role lacks to refresh a stream table, and the statement that gives it; NULL if there is '
    'none.';
