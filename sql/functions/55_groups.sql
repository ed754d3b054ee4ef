-- Watermark groups: sources whose watermarks must agree.

CREATE OR REPLACE FUNCTION pgtrickle.group_sources(sources text[], search_path text) RETURNS regclass[]
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
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
COMMENT ON FUNCTION pgtrickle.group_sources(text[], text) IS 'The relations these names mean, each once.';

CREATE OR REPLACE FUNCTION pgtrickle.check_tolerance(tolerance interval) RETURNS void
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
BEGIN
    IF tolerance IS NULL OR tolerance < interval '0' THEN
        PERFORM refuse_value('tolerance', tolerance::text, 'Use an interval of zero or more, such as ''30 seconds''.');
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle.check_tolerance(interval) IS 'Error 22023 for a negative tolerance, 22004 for NULL.';

CREATE OR REPLACE FUNCTION pgtrickle.create_watermark_group(
        group_name text, sources text[], tolerance interval DEFAULT '0',
        stale_after interval DEFAULT NULL, on_stale text DEFAULT 'warn', idle_after interval DEFAULT NULL,
        search_path text DEFAULT current_setting('search_path')) RETURNS integer
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
DECLARE
    id integer;
BEGIN
    IF COALESCE(group_name, '') = '' THEN
        PERFORM refuse_value('group_name', group_name, 'Give the group a name.');
    END IF;
    PERFORM check_tolerance(tolerance);
    PERFORM check_limits(stale_after, on_stale, idle_after);
    INSERT INTO pgt_watermark_groups AS g (group_name, sources, tolerance, stale_after, on_stale, idle_after)
    VALUES (group_name, group_sources(sources, search_path), tolerance, stale_after, on_stale, idle_after)
    ON CONFLICT ON CONSTRAINT pgt_watermark_groups_group_name_key DO NOTHING RETURNING g.group_id INTO id;
    IF id IS NULL THEN
        RAISE EXCEPTION 'watermark group % already exists', quote_literal(group_name)
            USING ERRCODE = '42710', CONSTRAINT = 'watermark_group_exists',
                  HINT = 'Use pgtrickle.alter_watermark_group() to change it.';
    END IF;
    PERFORM check_hold_back();
    RETURN id;
END
$$;
COMMENT ON FUNCTION pgtrickle.create_watermark_group(text, text[], interval, interval, text, interval, text) IS
    'Declares that the watermarks of these sources must agree within the tolerance; returns the number of the group. stale_after, on_stale and idle_after '
    'are limits on the silence of its sources, as in set_source_limits(); NULL is none.';

