-- Stream tables that read each other.

CREATE OR REPLACE FUNCTION pgtrickle_private.cycle_members(p_pgt_id bigint) RETURNS SETOF bigint
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN QUERY
    WITH RECURSIVE above(id) AS (
        SELECT t.pgt_id FROM pgt_dependencies AS d JOIN pgt_stream_tables AS t ON t.pgt_relid = d.source_relid
            WHERE d.pgt_id = p_pgt_id
        UNION
        SELECT t.pgt_id FROM above JOIN pgt_dependencies AS d ON d.pgt_id = above.id
        JOIN pgt_stream_tables AS t ON t.pgt_relid = d.source_relid)
    SELECT id FROM above
    WHERE EXISTS (SELECT FROM above AS itself WHERE itself.id = p_pgt_id)
        AND p_pgt_id IN (SELECT u.pgt_id FROM upstream_tables(above.id) AS u)
    ORDER BY id;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.cycle_members(bigint) IS
    'All stream tables that this one reads and that read it, at any depth, with itself; none unless it reads itself.';

CREATE OR REPLACE FUNCTION pgtrickle_private.cycle_path(p_pgt_id bigint) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    reached bigint[] := ARRAY[p_pgt_id];
    readers jsonb := '{}';
    way bigint[] := ARRAY[p_pgt_id];
BEGIN
    -- Breadth first, so that the way is a shortest one: each is reached from the first that is found to read it.
    WHILE reached <> '{}' AND NOT readers ? p_pgt_id::text LOOP
        SELECT COALESCE(array_agg(f.id), '{}'), readers
            || COALESCE(jsonb_object_agg(f.id, f.reader), '{}') INTO reached, readers
        FROM (SELECT t.pgt_id AS id, min(d.pgt_id) AS reader FROM pgt_dependencies AS d
            JOIN pgt_stream_tables AS t ON t.pgt_relid = d.source_relid
              WHERE d.pgt_id = ANY (reached) AND NOT readers ? t.pgt_id::text GROUP BY t.pgt_id) AS f;
    END LOOP;
    WHILE (readers ->> way[1]::text)::bigint <> p_pgt_id LOOP
        way := (readers ->> way[1]::text)::bigint || way;
    END LOOP;
    RETURN (SELECT string_agg(format('%I.%I', t.pgt_schema, t.pgt_name), CASE place WHEN 2 THEN ' reads '
        ELSE ', which reads ' END ORDER BY place)
            FROM unnest(p_pgt_id || way) WITH ORDINALITY AS w(id, place)
                JOIN pgt_stream_tables AS t ON t.pgt_id = w.id);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.cycle_path(bigint) IS
    'The shortest way on which a stream table reads itself, in words.';

CREATE OR REPLACE FUNCTION pgtrickle_private.check_cycle(pgt_id bigint) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    unwilling text := (
        SELECT string_agg(format('%I.%I', t.pgt_schema, t.pgt_name), ' and ' ORDER BY t.pgt_id)
        FROM cycle_members(check_cycle.pgt_id) AS m JOIN pgt_stream_tables AS t ON t.pgt_id = m
            WHERE NOT t.allow_circular);
BEGIN
    IF unwilling IS NOT NULL THEN
        RAISE EXCEPTION 'stream table % would read itself: %',
                (SELECT t.pgt_relid FROM pgt_stream_tables AS t WHERE t.pgt_id = check_cycle.pgt_id),
                    cycle_path(check_cycle.pgt_id)
            USING ERRCODE = '42P17', CONSTRAINT = 'cycle',
                  HINT = format('Break the cycle: one of the stream tables or views in it must read something else. '
                      'Or set allow_circular => true on %s, '
                                'to have all of them refreshed together until nothing changes.', unwilling);
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_cycle(bigint) IS
    'Error 42P17 if a stream table reads itself, through whatever it reads, unless all stream tables in the cycle '
    'allow it.';

CREATE OR REPLACE FUNCTION pgtrickle_private.number_cycles() RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    UPDATE pgt_stream_tables AS t SET scc_id = n.first
    FROM (
        SELECT a.pgt_id, CASE WHEN a.allow_circular
            THEN (SELECT min(m) FROM cycle_members(a.pgt_id) AS m) END AS first
        FROM pgt_stream_tables AS a WHERE a.allow_circular OR a.scc_id IS NOT NULL) AS n
    WHERE n.pgt_id = t.pgt_id AND t.scc_id IS DISTINCT FROM n.first;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.number_cycles() IS
    'Notes in which cycle each stream table is, by the number of the first stream table in it.';
