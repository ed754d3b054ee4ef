-- Many stream tables at once, all or none.

CREATE OR REPLACE FUNCTION pgtrickle_private.check_bulk(function regproc, objects jsonb[]) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    most CONSTANT integer := COALESCE(foreign_setting('max_bulk_api_items')::integer, 256);
    known CONSTANT text[] := (SELECT array_remove(array_remove(p.proargnames, 'search_path'), 'reset')
        FROM pg_proc AS p WHERE p.oid = function);
    stranger text;
BEGIN
    IF cardinality(objects) > most THEN
        PERFORM refuse_value('number of stream tables', cardinality(objects)::text,
            format('Use up to %s at once.', most));
    ELSIF EXISTS (SELECT FROM unnest(objects) AS o WHERE jsonb_typeof(o) <> 'object') THEN
        PERFORM refuse_value('definition', 'a value that is no object', 'Use an object of argument names and values.');
    END IF;
    SELECT k INTO stranger FROM unnest(objects) AS o CROSS JOIN jsonb_object_keys(o) AS k WHERE k <> ALL (known)
        LIMIT 1;
    IF FOUND THEN
        PERFORM refuse_value('key', stranger, format('The keys are %s.', array_to_string(known, ', ')));
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_bulk(regproc, jsonb[]) IS
    'Error 22023 unless each object has only keys that are arguments of a function, and there are not too many.';

CREATE OR REPLACE FUNCTION pgtrickle_private.check_names(names text[]) RETURNS void
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF names IS NULL THEN
        PERFORM refuse_value('list of stream tables', NULL, 'Name the stream tables; an empty list means none.');
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_names(text[]) IS
    'Error 22004 where there is no list of names.';

CREATE OR REPLACE FUNCTION pgtrickle.bulk_create(definitions jsonb,
    search_path text DEFAULT current_setting('search_path')) RETURNS jsonb
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    definition jsonb;
    made jsonb := '[]';
    given CONSTANT jsonb[] := CASE jsonb_typeof(definitions) WHEN 'array'
        THEN ARRAY(SELECT d FROM jsonb_array_elements(definitions) AS d) ELSE ARRAY['null'::jsonb] END;
BEGIN
    PERFORM check_bulk('pgtrickle.create_stream_table'::regproc, given);
    FOREACH definition IN ARRAY given LOOP
        made := made || jsonb_build_object('name', definition ->> 'name', 'status', 'created', 'pgt_id', create_from(
            definition ->> 'name', definition ->> 'query', definition - 'name' - 'query', search_path));
    END LOOP;
    RETURN made;
END
$$;
COMMENT ON FUNCTION pgtrickle.bulk_create(jsonb, text) IS
    'Creates a stream table for each object of an array, whose keys are arguments of create_stream_table(); returns '
    'an array of their names and numbers. All or none.';

CREATE OR REPLACE FUNCTION pgtrickle.bulk_alter_stream_tables(names text[], params json,
    search_path text DEFAULT current_setting('search_path')) RETURNS integer
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    given CONSTANT jsonb := params::jsonb;
    stream_table text;
BEGIN
    PERFORM check_names(names);
    PERFORM check_bulk('pgtrickle.alter_stream_table'::regproc, array_fill(given, ARRAY[cardinality(names)]));
    FOREACH stream_table IN ARRAY names LOOP
        PERFORM alter_from(stream_table_id(stream_table, search_path), given ->> 'query', given - 'query' - 'status',
            '{}', search_path);
        IF given ->> 'status' IS NOT NULL THEN
            PERFORM take_status(stream_table, given ->> 'status', search_path);
        END IF;
    END LOOP;
    RETURN cardinality(names);
END
$$;
COMMENT ON FUNCTION pgtrickle.bulk_alter_stream_tables(text[], json, text) IS
    'Alters several stream tables alike: the keys of params are arguments of alter_stream_table(). Returns how many. '
    'All or none.';

-- What reads another one was created after it, so that it goes first.
CREATE OR REPLACE FUNCTION pgtrickle.bulk_drop_stream_tables(names text[],
    search_path text DEFAULT current_setting('search_path')) RETURNS integer
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM check_names(names);
    PERFORM drop_stream_table(s.stream_table, false, search_path)
    FROM (SELECT n AS stream_table FROM unnest(names) AS n ORDER BY stream_table_id(n, search_path) DESC) AS s;
    RETURN cardinality(names);
END
$$;
COMMENT ON FUNCTION pgtrickle.bulk_drop_stream_tables(text[], text) IS
    'Drops several stream tables; returns how many. All or none: others that read one of them are error 2BP01.';
