-- Watermark groups: sources whose watermarks must agree.

CREATE OR REPLACE FUNCTION pgtrickle_private.group_sources(sources text[], search_path text) RETURNS regclass[]
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    source text;
    relation regclass;
    relations regclass[] := '{}';
BEGIN
    IF sources IS NULL OR array_position(sources, NULL) IS NOT NULL THEN
        PERFORM refuse_value('source', NULL, 'Name the tables of the group.');
    ELSIF cardinality(sources) = 0 THEN
        PERFORM refuse_value('list of sources', '{}', 'A group needs at least one source.');
    END IF;
    FOREACH source IN ARRAY sources LOOP
        relation := relation_named(source, search_path);
        IF relation IS NULL THEN
            RAISE EXCEPTION 'relation % does not exist', quote_literal(source)
                USING ERRCODE = '42P01', CONSTRAINT = 'unknown_table',
                      HINT = 'Qualify the name if its schema is not in your search_path.';
        ELSIF relation = ANY (relations) THEN
            RAISE EXCEPTION 'source % appears twice in the group', relation
                USING ERRCODE = '22023', CONSTRAINT = 'invalid_argument', HINT = 'Name each source once.';
        ELSIF EXISTS (SELECT FROM pgt_stream_tables WHERE pgt_relid = relation)
            OR (SELECT relkind NOT IN ('r', 'p', 'f') FROM pg_class WHERE oid = relation)
        THEN
            RAISE EXCEPTION '% is not a table that a loader fills', relation
                USING ERRCODE = '42809', CONSTRAINT = 'invalid_argument', HINT = 'Group the tables that it reads.';
        END IF;
        relations := relations || relation;
    END LOOP;
    RETURN relations;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.group_sources(text[], text) IS 'The relations these names mean, each once.';

CREATE OR REPLACE FUNCTION pgtrickle_private.check_tolerance(watermark_group pgtrickle.pgt_watermark_groups)
    RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF num_nonnulls(watermark_group.tolerance, watermark_group.batch_tolerance) = 2 THEN
        RAISE EXCEPTION 'a watermark group goes by event time or by batch numbers, and has a tolerance of that kind '
            'only'
            USING ERRCODE = '22023', CONSTRAINT = 'invalid_argument',
                  HINT = 'Use tolerance, an interval, for event time, or batch_tolerance, a number of batches; a '
                      'group keeps its kind.';
    ELSIF watermark_group.batch_tolerance < 0 THEN
        PERFORM refuse_value('batch_tolerance', watermark_group.batch_tolerance::text,
            'Use a number of batches of zero or more.');
    ELSIF watermark_group.batch_tolerance IS NULL AND COALESCE(watermark_group.tolerance < interval '0', true) THEN
        PERFORM refuse_value('tolerance', watermark_group.tolerance::text,
            'Use an interval of zero or more, such as ''30 seconds''.');
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_tolerance(pgtrickle.pgt_watermark_groups) IS
    'Error 22023 for a negative tolerance or for one of each kind, 22004 for none.';

CREATE OR REPLACE FUNCTION pgtrickle_private.group_kind(watermark_group pgtrickle.pgt_watermark_groups) RETURNS text
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN CASE WHEN watermark_group.batch_tolerance IS NULL THEN 'event time' ELSE 'batch numbers' END;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.group_kind(pgtrickle.pgt_watermark_groups) IS
    'What a group goes by: event time or batch numbers.';

CREATE OR REPLACE FUNCTION pgtrickle_private.check_group_kind(watermark_group pgtrickle.pgt_watermark_groups)
    RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    kind CONSTANT text := group_kind(watermark_group);
    stranger record;
