-- Rows that go to a partition. PostgreSQL puts them into transition tables as the statement has them, before it
-- generates stored columns, and MERGE once more in place of each row that it updates after that; unless the partition
-- has a BEFORE trigger for inserted rows, also one that is never called: then it puts what the partition stores there.
--
-- Rows that MERGE moves to another partition come into the transition tables of no UPDATE, but into those of a DELETE
-- and of an INSERT, for which PostgreSQL only runs triggers if the MERGE has such actions too. So while a statement
-- updates, the first row that leaves a partition and the first one that enters one are looked for in the transition
-- tables, and the text of the statement tells whether others may be there that only look like them.

CREATE OR REPLACE FUNCTION pgtrickle_private.may_move_rows(source regclass, mode text) RETURNS boolean
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT mode = 'statement' AND EXISTS (SELECT FROM pg_class AS c WHERE c.oid = source AND c.relkind = 'p')
$$;
COMMENT ON FUNCTION pgtrickle_private.may_move_rows(regclass, text) IS
    'Whether statements may move rows of the source between partitions, and it is captured by transition tables.';

-- The conditions keep PostgreSQL from calling the function: for statements always, and for rows unless some may move.
CREATE OR REPLACE FUNCTION pgtrickle_private.moving_triggers(source regclass)
    RETURNS TABLE (event text, timing text, clause text)
    LANGUAGE sql IMMUTABLE ROWS 5 SET search_path = pg_catalog, pg_temp
AS $$
    SELECT e.event, e.timing, format(e.clause, source::oid)
    FROM (VALUES
        ('inserting', 'BEFORE INSERT', $when$FOR EACH STATEMENT
            WHEN (pg_catalog.set_config('pgtrickle.inserting_%1$s', '1', true) IS NULL)$when$),
        ('moving', 'BEFORE UPDATE', $when$FOR EACH STATEMENT WHEN (pg_catalog.set_config('pgtrickle.moving_%1$s', CAST(
            1 + CAST('0' || COALESCE(pg_catalog.current_setting('pgtrickle.moving_%1$s', true), '') AS integer)
            AS text), true) IS NULL)$when$),
        ('stored', 'BEFORE INSERT', 'FOR EACH ROW WHEN (false)'),
        ('in', 'AFTER INSERT', $when$FOR EACH ROW WHEN (
            COALESCE(pg_catalog.current_setting('pgtrickle.moving_%1$s', true), '') <> ''
            AND pg_catalog.current_setting('pgtrickle.inserting_%1$s', true) IS DISTINCT FROM '1')$when$),
        ('out', 'AFTER DELETE', $when$FOR EACH ROW WHEN (
            pg_catalog.current_setting('pgtrickle.moving_%1$s', true) <> '')$when$)
    ) AS e(event, timing, clause)
$$;
COMMENT ON FUNCTION pgtrickle_private.moving_triggers(regclass) IS
    'Triggers that notice which statements update a partitioned table, and which rows leave and enter partitions then, '
    'and the one that has transition tables show what partitions store.';

-- Partitions may have their columns in another order. A cast to JSON could run somebody's function.
CREATE OR REPLACE FUNCTION pgtrickle_private.row_by_name(relation regclass) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT format('CAST(ROW(%s) AS text)', string_agg(format('n.%I', a.attname), ', ' ORDER BY a.attname))
    FROM pg_attribute AS a
    WHERE a.attrelid = relation AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated <> 'v'
$$;
COMMENT ON FUNCTION pgtrickle_private.row_by_name(regclass) IS
    'The text of a row n of a relation, with its columns in the order of their names.';

CREATE OR REPLACE FUNCTION pgtrickle_private.moved_function(source regclass) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT replace($template$
DECLARE
    setting CONSTANT text := format('pgtrickle.moved_%s_{source}', CASE TG_OP WHEN 'INSERT' THEN 'in' ELSE 'out' END);
    written CONSTANT text := 'SELECT %s FROM (SELECT ($1).*) AS n';
    moved text;
BEGIN
    IF TG_LEVEL = 'ROW' AND COALESCE(current_setting(setting, true), '') = '' THEN
        IF TG_OP = 'INSERT' THEN
            EXECUTE format(written, pgtrickle_private.row_by_name(TG_RELID)) INTO moved USING NEW;
        ELSE
            EXECUTE format(written, pgtrickle_private.row_by_name(TG_RELID)) INTO moved USING OLD;
        END IF;
        PERFORM set_config(setting, moved, true);
    END IF;
    RETURN NULL;
END
$template$, '{source}', source::oid::text)
$$;
COMMENT ON FUNCTION pgtrickle_private.moved_function(regclass) IS
    'The body of the trigger function that keeps the first row that left a partition, and the first that entered one.';

