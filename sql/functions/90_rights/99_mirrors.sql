-- Stream tables of a catalog from before generated SQL found nothing but what is PostgreSQL's own.
DO $$
BEGIN
    PERFORM pgtrickle_private.mirror_equalities(t.view_relid),
        pgtrickle_private.wrap_functions(t.view_relid, t.session_settings ->> 'search_path')
    FROM pgtrickle.pgt_stream_tables AS t JOIN pg_catalog.pg_class AS c ON c.oid = t.view_relid;
END
$$;
-- Cycles of a catalog from before they were numbered.
DO $$ BEGIN PERFORM pgtrickle_private.number_cycles(); END $$;