CREATE OR REPLACE FUNCTION pgtrickle.refuse_unknown_group(group_name text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION 'there is no watermark group %', COALESCE(quote_literal(group_name), 'NULL')
        USING ERRCODE = '42704', CONSTRAINT = 'unknown_watermark_group',
              HINT = 'SELECT group_name FROM pgtrickle.watermark_groups() lists those that exist.';
END
$$;
COMMENT ON FUNCTION pgtrickle.refuse_unknown_group(text) IS 'Error 42704: no watermark group has this name.';

CREATE OR REPLACE FUNCTION pgtrickle.alter_watermark_group(
        group_name text, sources text[] DEFAULT NULL, tolerance interval DEFAULT NULL,
        stale_after interval DEFAULT NULL, on_stale text DEFAULT NULL, idle_after interval DEFAULT NULL,
        reset text[] DEFAULT '{}', search_path text DEFAULT current_setting('search_path')) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
DECLARE
    new_sources CONSTANT regclass[] := CASE WHEN sources IS NOT NULL THEN group_sources(sources, search_path) END;
    altered pgt_watermark_groups;
BEGIN
    SELECT * INTO altered FROM pgt_watermark_groups AS g WHERE g.group_name = alter_watermark_group.group_name FOR UPDATE;
    IF NOT FOUND THEN
        PERFORM refuse_unknown_group(group_name);
    END IF;
    altered := jsonb_populate_record(altered, default_limits(reset) || jsonb_strip_nulls(jsonb_build_object(
        'tolerance', tolerance, 'stale_after', stale_after, 'on_stale', on_stale, 'idle_after', idle_after)));
    PERFORM check_tolerance(altered.tolerance);
    PERFORM check_limits(altered.stale_after, altered.on_stale, altered.idle_after);
    UPDATE pgt_watermark_groups AS g
    SET sources = COALESCE(new_sources, g.sources), tolerance = altered.tolerance,
        stale_after = altered.stale_after, on_stale = altered.on_stale, idle_after = altered.idle_after
    WHERE g.group_id = altered.group_id;
    PERFORM check_hold_back();
END
$$;
COMMENT ON FUNCTION pgtrickle.alter_watermark_group(text, text[], interval, interval, text, interval, text[], text) IS
    'Changes the sources, the tolerance or the limits of a group; those left NULL stay, those named in reset go back to their defaults. '
    'Acts at the next tick.';

CREATE OR REPLACE FUNCTION pgtrickle.default_limits(names text[]) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
DECLARE
    defaults CONSTANT jsonb := jsonb_build_object('tolerance', '0', 'stale_after', NULL, 'on_stale', 'warn', 'idle_after', NULL);
    stranger text;
BEGIN
    SELECT n INTO stranger FROM unnest(names) AS n WHERE n IS NULL OR NOT defaults ? n;
    IF FOUND THEN
        PERFORM refuse_value('reset', stranger, 'The options are idle_after, on_stale, stale_after, tolerance.');
    END IF;
    RETURN (SELECT COALESCE(jsonb_object_agg(n, defaults -> n), '{}') FROM unnest(names) AS n);
END
$$;
COMMENT ON FUNCTION pgtrickle.default_limits(text[]) IS 'The defaults of the named options of a group; error 22023 for a name that is none.';

CREATE OR REPLACE FUNCTION pgtrickle.drop_watermark_group(group_name text) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pg_temp
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

-- An infinite watermark says that nothing more will come and agrees with every other. An idle source is left out of the
-- comparison, but what it has not asserted nobody may claim: complete_through is the least of all.
CREATE OR REPLACE FUNCTION pgtrickle.group_alignment(p_group_id integer DEFAULT NULL, p_tolerance interval DEFAULT NULL)
    RETURNS TABLE (group_id integer, group_name text, sources regclass[], tolerance interval, min_watermark timestamptz, max_watermark timestamptz,
                   lag interval, aligned boolean, never_advanced regclass[], slowest regclass, fastest regclass, idle regclass[],
                   complete_through timestamptz)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp SET TimeZone = 'UTC'
AS $$
BEGIN
    RETURN QUERY
    SELECT g.group_id, g.group_name, g.sources, v.tolerance, v.low, v.high,
           CASE WHEN isfinite(v.low) AND isfinite(v.high) THEN v.high - v.low END,
           CASE WHEN cardinality(a.never_advanced) = 0 THEN v.high <= v.low + v.tolerance END,
           a.never_advanced, a.by_watermark[1], COALESCE(a.finite_by_watermark[1], a.by_watermark[1]), a.idle, a.complete_through
    FROM pgt_watermark_groups AS g CROSS JOIN LATERAL (
        SELECT min(m.watermark) FILTER (WHERE NOT m.idle) AS low,
               COALESCE(max(m.watermark) FILTER (WHERE isfinite(m.watermark) AND NOT m.idle), max(m.watermark) FILTER (WHERE NOT m.idle)) AS high,
               COALESCE(array_agg(m.source ORDER BY m.place) FILTER (WHERE m.watermark IS NULL), '{}') AS never_advanced,
               array_agg(m.source ORDER BY m.watermark, m.source::oid) FILTER (WHERE m.watermark IS NOT NULL AND NOT m.idle) AS by_watermark,
               array_agg(m.source ORDER BY m.watermark DESC, m.source::oid) FILTER (WHERE isfinite(m.watermark) AND NOT m.idle) AS finite_by_watermark,
               COALESCE(array_agg(m.source ORDER BY m.place) FILTER (WHERE m.idle), '{}') AS idle,
               min(m.watermark) AS complete_through, max(m.watermark) AS newest
        FROM group_members(g.group_id) AS m) AS a
    CROSS JOIN LATERAL (
        SELECT COALESCE(p_tolerance, g.tolerance) AS tolerance, COALESCE(a.low, a.newest) AS low, COALESCE(a.high, a.newest) AS high) AS v
    WHERE p_group_id IS NULL OR g.group_id = p_group_id
    ORDER BY g.group_name;
END
$$;
COMMENT ON FUNCTION pgtrickle.group_alignment(integer, interval) IS
    'How far the watermarks of each group, or of one, are apart; aligned is NULL while a source never advanced. Infinite watermarks and idle sources are '
    'left out of the comparison; a group of idle sources only is aligned at the newest of their watermarks. complete_through is the least of all.';
