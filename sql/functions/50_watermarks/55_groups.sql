-- Watermark groups: sources whose watermarks must agree.

CREATE OR REPLACE FUNCTION pgtrickle.create_watermark_group(
        group_name text, sources text[], tolerance interval DEFAULT '0',
        stale_after interval DEFAULT NULL, on_stale text DEFAULT 'warn', idle_after interval DEFAULT NULL,
        batch_tolerance bigint DEFAULT NULL, search_path text DEFAULT current_setting('search_path')) RETURNS integer
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    created pgt_watermark_groups;
    id integer;
    holdback CONSTANT interval := CASE WHEN stale_after IS NULL
        THEN make_interval(secs => NULLIF(foreign_setting('watermark_holdback_timeout')::double precision, 0)) END;
BEGIN
    IF COALESCE(group_name, '') = '' THEN
        PERFORM refuse_value('group_name', group_name, 'Give the group a name.');
    END IF;
    created.group_name := group_name;
    -- An interval of zero is only the default, and no distance in either kind.
    created.tolerance := CASE WHEN batch_tolerance IS NULL THEN tolerance ELSE NULLIF(tolerance, interval '0') END;
    created.batch_tolerance := batch_tolerance;
    PERFORM check_tolerance(created);
    PERFORM check_limits(stale_after, on_stale, idle_after);
    created.sources := group_sources(sources, search_path);
    -- Against the first watermarks of its sources, and against other groups; only then is looked for them.
    LOCK TABLE pgt_watermark_groups IN SHARE ROW EXCLUSIVE MODE;
    PERFORM hold_first_watermarks(created.sources);
    PERFORM check_group_kind(created);
    INSERT INTO pgt_watermark_groups AS g (group_name, sources, tolerance, batch_tolerance, stale_after, on_stale,
        idle_after)
    VALUES (group_name, created.sources, created.tolerance, batch_tolerance, COALESCE(stale_after, holdback),
        CASE WHEN holdback IS NULL THEN on_stale ELSE 'hold' END, idle_after)
    ON CONFLICT ON CONSTRAINT pgt_watermark_groups_group_name_key DO NOTHING RETURNING g.group_id INTO id;
    IF id IS NULL THEN
        RAISE EXCEPTION 'watermark group % already exists', quote_literal(group_name)
            USING ERRCODE = '42710', CONSTRAINT = 'watermark_group_exists',
                  HINT = 'Use pgtrickle.alter_watermark_group() to change it.';
    END IF;
    PERFORM check_hold_back();
    PERFORM check_held_sources(NULL, id);
    PERFORM tell_of_settings();
    RETURN id;
END
$$;
COMMENT ON FUNCTION pgtrickle.create_watermark_group(text, text[], interval, interval, text, interval, bigint, text) IS
    'Declares that the watermarks of these sources must agree within the tolerance; returns the number of the group. '
    'With a batch_tolerance, a number of '
    'batches, the group goes by batch numbers, otherwise by event time; sources or groups of the other kind are error '
    '42804. stale_after, on_stale and '
    'idle_after are limits on the silence of its sources, as in set_source_limits(); NULL is none, or what the '
    'setting pg_trickle.watermark_holdback_timeout says, which holds.';

CREATE OR REPLACE FUNCTION pgtrickle_private.tolerance_of_seconds(seconds double precision) RETURNS interval
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    -- No number of the type is greater than NaN.
    IF (seconds BETWEEN 0 AND 1e11) IS NOT TRUE THEN
        PERFORM refuse_value('tolerance_secs', seconds::text, 'Use a number of seconds of zero or more.');
    END IF;
    RETURN make_interval(secs => seconds);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.tolerance_of_seconds(double precision) IS
    'A number of seconds as an interval; error 22023 for one that is negative, infinite or none.';

CREATE OR REPLACE FUNCTION pgtrickle.create_watermark_group(
        group_name text, sources text[], tolerance_secs double precision,
        stale_after interval DEFAULT NULL, on_stale text DEFAULT 'warn', idle_after interval DEFAULT NULL,
        search_path text DEFAULT current_setting('search_path')) RETURNS integer
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN create_watermark_group(group_name, sources, tolerance_of_seconds(tolerance_secs), stale_after, on_stale,
        idle_after, NULL::bigint, search_path);
END
$$;
COMMENT ON FUNCTION pgtrickle.create_watermark_group(text, text[], double precision, interval, text, interval, text) IS
    'The same with the tolerance as a number of seconds.';

