-- Run at every install: refuses what pytrickle cannot live with before anything else is touched.
DO $$
BEGIN
    IF current_setting('server_version_num')::integer < 150000 THEN
        RAISE EXCEPTION 'pytrickle needs PostgreSQL 15 or newer, this server is %', current_setting('server_version')
            USING ERRCODE = '0A000', CONSTRAINT = 'server_too_old',
                  HINT = 'Upgrade the server, or install into a newer one.';
    END IF;
    IF EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'pg_trickle') THEN
        RAISE EXCEPTION 'the extension pg_trickle is installed in this database and owns the same names'
            USING ERRCODE = '55000', CONSTRAINT = 'pg_trickle_installed',
                  HINT = 'Use another database, or DROP EXTENSION pg_trickle first.';
    END IF;
END
$$;
