-- Further ways to create and alter stream tables, in the words of the extension pg_trickle.

CREATE OR REPLACE FUNCTION pgtrickle_private.existing_stream_table(name text, search_path text) RETURNS bigint
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT known_stream_table(relation_named(name, search_path), name)
$$;
COMMENT ON FUNCTION pgtrickle_private.existing_stream_table(text, text) IS
    'Number of the stream table that a name means, or NULL where there is none yet.';

CREATE OR REPLACE FUNCTION pgtrickle.create_stream_table_if_not_exists(
        name text, query text, schedule text DEFAULT 'calculated', refresh_mode text DEFAULT 'AUTO',
        initialize boolean DEFAULT NULL, diamond_consistency text DEFAULT NULL,
        diamond_schedule_policy text DEFAULT NULL, cdc_mode text DEFAULT NULL, append_only boolean DEFAULT false,
        pooler_compatibility_mode boolean DEFAULT false, partition_by text DEFAULT NULL,
        max_differential_joins integer DEFAULT NULL, max_delta_fraction double precision DEFAULT NULL,
        output_distribution_column text DEFAULT NULL, temporal boolean DEFAULT false,
        storage_backend text DEFAULT NULL, fillfactor integer DEFAULT NULL, target_freshness text DEFAULT NULL,
        orchestration_mode text DEFAULT 'MANAGED',
        search_path text DEFAULT current_setting('search_path')) RETURNS bigint
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF existing_stream_table(name, search_path) IS NOT NULL THEN
        RAISE NOTICE 'the stream table % exists already', name USING HINT = 'Nothing was changed.';
        RETURN NULL;
    END IF;
    RETURN create_stream_table(
        name, query, schedule, refresh_mode, initialize, diamond_consistency, diamond_schedule_policy, cdc_mode,
        append_only, pooler_compatibility_mode, partition_by, max_differential_joins, max_delta_fraction,
        output_distribution_column, temporal, storage_backend, fillfactor, target_freshness, orchestration_mode,
        search_path => search_path);
END
$$;
COMMENT ON FUNCTION pgtrickle.create_stream_table_if_not_exists(
    text, text, text, text, boolean, text, text, text, boolean, boolean, text, integer, double precision,
    text, boolean, text, integer, text, text, text) IS
    'Creates a stream table as create_stream_table() does, and returns its number; where there is one of this name, it '
    'changes nothing and returns NULL.';

CREATE OR REPLACE FUNCTION pgtrickle_private.replace_from(id bigint, query text, given jsonb, search_path text)
    RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    -- The same text is another query where its view was dropped with what it read, which was made anew.
    same CONSTANT boolean :=
        (SELECT btrim(without_last_semicolon(t.defining_query)) = btrim(without_last_semicolon(query))
            AND EXISTS (SELECT FROM pg_class AS c WHERE c.oid = t.view_relid)
        FROM pgt_stream_tables AS t WHERE t.pgt_id = id);
BEGIN
    PERFORM alter_from(id, CASE WHEN same THEN NULL ELSE query END, given - 'orchestration_mode', '{}', search_path);
    IF given ->> 'orchestration_mode' IS NOT NULL THEN
        PERFORM take_orchestration(id, given ->> 'orchestration_mode');
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.replace_from(bigint, text, jsonb, text) IS
    'Gives a stream table the options and, where it is another one or its view is gone, the query.';

