-- create_stream_table and alter_stream_table.

-- PL/pgSQL makes a new plan for each of the first five calls of a query, also where the argument says nothing about it:
-- that would be a sixth of the time that a creation takes.
CREATE OR REPLACE FUNCTION pgtrickle_private.create_from(name text, query text, given jsonb, search_path text)
    RETURNS bigint
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    id CONSTANT bigint := nextval(pg_get_serial_sequence('pgtrickle.pgt_stream_tables', 'pgt_id'));
    options pgt_stream_tables := new_options(given);
    target record;
    view regclass;
    storage regclass;
    needs_full text;
BEGIN
    IF query IS NULL THEN
        PERFORM refuse_value('query', NULL, 'Give a SELECT statement.');
    END IF;
    target := new_relation_name(name, search_path);
    view := create_query_view(id, query, search_path);
    PERFORM check_query(view);
    PERFORM check_output_mode(view, options);
    options := with_frozen_rows(view, options, options);
    needs_full := full_reason(view);
    PERFORM refuse_differential(required_mode(options), needs_full);
    storage := create_storage(target.schema_name, target.table_name, view);
    IF options.storage_fillfactor IS NOT NULL THEN
        EXECUTE format('ALTER TABLE %s SET (fillfactor = %s)', storage, options.storage_fillfactor);
    END IF;
    INSERT INTO pgt_stream_tables (
        pgt_id, pgt_relid, pgt_schema, pgt_name, defining_query, view_relid, output_mode, window_end,
        session_settings, full_reason, time_dependent, system_identifier, storage_fillfactor)
    OVERRIDING SYSTEM VALUE
    VALUES (id, storage, target.schema_name, target.table_name, query, view, options.output_mode, options.window_end,
            session_settings(view) || jsonb_build_object('search_path', resolved_search_path(search_path)),
            needs_full, time_dependence(view) IS NOT NULL, (SELECT system_identifier FROM pg_control_system()),
            options.storage_fillfactor);
    options.pgt_id := id;
    PERFORM name_query_view(t) FROM pgt_stream_tables AS t WHERE t.pgt_id = id;
    PERFORM store_options(options);
    PERFORM record_sources(id);
    PERFORM wrap_functions(view, t.session_settings ->> 'search_path') FROM pgt_stream_tables AS t WHERE t.pgt_id = id;
    PERFORM grant_to_readers(storage);
    PERFORM tell_of_policies(id);
    PERFORM tell_of_the_first_load((given ->> 'initialize')::boolean);
    PERFORM check_windows_close(id);
    PERFORM check_hold_back();
    PERFORM check_held_sources(ARRAY[id]);
    PERFORM check_held_query(id);
    PERFORM warn_of_no_group(id);
    PERFORM tell('pgtrickle_refresh', jsonb_build_object('pgt_id', id));
    RETURN id;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.create_from(text, text, jsonb, text) IS
    'Creates a stream table with options that are given by their names; those that are missing or null have their '
    'defaults.';

-- What is not committed no refresher can see, so nobody could fill it for this transaction.
CREATE OR REPLACE FUNCTION pgtrickle_private.tell_of_the_first_load(initialize boolean) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF initialize AND refresher_runs() THEN
        RAISE NOTICE 'the stream table is filled as soon as this transaction commits'
            USING HINT = 'CALL pgtrickle.create_and_load_stream_table(...) commits and waits for it; so does SELECT '
                'pgtrickle.refresh_stream_table(...) after the commit.';
    ELSIF initialize THEN
        RAISE NOTICE 'no refresher runs: the stream table stays empty until one does'
            USING HINT = 'Start one with: pytrickle run';
    ELSIF NOT initialize THEN
        RAISE NOTICE 'the stream table is filled by the next tick, also with initialize => false'
            USING HINT = 'pause_stream_table() leaves it empty until it is resumed or asked for.';
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.tell_of_the_first_load(boolean) IS
    'A notice that says when a stream table is filled, for whoever said initialize.';

