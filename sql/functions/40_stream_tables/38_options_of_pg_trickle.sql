-- Options in the words of the extension pg_trickle: what has a meaning here does it, what would change the rows of the
-- stream table is refused, and what has neither is kept and named in a notice.

CREATE OR REPLACE FUNCTION pgtrickle_private.refuse_option(option text, sentence text, hint text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION '% is not supported: %', option, sentence
        USING ERRCODE = '0A000', CONSTRAINT = 'unsupported_option', HINT = hint;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.refuse_option(text, text, text) IS
    'Error 0A000 for an option that would change the rows of a stream table.';

CREATE OR REPLACE FUNCTION pgtrickle_private.check_foreign_options(given jsonb) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM check_choice(c.option, lower(given ->> c.option), VARIADIC c.choices)
    FROM (VALUES ('cdc_mode', ARRAY['auto', 'trigger', 'wal']), ('storage_backend', ARRAY['heap', 'citus']),
              ('fuse', ARRAY['off', 'on', 'auto']), ('orchestration_mode', ARRAY['managed', 'external']),
              ('post_refresh_action', ARRAY['none', 'analyze', 'reindex', 'reindex_if_drift'])) AS c (option, choices)
    WHERE given ->> c.option IS NOT NULL;
    PERFORM refuse_value(r.option, given ->> r.option, format('Use a number from %s to %s.', r.least, r.most))
    FROM (VALUES ('fillfactor', 10, 100), ('max_delta_fraction', 0, 1), ('max_differential_joins', 0, 2147483647),
              ('fuse_sensitivity', 1, 2147483647), ('reindex_drift_threshold', 0, 1)) AS r (option, least, most)
    WHERE (given ->> r.option)::double precision NOT BETWEEN r.least AND r.most;
    IF upper(given ->> 'refresh_mode') = 'IMMEDIATE' THEN
        PERFORM refuse_option('refresh_mode IMMEDIATE', 'rows would have to change within the writer''s transaction',
            'Use AUTO and schedule ''calculated'': the refresh follows the commit.');
    ELSIF (given ->> 'temporal')::boolean THEN
        PERFORM refuse_option('temporal', 'the table would keep the rows of the past, under two more columns',
            'Read the past by as_of, within watermark_retention.');
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_foreign_options(jsonb) IS
    'Error 22023 for options of the extension pg_trickle with values that it refuses too, 0A000 for what would change '
    'the rows.';

CREATE OR REPLACE FUNCTION pgtrickle_private.tell_of_options(given jsonb) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    names CONSTANT text := (
        SELECT string_agg(o.option, ', ' ORDER BY o.option)
        -- For each option the values that ask for nothing special. With every other value it is named.
        FROM (VALUES ('cdc_mode', '{auto,trigger}'::text[]), ('append_only', '{false}'),
                  ('pooler_compatibility_mode', '{false}'), ('partition_by', '{}'), ('max_differential_joins', '{}'),
                  ('max_delta_fraction', '{}'), ('output_distribution_column', '{}'), ('storage_backend', '{heap}'),
                  ('target_freshness', '{}'), ('fuse', '{off,on}'), ('fuse_sensitivity', '{1}'),
                  ('post_refresh_action', '{none}'), ('reindex_drift_threshold', '{}')) AS o (option, usual)
        WHERE given ->> o.option IS NOT NULL AND lower(given ->> o.option) <> ALL (o.usual));
BEGIN
    IF names IS NOT NULL THEN
        RAISE NOTICE 'without effect here: %', names
            USING HINT = 'The stream table shows the same rows; docs/howto/come-from-pg-trickle.md has the reasons.';
    END IF;
    PERFORM tell_of_settings();
END
$$;
COMMENT ON FUNCTION pgtrickle_private.tell_of_options(jsonb) IS
    'A notice that names the given options of the extension pg_trickle, and its settings, that have no effect.';

CREATE OR REPLACE FUNCTION pgtrickle_private.fuse_in_our_words(given jsonb, ceiling bigint) RETURNS jsonb
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    found CONSTANT bigint := COALESCE((given ->> 'fuse_ceiling')::bigint, ceiling,
        NULLIF(foreign_setting('fuse_default_ceiling')::bigint, 0));
BEGIN
    IF lower(given ->> 'fuse') = 'off' THEN
        RETURN '{"fuse_ceiling": null}';
    ELSIF given ? 'fuse' AND found IS NULL THEN
        PERFORM refuse_value('fuse', given ->> 'fuse', 'Give it a fuse_ceiling, a number of changed rows.');
    END IF;
    RETURN CASE WHEN given ? 'fuse' THEN jsonb_build_object('fuse_ceiling', found) ELSE '{}' END;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.fuse_in_our_words(jsonb, bigint) IS
    'What fuse off, on or auto says about the ceiling, which alone decides here; error 22023 where there is none.';

CREATE OR REPLACE FUNCTION pgtrickle_private.freshness_in_our_words(target text) RETURNS jsonb
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF upper(target) IN ('ON_COMMIT', 'MANUAL') THEN
        RETURN jsonb_build_object('target_freshness_mode', upper(target));
    ELSIF target IS NOT NULL AND NOT is_period(target) THEN
        PERFORM refuse_value('target_freshness', target, 'Use an interval such as ''5 seconds'', ON_COMMIT or MANUAL.');
    END IF;
    RETURN CASE WHEN target IS NULL THEN '{}' ELSE jsonb_build_object('target_freshness_mode', 'INTERVAL',
        'freshness_deadline_ms', ceil(extract(epoch FROM target::interval) * 1000)::bigint) END;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.freshness_in_our_words(text) IS
    'The columns that keep a target_freshness; error 22023 for a bad one.';

CREATE OR REPLACE FUNCTION pgtrickle_private.in_our_words(given jsonb, ceiling bigint) RETURNS jsonb
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT given
        || (SELECT COALESCE(jsonb_object_agg(option, lower(given ->> option)), '{}')
            FROM unnest('{tier,watermark_gating,diamond_consistency,diamond_schedule_policy,output_mode,'
                'post_refresh_action}'::text[]) AS option WHERE given ? option)
        || (SELECT COALESCE(jsonb_object_agg(option, upper(given ->> option)), '{}')
            FROM unnest('{refresh_mode,orchestration_mode}'::text[]) AS option WHERE given ? option)
        || CASE lower(given ->> 'schedule') WHEN 'calculated' THEN '{"schedule": "calculated"}'::jsonb ELSE '{}' END
        || jsonb_strip_nulls(jsonb_build_object('requested_cdc_mode', lower(given ->> 'cdc_mode'),
            'is_append_only', given -> 'append_only', 'st_partition_key', given -> 'partition_by',
            'storage_fillfactor', given -> 'fillfactor'))
        || freshness_in_our_words(given ->> 'target_freshness')
        || fuse_in_our_words(given, ceiling)
        -- Nothing else can be had here, so the column stays as it is.
        - 'storage_backend'
$$;
COMMENT ON FUNCTION pgtrickle_private.in_our_words(jsonb, bigint) IS
    'Options as they are stored: words in our case, and under the names of the columns.';

CREATE OR REPLACE FUNCTION pgtrickle_private.chosen_options(current pgtrickle.pgt_stream_tables, given jsonb)
    RETURNS pgtrickle.pgt_stream_tables
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    asked CONSTANT jsonb := jsonb_strip_nulls(given);
    chosen pgt_stream_tables;
BEGIN
    PERFORM check_foreign_options(asked);
    chosen := jsonb_populate_record(current, in_our_words(asked, current.fuse_ceiling));
    PERFORM check_options(chosen);
    PERFORM tell_of_options(asked);
    RETURN chosen;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.chosen_options(pgtrickle.pgt_stream_tables, jsonb) IS
    'The options of a stream table with those that are given in place of its own; error 22023 or 0A000 for bad ones.';