CREATE OR REPLACE FUNCTION pgtrickle.create_or_replace_stream_table(
        name text, query text, schedule text DEFAULT 'calculated', refresh_mode text DEFAULT 'AUTO',
        initialize boolean DEFAULT NULL, diamond_consistency text DEFAULT NULL,
        diamond_schedule_policy text DEFAULT NULL, cdc_mode text DEFAULT NULL, append_only boolean DEFAULT false,
        pooler_compatibility_mode boolean DEFAULT false, partition_by text DEFAULT NULL,
        max_differential_joins integer DEFAULT NULL, max_delta_fraction double precision DEFAULT NULL,
        output_distribution_column text DEFAULT NULL, temporal boolean DEFAULT false,
        storage_backend text DEFAULT NULL, orchestration_mode text DEFAULT NULL,
        search_path text DEFAULT current_setting('search_path')) RETURNS bigint
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    id bigint := existing_stream_table(name, search_path);
    given CONSTANT jsonb := jsonb_build_object(
        'schedule', schedule, 'refresh_mode', refresh_mode, 'initialize', initialize,
        'diamond_consistency', diamond_consistency, 'diamond_schedule_policy', diamond_schedule_policy,
        'cdc_mode', cdc_mode, 'append_only', append_only, 'pooler_compatibility_mode', pooler_compatibility_mode,
        'partition_by', partition_by, 'max_differential_joins', max_differential_joins,
        'max_delta_fraction', max_delta_fraction, 'output_distribution_column', output_distribution_column,
        'temporal', temporal, 'storage_backend', storage_backend, 'orchestration_mode', orchestration_mode);
BEGIN
    IF id IS NULL THEN
        RETURN create_from(name, query, given, search_path);
    END IF;
    PERFORM replace_from(id, query, given, search_path);
    RETURN id;
END
$$;
COMMENT ON FUNCTION pgtrickle.create_or_replace_stream_table(
    text, text, text, text, boolean, text, text, text, boolean, boolean, text, integer, double precision,
    text, boolean, text, text, text) IS
    'Creates a stream table as create_stream_table() does, or gives the one of this name these options and this query, '
    'as alter_stream_table() does: the same query leaves its rows alone. Returns its number.';

CREATE OR REPLACE FUNCTION pgtrickle.create_stream_table_realtime(
        name text, query text, cdc_mode text DEFAULT NULL, append_only boolean DEFAULT false,
        partition_by text DEFAULT NULL, max_differential_joins integer DEFAULT NULL,
        max_delta_fraction double precision DEFAULT NULL,
        search_path text DEFAULT current_setting('search_path')) RETURNS bigint
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN create_stream_table(
        name, query, '1s', 'DIFFERENTIAL', cdc_mode => cdc_mode, append_only => append_only,
        partition_by => partition_by, max_differential_joins => max_differential_joins,
        max_delta_fraction => max_delta_fraction, search_path => search_path);
END
$$;
COMMENT ON FUNCTION pgtrickle.create_stream_table_realtime(
    text, text, text, boolean, text, integer, double precision, text) IS
    'Creates a stream table that is refreshed every second, by its changes only: schedule 1s, refresh_mode '
    'DIFFERENTIAL.';

CREATE OR REPLACE FUNCTION pgtrickle.create_stream_table_batch(
        name text, query text, cdc_mode text DEFAULT NULL, append_only boolean DEFAULT false,
        partition_by text DEFAULT NULL, max_differential_joins integer DEFAULT NULL,
        max_delta_fraction double precision DEFAULT NULL,
        search_path text DEFAULT current_setting('search_path')) RETURNS bigint
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN create_stream_table(
        name, query, '5m', 'AUTO', cdc_mode => cdc_mode, append_only => append_only, partition_by => partition_by,
        max_differential_joins => max_differential_joins, max_delta_fraction => max_delta_fraction,
        search_path => search_path);
END
$$;
COMMENT ON FUNCTION pgtrickle.create_stream_table_batch(
    text, text, text, boolean, text, integer, double precision, text) IS
    'Creates a stream table that is refreshed every five minutes: schedule 5m, refresh_mode AUTO.';

CREATE OR REPLACE FUNCTION pgtrickle.create_stream_table_cost_optimized(
        name text, query text, cdc_mode text DEFAULT NULL, append_only boolean DEFAULT false,
        partition_by text DEFAULT NULL, max_differential_joins integer DEFAULT NULL,
        max_delta_fraction double precision DEFAULT NULL,
        search_path text DEFAULT current_setting('search_path')) RETURNS bigint
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN create_stream_table(
        name, query, '15m', 'AUTO', cdc_mode => cdc_mode, append_only => append_only, partition_by => partition_by,
        max_differential_joins => max_differential_joins, max_delta_fraction => max_delta_fraction,
        search_path => search_path);
