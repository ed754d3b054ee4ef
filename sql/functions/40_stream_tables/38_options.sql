-- The options of a stream table: what they may be, and how create_ and alter_stream_table take them.

CREATE OR REPLACE FUNCTION pgtrickle_private.check_choice(parameter text, value text, VARIADIC choices text[])
    RETURNS void
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF value IS NULL OR value <> ALL (choices) THEN
        PERFORM refuse_value(parameter, value,
            format('Use %s or %s.', array_to_string(trim_array(choices, 1), ', '), choices[cardinality(choices)]));
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_choice(text, text, text[]) IS
    'Error 22023, or 22004 for NULL, unless the value is one of the choices.';

CREATE OR REPLACE FUNCTION pgtrickle_private.check_options(options pgtrickle.pgt_stream_tables) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM check_choice('refresh_mode', options.refresh_mode, 'AUTO', 'DIFFERENTIAL', 'DIFFERENTIAL_STRICT',
        'FULL');
    PERFORM check_choice('watermark_gating', options.watermark_gating, 'auto', 'none', 'gate', 'hold_back');
    PERFORM check_choice('tier', options.tier, 'hot', 'warm', 'cold', 'frozen');
    PERFORM check_choice('diamond_consistency', options.diamond_consistency, 'atomic', 'none');
    PERFORM check_choice('diamond_schedule_policy', options.diamond_schedule_policy, 'fastest', 'slowest');
    PERFORM check_choice('engine', options.engine, 'auto', 'spark', 'postgres');
    PERFORM check_choice('output_mode', options.output_mode, 'update', 'append', 'complete');
    IF options.require_watermark IS NULL OR options.allow_circular IS NULL THEN
        PERFORM refuse_value(CASE WHEN options.allow_circular IS NULL THEN 'allow_circular'
            ELSE 'require_watermark' END, NULL, 'Use true or false.');
    ELSIF options.watermark_tolerance < interval '0' THEN
        PERFORM refuse_value('watermark_tolerance', options.watermark_tolerance::text,
            'Use an interval of zero or more.');
    ELSIF options.batch_tolerance < 0 THEN
        PERFORM refuse_value('batch_tolerance', options.batch_tolerance::text,
            'Use a number of batches of zero or more.');
    ELSIF options.gate_deadline <= interval '0' THEN
        PERFORM refuse_value('gate_deadline', options.gate_deadline::text, 'Use an interval longer than zero.');
    ELSIF options.fuse_ceiling <= 0 THEN
        PERFORM refuse_value('fuse_ceiling', options.fuse_ceiling::text, 'Use a number of rows above zero.');
    ELSIF (options.max_fixpoint_iterations > 0) IS NOT TRUE THEN
        PERFORM refuse_value('max_fixpoint_iterations', options.max_fixpoint_iterations::text,
            'Use a number of rounds above zero.');
    ELSIF options.watermark_retention <= interval '0' THEN
        PERFORM refuse_value('watermark_retention', options.watermark_retention::text,
            'Use an interval longer than zero.');
    ELSIF options.frozen_after < interval '0' THEN
        PERFORM refuse_value('frozen_after', options.frozen_after::text, 'Use an interval of zero or more.');
    ELSIF options.close_after_idle IS NOT NULL AND options.output_mode <> 'append' THEN
        PERFORM refuse_value('close_after_idle', options.close_after_idle::text,
            'Only output_mode => ''append'' closes windows.');
    ELSIF options.close_after_idle <= interval '0' THEN
        PERFORM refuse_value('close_after_idle', options.close_after_idle::text, 'Use an interval longer than zero.');
    -- What PostgreSQL's own setting holds is milliseconds in an integer.
    ELSIF options.statement_timeout < interval '1 ms' OR options.statement_timeout > interval '24 days' THEN
        PERFORM refuse_value('statement_timeout', options.statement_timeout::text,
            'Use an interval from 1 millisecond to 24 days.');
    END IF;
    PERFORM check_schedule(options.schedule, options.schedule_timezone);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_options(pgtrickle.pgt_stream_tables) IS
    'Error 22023, or 22004 for NULL, unless all options of a stream table are valid.';

CREATE OR REPLACE FUNCTION pgtrickle_private.option_defaults() RETURNS jsonb
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT jsonb_build_object(
        'schedule', 'calculated', 'schedule_timezone', current_setting('TimeZone'), 'refresh_mode', 'AUTO',
        'watermark_gating', 'auto', 'require_watermark', false, 'tier', 'hot', 'watermark_tolerance', NULL,
        'batch_tolerance', NULL, 'gate_deadline', NULL,
        'diamond_consistency', COALESCE(foreign_setting('diamond_consistency'), 'atomic'),
        'diamond_schedule_policy', COALESCE(foreign_setting('diamond_schedule_policy'), 'fastest'),
        'fuse_ceiling', NULL, 'allow_circular', COALESCE(foreign_setting('allow_circular'), 'false')::boolean,
        'max_fixpoint_iterations', COALESCE(foreign_setting('max_fixpoint_iterations'), '100')::integer,
        'watermark_retention', NULL, 'statement_timeout', NULL, 'engine', 'auto',
        'frozen_after', NULL, 'close_after_idle', NULL)
$$;
COMMENT ON FUNCTION pgtrickle_private.option_defaults() IS
    'The defaults of the options that can be altered: ours, or those that a session set for the extension pg_trickle.';

CREATE OR REPLACE FUNCTION pgtrickle_private.default_options(names text[]) RETURNS jsonb
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    defaults CONSTANT jsonb := option_defaults();
    stranger text;
BEGIN
    SELECT n INTO stranger FROM unnest(names) AS n WHERE n IS NULL OR NOT defaults ? n;
    IF FOUND THEN
        PERFORM refuse_value('reset', stranger,
            format('The options are %s.',
            (SELECT string_agg(key, ', ' ORDER BY key) FROM jsonb_object_keys(defaults) AS key)));
    END IF;
    RETURN (SELECT COALESCE(jsonb_object_agg(n, defaults -> n), '{}') FROM unnest(names) AS n);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.default_options(text[]) IS
    'The defaults of the named options; error 22023 for a name that is none.';