CREATE OR REPLACE FUNCTION pgtrickle.create_stream_table(
        name text, query text, schedule text DEFAULT 'calculated', refresh_mode text DEFAULT 'AUTO',
        initialize boolean DEFAULT NULL, diamond_consistency text DEFAULT NULL,
        diamond_schedule_policy text DEFAULT NULL, cdc_mode text DEFAULT NULL, append_only boolean DEFAULT false,
        pooler_compatibility_mode boolean DEFAULT false, partition_by text DEFAULT NULL,
        max_differential_joins integer DEFAULT NULL, max_delta_fraction double precision DEFAULT NULL,
        output_distribution_column text DEFAULT NULL, temporal boolean DEFAULT false,
        storage_backend text DEFAULT NULL, fillfactor integer DEFAULT NULL, target_freshness text DEFAULT NULL,
        orchestration_mode text DEFAULT 'MANAGED',
        watermark_gating text DEFAULT NULL, require_watermark boolean DEFAULT NULL, tier text DEFAULT NULL,
        schedule_timezone text DEFAULT current_setting('TimeZone'), watermark_tolerance interval DEFAULT NULL,
        gate_deadline interval DEFAULT NULL, fuse_ceiling bigint DEFAULT NULL, allow_circular boolean DEFAULT NULL,
        max_fixpoint_iterations integer DEFAULT NULL, batch_tolerance bigint DEFAULT NULL,
        watermark_retention interval DEFAULT NULL, output_mode text DEFAULT NULL, window_end text DEFAULT NULL,
        statement_timeout interval DEFAULT NULL, fuse text DEFAULT NULL, fuse_sensitivity integer DEFAULT NULL,
        engine text DEFAULT NULL, frozen_after interval DEFAULT NULL, close_after_idle interval DEFAULT NULL,
        -- Evaluated in the caller's session: unqualified names mean what they mean there.
        search_path text DEFAULT current_setting('search_path')) RETURNS bigint
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT create_from(name, query, jsonb_build_object(
        'schedule', schedule, 'refresh_mode', refresh_mode, 'initialize', initialize,
        'diamond_consistency', diamond_consistency, 'diamond_schedule_policy', diamond_schedule_policy,
        'cdc_mode', cdc_mode, 'append_only', append_only, 'pooler_compatibility_mode', pooler_compatibility_mode,
        'partition_by', partition_by, 'max_differential_joins', max_differential_joins,
        'max_delta_fraction', max_delta_fraction, 'output_distribution_column', output_distribution_column,
        'temporal', temporal, 'storage_backend', storage_backend, 'fillfactor', fillfactor,
        'target_freshness', target_freshness, 'orchestration_mode', orchestration_mode)
        || jsonb_build_object(
            'watermark_gating', watermark_gating, 'require_watermark', require_watermark, 'tier', tier,
            'schedule_timezone', schedule_timezone, 'watermark_tolerance', watermark_tolerance,
            'gate_deadline', gate_deadline, 'fuse_ceiling', fuse_ceiling, 'allow_circular', allow_circular,
            'max_fixpoint_iterations', max_fixpoint_iterations, 'batch_tolerance', batch_tolerance,
            'watermark_retention', watermark_retention, 'output_mode', output_mode, 'window_end', window_end,
            'statement_timeout', statement_timeout, 'fuse', fuse, 'fuse_sensitivity', fuse_sensitivity,
            'engine', engine, 'frozen_after', frozen_after, 'close_after_idle', close_after_idle), search_path)
$$;
COMMENT ON FUNCTION pgtrickle.create_stream_table(
    text, text, text, text, boolean, text, text, text, boolean, boolean, text, integer, double precision, text, boolean,
    text, integer, text, text, text, boolean, text, text, interval, interval, bigint, boolean, integer, bigint,
        interval, text,
    text, interval, text, integer, text, interval, interval, text) IS
    'Creates a stream table from a query and has its sources captured; returns its number. It is filled by the next '
    'refresh; create_and_load_stream_table() waits for that. '
    'schedule is ''calculated'', an interval, or a cron expression in schedule_timezone; refresh_mode AUTO, '
    'DIFFERENTIAL, DIFFERENTIAL_STRICT (fails rather than compute it anew) or FULL; '
    'watermark_gating auto, none, gate or hold_back; '
    'tier hot, warm, cold or frozen; diamond_consistency atomic or none; diamond_schedule_policy fastest or slowest; '
    'output_mode update, append or complete; what is NULL has its default. '
    'Under append, when nothing has come from any source for close_after_idle, windows close by the clock. '
    'engine says who computes it: spark, postgres, or with auto whoever the refresher chooses. '
    'A refresh fails when one of its statements runs for longer than statement_timeout. Rows older than frozen_after '
    'below the effective watermark never change again. With orchestration_mode EXTERNAL it is paused. '
    'initialize, cdc_mode, append_only, pooler_compatibility_mode, partition_by, max_differential_joins, '
    'max_delta_fraction, output_distribution_column, storage_backend, target_freshness, fuse and fuse_sensitivity are '
    'taken as the extension pg_trickle has them: a notice names what has no effect here. temporal and refresh_mode '
    'IMMEDIATE are error 0A000.';