-- What runs, as far as its text can be found: that of the client, those that functions run, which the context quotes,
-- the prepared statements and the functions in SQL that these name.
CREATE OR REPLACE FUNCTION pgtrickle_private.running_text(context text) RETURNS text
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT concat_ws(E'\n', t.running,
        (SELECT string_agg(s.statement, E'\n') FROM pg_prepared_statements AS s
         WHERE s.from_sql AND position(lower(s.name) IN lower(t.running)) > 0),
        (SELECT string_agg(COALESCE(pg_get_function_sqlbody(p.oid), p.prosrc), E'\n') FROM pg_proc AS p
         WHERE p.prolang = (SELECT l.oid FROM pg_language AS l WHERE l.lanname = 'sql')
             AND p.pronamespace <> CAST('pg_catalog' AS regnamespace)
             AND position(lower(p.proname) IN lower(t.running)) > 0))
    FROM (SELECT concat_ws(E'\n', current_query(), running_text.context)) AS t(running)
$$;
COMMENT ON FUNCTION pgtrickle_private.running_text(text) IS
    'The text of what runs in this session, given the context that a trigger function has.';

-- The commands of one statement share its triggers, so that one whose moves are seen would speak for a MERGE whose are
-- not. A row that a MERGE does not move may look like one that it does. A statement whose text is not found may be one.
DROP FUNCTION IF EXISTS pgtrickle_private.may_move_unseen(text);
CREATE OR REPLACE FUNCTION pgtrickle_private.may_move_unseen(context text, seen_apart boolean) RETURNS boolean
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET standard_conforming_strings = on
AS $$
    SELECT CASE
        WHEN t.running ~* '\mmerge\M'
            THEN NOT seen_apart OR t.running ~* '\mwith\M' OR t.running !~* '\mthen\s+delete\M'
        ELSE t.running !~* '\mupdate\M' END
    FROM running_text(context) AS t(running)
$$;
COMMENT ON FUNCTION pgtrickle_private.may_move_unseen(text, boolean) IS
    'Whether a statement that moved rows may have done so by MERGE without any transition table showing it; seen_apart '
    'says that those of a DELETE and of an INSERT were shown.';

-- A statement that names a partition without partitions moves nothing.
CREATE OR REPLACE FUNCTION pgtrickle_private.moved_guard(source regclass) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT replace(replace($template$IF TG_RELID IN ({divided}) THEN
        DECLARE
            moved_out CONSTANT text := COALESCE(current_setting('pgtrickle.moved_out_{source}', true), '');
            moved_in CONSTANT text := COALESCE(current_setting('pgtrickle.moved_in_{source}', true), '');
            moved_by text := COALESCE(current_setting('pgtrickle.moved_by_{source}', true), '');
            look CONSTANT text := 'SELECT EXISTS (SELECT FROM %s AS n WHERE %s = $1)';
            inserting CONSTANT boolean := COALESCE(current_setting('pgtrickle.inserting_{source}', true), '') = '1';
            found_out boolean := moved_out = '';
            found_in boolean := moved_in = '' OR inserting;
            context text;
        BEGIN
            IF TG_OP = 'INSERT' THEN
                PERFORM set_config('pgtrickle.inserting_{source}', '', true);
            ELSIF NOT found_out THEN
                EXECUTE format(look, 'pgt_old', pgtrickle_private.row_by_name(TG_RELID)) INTO found_out USING moved_out;
                IF found_out OR TG_OP = 'UPDATE' THEN
                    PERFORM set_config('pgtrickle.moved_out_{source}', '', true);
                    moved_by := TG_OP;
                    PERFORM set_config('pgtrickle.moved_by_{source}', moved_by, true);
                END IF;
            END IF;
            IF TG_OP = 'UPDATE' THEN
                -- A statement may have reset all settings.
                PERFORM set_config('pgtrickle.moving_{source}', COALESCE(CAST(NULLIF(greatest(
                    CAST('0' || current_setting('pgtrickle.moving_{source}', true) AS integer) - 1, 0), 0) AS text),
                    ''), true);
                IF NOT found_in THEN
                    EXECUTE format(look, 'pgt_new', pgtrickle_private.row_by_name(TG_RELID))
                        INTO found_in USING moved_in;
                    PERFORM set_config('pgtrickle.moved_in_{source}', '', true);
                END IF;
                IF moved_by <> '' THEN
                    PERFORM set_config('pgtrickle.moved_by_{source}', '', true);
                    -- Else none came in, so those that left were deleted.
                    IF inserting OR moved_in <> '' THEN
                        GET DIAGNOSTICS context = PG_CONTEXT;
                        found_out := found_out AND NOT pgtrickle_private.may_move_unseen(context,
                            inserting AND moved_by = 'DELETE');
                    END IF;
                END IF;
                IF NOT (found_out AND found_in) THEN
                    PERFORM pgtrickle_private.note_capture_gap({source}, TG_RELID,
                        'had rows moved between its partitions by MERGE');
                END IF;
            END IF;
        END;
    END IF;
    $template$, '{source}', source::oid::text), '{divided}', (
        SELECT string_agg(c.oid::text, ', ' ORDER BY c.oid) FROM pg_class AS c
        WHERE c.oid = ANY (pgtrickle_private.capture_relations(source)) AND c.relkind = 'p'))
$$;
COMMENT ON FUNCTION pgtrickle_private.moved_guard(regclass) IS
    'The statement by which a capture function notes a gap where rows were moved that its transition tables lack.';
