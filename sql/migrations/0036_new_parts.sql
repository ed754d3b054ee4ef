-- Capture functions notice partitions and children that are new. Run once and never edited afterwards.

-- As new_part_guard() writes it, so that nothing has to be repaired and computed anew after an upgrade.
DO $$
DECLARE
    capture record;
    next_step CONSTANT text := E'\n    IF pg_trigger_depth() > 1 AND current_setting(';
BEGIN
    FOR capture IN
        SELECT pg_get_functiondef(p.oid) AS definition, format('
    IF %s THEN
        PERFORM pgtrickle_private.note_capture_gap(%s, TG_RELID, ''was changed together with a new part'');
        RETURN NULL;
    END IF;',
            string_agg(format('pgtrickle_private.has_new_part(%L::regclass, %s)', c.oid, k.source_relid::oid), ' OR '
                ORDER BY c.oid), k.source_relid::oid) AS guard
        FROM pgtrickle.pgt_change_tracking AS k
            JOIN pg_catalog.pg_proc AS p ON p.pronamespace = 'pgtrickle_changes'::regnamespace
                AND p.proname IN (format('capture_%s', k.source_relid::oid),
                    format('capture_row_%s', k.source_relid::oid))
            JOIN pg_catalog.pg_class AS c ON c.oid = ANY (k.relations) AND (c.relkind = 'p' OR NOT c.relispartition)
        -- What another role owns is made anew when it is repaired.
        WHERE pg_catalog.pg_has_role(p.proowner, 'USAGE')
        GROUP BY p.oid, k.source_relid
    LOOP
        EXECUTE replace(capture.definition, next_step, capture.guard || next_step);
    END LOOP;
END
$$;
