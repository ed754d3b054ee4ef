-- The hidden tables of a stream table.

CREATE OR REPLACE FUNCTION pgtrickle_private.kept_beside(pgt_id bigint) RETURNS SETOF regclass
    LANGUAGE sql STABLE ROWS 1 SET search_path = pg_catalog, pg_temp
AS $$
    SELECT kept FROM unnest(ARRAY['state', 'body', 'groups0', 'groups1']) AS kind,
        to_regclass(format('pgtrickle_state.%s_%s', kind, pgt_id)) AS kept
    WHERE kept IS NOT NULL
$$;
COMMENT ON FUNCTION pgtrickle_private.kept_beside(bigint) IS
    'The tables that refreshes of a stream table keep beside it: the state of its groups, the rows below a LIMIT, and '
    'the groups within its query.';