CREATE OR REPLACE FUNCTION pgtrickle_private.store_options(options pgtrickle.pgt_stream_tables) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    UPDATE pgt_stream_tables AS t
    SET schedule = options.schedule, schedule_timezone = options.schedule_timezone, refresh_mode = options.refresh_mode,
        watermark_gating = options.watermark_gating, require_watermark = options.require_watermark, tier = options.tier,
        watermark_tolerance = options.watermark_tolerance, gate_deadline = options.gate_deadline,
        diamond_consistency = options.diamond_consistency, diamond_schedule_policy = options.diamond_schedule_policy,
        fuse_ceiling = options.fuse_ceiling, batch_tolerance = options.batch_tolerance,
        watermark_retention = options.watermark_retention, statement_timeout = options.statement_timeout,
        engine = options.engine, frozen_after = options.frozen_after, frozen_by = options.frozen_by,
        frozen_before = options.frozen_before,
        earlier_query_through = CASE WHEN t.frozen_by IS NULL OR options.frozen_by IS NOT NULL
            THEN t.earlier_query_through END,
        close_after_idle = options.close_after_idle,
        allow_circular = options.allow_circular, max_fixpoint_iterations = options.max_fixpoint_iterations,
        requested_cdc_mode = options.requested_cdc_mode, is_append_only = options.is_append_only,
        pooler_compatibility_mode = options.pooler_compatibility_mode, st_partition_key = options.st_partition_key,
        max_differential_joins = options.max_differential_joins, max_delta_fraction = options.max_delta_fraction,
        target_freshness_mode = options.target_freshness_mode, freshness_deadline_ms = options.freshness_deadline_ms,
        fuse_sensitivity = options.fuse_sensitivity, post_refresh_action = options.post_refresh_action,
        reindex_drift_threshold = options.reindex_drift_threshold, orchestration_mode = options.orchestration_mode,
        paused = CASE WHEN t.orchestration_mode = options.orchestration_mode THEN t.paused
            ELSE options.orchestration_mode = 'EXTERNAL' END,
        next_due_at = CASE WHEN (t.schedule, t.schedule_timezone, t.tier) = (options.schedule,
            options.schedule_timezone, options.tier)
                           THEN t.next_due_at END,
        -- Mode FULL does not keep the aggregate state, on which a differential refresh would build.
        reinitialize_reason = CASE
            WHEN t.refresh_mode = 'FULL' AND options.refresh_mode <> 'FULL' AND t.frontier_version > 0
            THEN COALESCE(t.reinitialize_reason, 'refresh_mode was FULL')
            WHEN t.frozen_by IS NOT NULL AND options.frozen_by IS NULL AND t.frontier_version > 0
            THEN COALESCE(t.reinitialize_reason, 'its rows are not frozen any more')
            ELSE t.reinitialize_reason END,
        recomputation_asked = t.recomputation_asked
            OR (t.refresh_mode = 'FULL' AND options.refresh_mode <> 'FULL' AND t.frontier_version > 0)
            OR (t.frozen_by IS NOT NULL AND options.frozen_by IS NULL AND t.frontier_version > 0)
    WHERE t.pgt_id = options.pgt_id;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.store_options(pgtrickle.pgt_stream_tables) IS
    'Stores the options of a stream table that can be altered.';

CREATE OR REPLACE FUNCTION pgtrickle_private.alter_from(id bigint, query text, given jsonb, reset text[],
    search_path text) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    options pgt_stream_tables;
    chosen pgt_stream_tables;
BEGIN
    IF query IS NOT NULL THEN
        PERFORM replace_query_view(id, query, search_path);
    END IF;
    SELECT * INTO options FROM pgt_stream_tables WHERE pgt_id = id FOR UPDATE;
    chosen := with_frozen_rows(options.view_relid, options,
        chosen_options(jsonb_populate_record(options, default_options(reset)), given));
    PERFORM follow_frozen_rows(options, chosen);
    PERFORM store_options(chosen);
    IF query IS NOT NULL THEN
        PERFORM adopt_query(id, query, search_path);
        PERFORM tell_of_policies(id);
        PERFORM check_windows_close(id);
    ELSE
        PERFORM check_cycle(id);
    END IF;
    PERFORM check_output_mode(t.view_relid, t) FROM pgt_stream_tables AS t WHERE t.pgt_id = id;
    PERFORM refuse_differential(required_mode(t), t.full_reason) FROM pgt_stream_tables AS t
    WHERE t.pgt_id = id AND (query IS NOT NULL OR given ->> 'refresh_mode' IS NOT NULL);
    PERFORM check_hold_back();
    IF query IS NOT NULL OR given ->> 'watermark_gating' IS NOT NULL THEN
        PERFORM check_held_sources(ARRAY[id]);
        PERFORM check_held_query(id);
        PERFORM warn_of_no_group(id);
    END IF;
    PERFORM tell('pgtrickle_refresh', jsonb_build_object('pgt_id', id));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.alter_from(bigint, text, jsonb, text[], text) IS
    'Changes options of a stream table that are given by their names, and its query.';

