-- What a watermark group must be, and the first watermarks of its sources.

CREATE OR REPLACE FUNCTION pgtrickle_private.group_sources(sources text[], search_path text) RETURNS regclass[]
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    source text;
    relation regclass;
    relations regclass[] := '{}';
BEGIN
    IF array_ndims(sources) > 1 THEN
        PERFORM refuse_value('list of sources', sources::text,
            'Give the names in one list, such as ARRAY[''orders'', ''order_lines''].');
    ELSIF sources IS NULL OR array_position(sources, NULL) IS NOT NULL THEN
        PERFORM refuse_value('source', NULL, 'Name the tables of the group.');
    ELSIF cardinality(sources) = 0 THEN
        PERFORM refuse_value('list of sources', '{}', 'A group needs at least one source.');
    END IF;
    FOREACH source IN ARRAY sources LOOP
        relation := relation_named(source, search_path);
        IF relation IS NULL THEN
            RAISE EXCEPTION 'relation % does not exist', quote_literal(source)
                USING ERRCODE = '42P01', CONSTRAINT = 'unknown_table',
                      HINT = did_you_mean(source, known_tables(source LIKE '%.%'))
                             || 'Qualify the name if its schema is not in your search_path.';
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