END
$$;
COMMENT ON FUNCTION pgtrickle.create_stream_table_cost_optimized(
    text, text, text, boolean, text, integer, double precision, text) IS
    'Creates a stream table that is refreshed every quarter of an hour: schedule 15m, refresh_mode AUTO.';

CREATE OR REPLACE FUNCTION pgtrickle.create_stream_table_fast_append_only(
        name text, query text, schedule text DEFAULT 'calculated', cdc_mode text DEFAULT NULL,
        partition_by text DEFAULT NULL, max_differential_joins integer DEFAULT NULL,
        max_delta_fraction double precision DEFAULT NULL,
        search_path text DEFAULT current_setting('search_path')) RETURNS bigint
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN create_stream_table(
        name, query, schedule, 'DIFFERENTIAL', cdc_mode => cdc_mode, append_only => true, partition_by => partition_by,
        max_differential_joins => max_differential_joins, max_delta_fraction => max_delta_fraction,
        search_path => search_path);
END
$$;
COMMENT ON FUNCTION pgtrickle.create_stream_table_fast_append_only(
    text, text, text, text, text, integer, double precision, text) IS
    'Creates a stream table with refresh_mode DIFFERENTIAL. That its sources only grow is not needed here: a refresh '
    'costs what has changed.';

CREATE OR REPLACE FUNCTION pgtrickle_private.take_orchestration(id bigint, mode text) RETURNS text
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM check_choice('orchestration_mode', upper(mode), 'MANAGED', 'EXTERNAL');
    UPDATE pgt_stream_tables AS t SET orchestration_mode = upper(mode), paused = upper(mode) = 'EXTERNAL'
    WHERE t.pgt_id = id AND t.orchestration_mode <> upper(mode);
    RETURN upper(mode);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.take_orchestration(bigint, text) IS
    'Pauses a stream table that somebody else is to refresh, and resumes one that is ours again; returns the mode.';

CREATE OR REPLACE FUNCTION pgtrickle.set_orchestration_mode(stream_table regclass, mode text) RETURNS text
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM check_there(stream_table);
    RETURN take_orchestration(stream_table_id(qualified_name(stream_table), ''), mode);
END
$$;
COMMENT ON FUNCTION pgtrickle.set_orchestration_mode(regclass, text) IS
    'EXTERNAL: ticks leave the stream table out, as if it were paused, and it is refreshed when it is asked for; '
    'MANAGED: ticks take it up again. Returns the mode.';

CREATE OR REPLACE FUNCTION pgtrickle.set_stream_table_refresh_policy(
        name text, refresh_mode text, search_path text DEFAULT current_setting('search_path')) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM alter_from(stream_table_id(name, search_path), NULL, jsonb_build_object('refresh_mode', refresh_mode), '{}',
        search_path);
END
$$;
COMMENT ON FUNCTION pgtrickle.set_stream_table_refresh_policy(text, text, text) IS
    'Sets the refresh_mode of a stream table, as alter_stream_table() does.';

CREATE OR REPLACE FUNCTION pgtrickle.set_stream_table_storage_policy(
        name text, append_only boolean DEFAULT NULL, tier text DEFAULT NULL,
            search_path text DEFAULT current_setting('search_path')) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM alter_from(stream_table_id(name, search_path), NULL,
        jsonb_build_object('append_only', append_only, 'tier', tier), '{}', search_path);
END
$$;
COMMENT ON FUNCTION pgtrickle.set_stream_table_storage_policy(text, boolean, text, text) IS
    'Sets the tier of a stream table, as alter_stream_table() does; append_only has no effect.';

CREATE OR REPLACE FUNCTION pgtrickle.set_stream_table_sla(
        name text, sla interval, search_path text DEFAULT current_setting('search_path')) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM check_span('sla', sla);
    PERFORM alter_from(stream_table_id(name, search_path), NULL,
        jsonb_build_object('tier', CASE WHEN sla <= interval '5 s' THEN 'hot'
        WHEN sla <= interval '30 s' THEN 'warm' ELSE 'cold' END), '{}', search_path);
END
$$;
COMMENT ON FUNCTION pgtrickle.set_stream_table_sla(text, interval, text) IS
    'Sets the tier of a stream table by how old its rows may be: hot up to 5 seconds, warm up to 30, else cold.';