-- A literal in quotes has no type of its own, and where there is a choice PostgreSQL takes it for text.
CREATE OR REPLACE FUNCTION pgtrickle.create_watermark_group(
        group_name text, sources text[], tolerance text,
        stale_after interval DEFAULT NULL, on_stale text DEFAULT 'warn', idle_after interval DEFAULT NULL,
        search_path text DEFAULT current_setting('search_path')) RETURNS integer
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN create_watermark_group(group_name, sources, read_span('tolerance', tolerance), stale_after, on_stale,
        idle_after, NULL::bigint, search_path);
END
$$;
COMMENT ON FUNCTION pgtrickle.create_watermark_group(text, text[], text, interval, text, interval, text) IS
    'The same with the tolerance as text: an interval such as 30 seconds, or a number of seconds.';

CREATE OR REPLACE FUNCTION pgtrickle_private.refuse_unknown_group(group_name text) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION 'there is no watermark group %', COALESCE(quote_literal(group_name), 'NULL')
        USING ERRCODE = '42704', CONSTRAINT = 'unknown_watermark_group',
              HINT = did_you_mean(group_name, known_groups())
                     || 'SELECT group_name FROM pgtrickle.watermark_groups() lists those that exist.';
END
$$;
COMMENT ON FUNCTION pgtrickle_private.refuse_unknown_group(text) IS 'Error 42704: no watermark group has this name.';

CREATE OR REPLACE FUNCTION pgtrickle.alter_watermark_group(
        group_name text, sources text[] DEFAULT NULL, tolerance interval DEFAULT NULL,
        stale_after interval DEFAULT NULL, on_stale text DEFAULT NULL, idle_after interval DEFAULT NULL,
        reset text[] DEFAULT '{}', batch_tolerance bigint DEFAULT NULL,
            search_path text DEFAULT current_setting('search_path')) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    new_sources CONSTANT regclass[] := CASE WHEN sources IS NOT NULL THEN group_sources(sources, search_path) END;
    altered pgt_watermark_groups;
BEGIN
    LOCK TABLE pgt_watermark_groups IN SHARE ROW EXCLUSIVE MODE;
    SELECT * INTO altered FROM pgt_watermark_groups AS g
        WHERE g.group_name = alter_watermark_group.group_name FOR UPDATE;
    IF NOT FOUND THEN
        PERFORM refuse_unknown_group(group_name);
    END IF;
    altered := jsonb_populate_record(altered, default_limits(reset) || jsonb_strip_nulls(jsonb_build_object(
        'tolerance', tolerance, 'batch_tolerance', batch_tolerance, 'stale_after', stale_after, 'on_stale', on_stale,
            'idle_after', idle_after)));
    altered.sources := COALESCE(new_sources, altered.sources);
    PERFORM check_tolerance(altered);
    PERFORM check_limits(altered.stale_after, altered.on_stale, altered.idle_after);
    PERFORM hold_first_watermarks(altered.sources);
    PERFORM check_group_kind(altered);
    UPDATE pgt_watermark_groups AS g
    SET sources = altered.sources, tolerance = altered.tolerance, batch_tolerance = altered.batch_tolerance,
        stale_after = altered.stale_after, on_stale = altered.on_stale, idle_after = altered.idle_after
    WHERE g.group_id = altered.group_id;
    PERFORM check_hold_back();
    IF new_sources IS NOT NULL THEN
        PERFORM check_held_sources(NULL, altered.group_id);
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle.alter_watermark_group(text, text[], interval, interval, text, interval, text[], bigint,
    text) IS
    'Changes the sources, the tolerance or the limits of a group; those left NULL stay, those named in reset go back '
    'to their defaults. '
    'A group keeps its kind: a tolerance of the other one is error 22023. Acts at the next tick.';

CREATE OR REPLACE FUNCTION pgtrickle_private.default_limits(names text[]) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    defaults CONSTANT jsonb := jsonb_build_object('tolerance', '0', 'batch_tolerance', 0, 'stale_after', NULL,
        'on_stale', 'warn', 'idle_after', NULL);
    stranger text;
BEGIN
    SELECT n INTO stranger FROM unnest(names) AS n WHERE n IS NULL OR NOT defaults ? n;
    IF FOUND THEN
        PERFORM refuse_value('reset', stranger,
            'The options are batch_tolerance, idle_after, on_stale, stale_after, tolerance.');
    END IF;
    RETURN (SELECT COALESCE(jsonb_object_agg(n, defaults -> n), '{}') FROM unnest(names) AS n);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.default_limits(text[]) IS
    'The defaults of the named options of a group; error 22023 for a name that is none.';

CREATE OR REPLACE FUNCTION pgtrickle.drop_watermark_group(group_name text) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    DELETE FROM pgt_watermark_groups AS g WHERE g.group_name = drop_watermark_group.group_name;
    IF NOT FOUND THEN
        PERFORM refuse_unknown_group(group_name);
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle.drop_watermark_group(text) IS
    'Drops a watermark group; its sources keep their watermarks.';
