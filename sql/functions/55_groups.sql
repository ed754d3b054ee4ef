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
        group_name text, sources text[], tolerance interval DEFAULT '0', search_path text DEFAULT current_setting('search_path')) RETURNS integer
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
DECLARE
    id integer;
BEGIN
    IF COALESCE(group_name, '') = '' THEN
        PERFORM refuse_value('group_name', group_name, 'Give the group a name.');
    END IF;
    PERFORM check_tolerance(tolerance);
    INSERT INTO pgt_watermark_groups AS g (group_name, sources, tolerance)
    VALUES (group_name, group_sources(sources, search_path), tolerance)
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
COMMENT ON FUNCTION pgtrickle.create_watermark_group(text, text[], interval, text) IS
    'Declares that the watermarks of these sources must agree within the tolerance; returns the number of the group.';

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
        search_path text DEFAULT current_setting('search_path')) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
DECLARE
    new_sources CONSTANT regclass[] := CASE WHEN sources IS NOT NULL THEN group_sources(sources, search_path) END;
BEGIN
    PERFORM check_tolerance(COALESCE(tolerance, '0'));
    UPDATE pgt_watermark_groups AS g
    SET sources = COALESCE(new_sources, g.sources), tolerance = COALESCE(alter_watermark_group.tolerance, g.tolerance)
    WHERE g.group_name = alter_watermark_group.group_name;
    IF NOT FOUND THEN
        PERFORM refuse_unknown_group(group_name);
    END IF;
    PERFORM check_hold_back();
END
$$;
COMMENT ON FUNCTION pgtrickle.alter_watermark_group(text, text[], interval, text) IS
    'Changes the sources or the tolerance of a group; acts at the next tick.';

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

-- An infinite watermark says that nothing more will come and agrees with every other.
CREATE OR REPLACE FUNCTION pgtrickle.group_alignment()
    RETURNS TABLE (group_id integer, group_name text, sources regclass[], tolerance interval, min_watermark timestamptz, max_watermark timestamptz,
                   lag interval, aligned boolean, never_advanced regclass[], slowest regclass, fastest regclass)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp SET TimeZone = 'UTC'
AS $$
    SELECT g.group_id, g.group_name, g.sources, g.tolerance, a.low, a.high,
           CASE WHEN isfinite(a.low) AND isfinite(a.high) THEN a.high - a.low END,
           CASE WHEN cardinality(a.never_advanced) = 0 THEN a.high <= a.low + g.tolerance END,
           a.never_advanced, a.by_watermark[1], COALESCE(a.finite_by_watermark[1], a.by_watermark[1])
    FROM pgt_watermark_groups AS g CROSS JOIN LATERAL (
        SELECT min(w.watermark) AS low,
               COALESCE(max(w.watermark) FILTER (WHERE isfinite(w.watermark)), max(w.watermark)) AS high,
               COALESCE(array_agg(s.source ORDER BY s.place) FILTER (WHERE w.watermark IS NULL), '{}') AS never_advanced,
               array_agg(s.source ORDER BY w.watermark, s.source::oid) FILTER (WHERE w.watermark IS NOT NULL) AS by_watermark,
               array_agg(s.source ORDER BY w.watermark DESC, s.source::oid) FILTER (WHERE isfinite(w.watermark)) AS finite_by_watermark
        FROM unnest(g.sources) WITH ORDINALITY AS s(source, place) LEFT JOIN pgt_watermarks AS w ON w.source_relid = s.source) AS a
    ORDER BY g.group_name
$$;
COMMENT ON FUNCTION pgtrickle.group_alignment() IS
    'How far the watermarks of each group are apart; aligned is NULL while a source never advanced. Infinite watermarks are left out of the comparison.';
