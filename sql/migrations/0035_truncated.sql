-- Capture functions notice what triggers write to a table that is being truncated. Run once and never edited afterwards.

-- As truncated_guard() and capture_functions() write it, so that nothing has to be computed anew after an upgrade.
DO $$
DECLARE
    capture record;
    guard text;
    next_step CONSTANT text := E'\n    IF TG_OP = ''INSERT'' THEN';
    last_step CONSTANT text := E'\n    -- TRUNCATE removes rows that an older snapshot does not see.';
BEGIN
    FOR capture IN
        SELECT pg_get_functiondef(p.oid) AS definition, k.source_relid::oid AS source
        FROM pgtrickle.pgt_change_tracking AS k
            JOIN pg_catalog.pg_proc AS p ON p.pronamespace = 'pgtrickle_changes'::regnamespace
                AND p.proname IN (format('capture_%s', k.source_relid::oid), format('capture_row_%s', k.source_relid::oid),
                    format('capture_truncate_%s', k.source_relid::oid))
        -- What another role owns is made anew when it is repaired.
        WHERE pg_catalog.pg_has_role(p.proowner, 'USAGE')
    LOOP
        guard := format('
    IF pg_trigger_depth() > 1 AND current_setting(''pgtrickle.truncated_%1$s'', true)
        = extract(epoch FROM statement_timestamp())::text THEN
        PERFORM pgtrickle_private.note_capture_gap(%1$s, TG_RELID, ''was written by a trigger while it was truncated'');
        RETURN NULL;
    END IF;', capture.source);
        EXECUTE replace(replace(capture.definition, next_step, guard || next_step), last_step, format('
    PERFORM set_config(''pgtrickle.truncated_%s'', extract(epoch FROM statement_timestamp())::text, true);',
            capture.source) || last_step);
    END LOOP;
END
$$;