CREATE OR REPLACE FUNCTION pgtrickle_private.take_status(name text, status text, search_path text) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    CASE upper(status)
        WHEN 'ACTIVE' THEN PERFORM resume_stream_table(name, search_path);
        WHEN 'SUSPENDED' THEN PERFORM pause_stream_table(name, search_path);
        ELSE PERFORM refuse_value('status', status, 'Use ACTIVE, which resumes it, or SUSPENDED, which pauses it.');
    END CASE;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.take_status(text, text, text) IS
    'Resumes or pauses a stream table, in the words of the extension pg_trickle; error 22023 for others.';

CREATE OR REPLACE FUNCTION pgtrickle.alter_stream_table(
        name text, query text DEFAULT NULL, schedule text DEFAULT NULL, refresh_mode text DEFAULT NULL,
        status text DEFAULT NULL, diamond_consistency text DEFAULT NULL, diamond_schedule_policy text DEFAULT NULL,
        cdc_mode text DEFAULT NULL, append_only boolean DEFAULT NULL, pooler_compatibility_mode boolean DEFAULT NULL,
        tier text DEFAULT NULL, fuse text DEFAULT NULL, fuse_ceiling bigint DEFAULT NULL,
        fuse_sensitivity integer DEFAULT NULL, partition_by text DEFAULT NULL,
        max_differential_joins integer DEFAULT NULL, max_delta_fraction double precision DEFAULT NULL,
        post_refresh_action text DEFAULT NULL, reindex_drift_threshold double precision DEFAULT NULL,
        target_freshness text DEFAULT NULL,
        watermark_gating text DEFAULT NULL, require_watermark boolean DEFAULT NULL,
        schedule_timezone text DEFAULT NULL, watermark_tolerance interval DEFAULT NULL,
        gate_deadline interval DEFAULT NULL, allow_circular boolean DEFAULT NULL,
        max_fixpoint_iterations integer DEFAULT NULL, batch_tolerance bigint DEFAULT NULL,
        watermark_retention interval DEFAULT NULL, statement_timeout interval DEFAULT NULL, engine text DEFAULT NULL,
        frozen_after interval DEFAULT NULL, close_after_idle interval DEFAULT NULL,
        reset text[] DEFAULT '{}', search_path text DEFAULT current_setting('search_path')) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    id CONSTANT bigint := stream_table_id(name, search_path);
    given CONSTANT jsonb := jsonb_build_object(
            'schedule', schedule, 'refresh_mode', refresh_mode, 'diamond_consistency', diamond_consistency,
            'diamond_schedule_policy', diamond_schedule_policy, 'cdc_mode', cdc_mode, 'append_only', append_only,
            'pooler_compatibility_mode', pooler_compatibility_mode, 'tier', tier, 'fuse', fuse,
            'fuse_ceiling', fuse_ceiling, 'fuse_sensitivity', fuse_sensitivity, 'partition_by', partition_by,
            'max_differential_joins', max_differential_joins, 'max_delta_fraction', max_delta_fraction,
            'post_refresh_action', post_refresh_action, 'reindex_drift_threshold', reindex_drift_threshold,
            'target_freshness', target_freshness)
        || jsonb_build_object(
                'watermark_gating', watermark_gating, 'require_watermark', require_watermark,
                'schedule_timezone', schedule_timezone, 'watermark_tolerance', watermark_tolerance,
                'gate_deadline', gate_deadline, 'allow_circular', allow_circular,
                'max_fixpoint_iterations', max_fixpoint_iterations, 'batch_tolerance', batch_tolerance,
                'watermark_retention', watermark_retention, 'statement_timeout', statement_timeout,
                'engine', engine, 'frozen_after', frozen_after, 'close_after_idle', close_after_idle);
BEGIN
    PERFORM alter_from(id, query, given, reset, search_path);
    IF status IS NOT NULL THEN
        PERFORM take_status(name, status, search_path);
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle.alter_stream_table(
    text, text, text, text, text, text, text, text, boolean, boolean, text, text, bigint, integer, text, integer,
    double precision, text, double precision, text,
    text, boolean, text, interval, interval, boolean, integer, bigint, interval, interval, text, interval, interval,
    text[], text) IS
    'Changes options of a stream table; those left NULL stay, those named in reset go back to their defaults. A new '
    'query must have the same columns '
    'and has the stream table computed anew; windows that append emitted and rows that are frozen stay as they are. '
    'Acts at the next tick. One that loses its frozen_after is computed anew, and its ledger of late changes is '
    'emptied. '
    'status ACTIVE resumes it, SUSPENDED pauses it; fuse off forgets the fuse_ceiling.';
