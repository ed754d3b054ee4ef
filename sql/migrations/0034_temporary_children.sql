-- Capture functions notice what a session does to temporary children of its own. Run once and never edited afterwards.

-- As temporary_guard() writes it, so that nothing has to be repaired and computed anew after an upgrade.
DO $$
DECLARE
    capture record;
    next_step CONSTANT text := E'\n    IF TG_OP = ''INSERT'' THEN';
BEGIN
    FOR capture IN
        SELECT pg_get_functiondef(p.oid) AS definition, format('
    IF TG_OP <> ''INSERT'' AND (%s) THEN
        PERFORM pgtrickle_private.note_capture_gap(%s, TG_RELID, ''was changed together with a temporary child'');
        RETURN NULL;
    END IF;',
            string_agg(format('pgtrickle_private.has_temporary_child(%L::regclass)', c.oid), ' OR ' ORDER BY c.oid),
            k.source_relid::oid) AS guard
        FROM pgtrickle.pgt_change_tracking AS k
            JOIN pg_catalog.pg_proc AS p ON p.pronamespace = 'pgtrickle_changes'::regnamespace
                AND p.proname = format('capture_%s', k.source_relid::oid)
            JOIN pg_catalog.pg_class AS c ON c.oid = ANY (k.relations) AND c.relkind = 'r' AND NOT c.relispartition
        -- What another role owns is made anew when it is repaired.
        WHERE pg_catalog.pg_has_role(p.proowner, 'USAGE')
        GROUP BY p.oid, k.source_relid
    LOOP
        EXECUTE replace(capture.definition, next_step, capture.guard || next_step);
    END LOOP;
END
$$;
