-- Capture functions look up fewer schemas at every call. Run once and never edited afterwards.

DO $$
DECLARE
    capture regprocedure;
BEGIN
    FOR capture IN
        SELECT p.oid FROM pg_catalog.pg_proc AS p
        WHERE p.pronamespace = 'pgtrickle_changes'::regnamespace AND p.proname ~ '^capture_(row_|truncate_)?[0-9]+$'
            -- What another role owns is made anew when it is repaired.
            AND pg_catalog.pg_has_role(p.proowner, 'USAGE')
            -- The expression of a generated column was printed for the longer path, and may need it.
            AND p.prosrc !~ '#variable_conflict use_column\n--'
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, pg_temp', capture);
    END LOOP;
END
$$;