BEGIN
    SELECT s, w.source_relid IS NOT NULL AS advanced, o.group_name INTO stranger
    FROM unnest(watermark_group.sources) AS s
    LEFT JOIN pgt_watermarks AS w ON w.source_relid = s AND kind_of(ROW(w.watermark, w.batch)::progress) <> kind
    LEFT JOIN pgt_watermark_groups AS o
        ON s = ANY (o.sources) AND o.group_name <> watermark_group.group_name AND group_kind(o) <> kind
    WHERE w.source_relid IS NOT NULL OR o.group_id IS NOT NULL
    ORDER BY advanced DESC, array_position(watermark_group.sources, s), o.group_name LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'the group goes by %, % by %', kind, stranger.s
            || COALESCE(' in group ' || quote_literal(stranger.group_name), ''),
                CASE kind WHEN 'event time' THEN 'batch numbers' ELSE 'event time' END
            USING ERRCODE = '42804', CONSTRAINT = 'invalid_argument',
                  HINT = CASE kind WHEN 'event time'
                      THEN 'Create a group with a batch_tolerance, such as batch_tolerance => 0, for sources that '
                      'count batches.'
                                   ELSE 'Create a group without a batch_tolerance for sources with event times.' END;
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_group_kind(pgtrickle.pgt_watermark_groups) IS
    'Error 42804 if a source of the group, or another group that shares one, goes by the other kind of watermark.';

-- Waiting less than deadlock_timeout means that we, not a loader, give way when both wait for each other.
CREATE OR REPLACE FUNCTION pgtrickle_private.try_first_watermarks(sources regclass[]) RETURNS boolean
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET lock_timeout = '400ms'
AS $$
BEGIN
    INSERT INTO pgt_watermarks (source_relid, source_name, watermark, cut, advanced_at, last_seen_at, advanced_by)
    SELECT s, '', '-infinity', current_cut(), clock_timestamp(), clock_timestamp(), current_user
    FROM unnest(sources) AS s WHERE NOT EXISTS (SELECT FROM pgt_watermarks AS w WHERE w.source_relid = s)
        ORDER BY s::oid
    ON CONFLICT (source_relid) DO NOTHING;
    -- Whoever advances such a source for the first time waits for this transaction all the same.
    DELETE FROM pgt_watermarks AS w WHERE w.source_relid = ANY (sources) AND w.watermark = '-infinity'
        AND w.source_name = '';
    RETURN true;
EXCEPTION
    WHEN lock_not_available OR deadlock_detected THEN RETURN false;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.try_first_watermarks(regclass[]) IS
    'Holds back the first watermarks of these sources until the transaction ends; false where a loader is about to '
    'give one.';

CREATE OR REPLACE FUNCTION pgtrickle_private.hold_first_watermarks(sources regclass[]) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    started CONSTANT timestamptz := clock_timestamp();
BEGIN
    WHILE NOT try_first_watermarks(sources) LOOP
        IF clock_timestamp() > started + interval '10 seconds' THEN
            RAISE EXCEPTION 'a loader has given one of these sources its first watermark in a transaction that is '
                'still open: %', array_to_string(sources, ', ')
                USING ERRCODE = '55P03', CONSTRAINT = 'first_watermark',
                    HINT = 'Have it commit, or end its session, and try again.';
        END IF;
        PERFORM pg_sleep(0.05);
    END LOOP;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.hold_first_watermarks(regclass[]) IS
    'Holds back the first watermarks of these sources until the transaction ends: whichever comes second finds the '
    'other. Error 55P03 after 10 seconds.';

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
    RETURN create_watermark_group(group_name, sources, tolerance::interval, stale_after, on_stale, idle_after,
        NULL::bigint, search_path);
END
$$;
COMMENT ON FUNCTION pgtrickle.create_watermark_group(text, text[], text, interval, text, interval, text) IS
    'The same with the tolerance as text: an interval such as 30 seconds, or a number of seconds.';

CREATE OR REPLACE FUNCTION pgtrickle_private.refuse_unknown_group(group_name text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION 'there is no watermark group %', COALESCE(quote_literal(group_name), 'NULL')
        USING ERRCODE = '42704', CONSTRAINT = 'unknown_watermark_group',
              HINT = 'SELECT group_name FROM pgtrickle.watermark_groups() lists those that exist.';
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
