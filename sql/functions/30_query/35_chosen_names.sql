-- What a planner must know of the names in a query, and which operators and functions PostgreSQL chose for them.

CREATE OR REPLACE FUNCTION pgtrickle_private.name_facts(stream_table pgtrickle.pgt_stream_tables) RETURNS jsonb
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    -- PostgreSQL lets others put an extension even where generated SQL finds names: then it is asked what it would
    -- choose.
    IF uses_plain_names(stream_table.view_relid)
        AND NOT EXISTS (SELECT FROM pg_extension WHERE extnamespace = 'pgtrickle_state'::regnamespace) THEN
        RETURN '{"plain": true, "wrapped": {}, "domain_obstacle": null}';
    END IF;
    RETURN jsonb_build_object(
        'plain', false,
        'domain_obstacle', domain_obstacle(stream_table.pgt_relid),
        'wrapped', (
            SELECT COALESCE(jsonb_object_agg(format('%s.%I', p.pronamespace::regnamespace, p.proname),
                format('pgtrickle_state.%I', w.name)), '{}')
            FROM wrappable_functions(stream_table.view_relid) AS f JOIN pg_proc AS p ON p.oid = f
            CROSS JOIN LATERAL wrapper_name(f, stream_table.session_settings ->> 'search_path') AS w(name)));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.name_facts(pgtrickle.pgt_stream_tables) IS
    'What of a stream table''s query follows the search_path: whether nothing can, the wrappers of functions by their '
    'names, and a domain that prevents it.';

-- What PostgreSQL reads of a text it printed itself calls the same functions; only whether wrappers took their place
-- counts.
CREATE OR REPLACE FUNCTION pgtrickle_private.chosen_names(view regclass) RETURNS oid[]
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET standard_conforming_strings = on
AS $$
    SELECT COALESCE(array_agg(m.id ORDER BY m.id), '{}')
    FROM pg_rewrite AS r
    CROSS JOIN LATERAL (
        SELECT COALESCE(o.mirrored, found.id::oid)
        FROM (SELECT n[1] FROM regexp_matches(r.ev_action::text, ':opno (\d+)', 'g') AS n
              UNION ALL
              SELECT string_to_table(n[1], ' ')
                  FROM regexp_matches(r.ev_action::text, ':opnos \(o ([\d ]+)\)', 'g') AS n) AS found(id)
        LEFT JOIN mirrored_operators() AS o ON o.mirror = found.id::oid
        UNION ALL
        SELECT COALESCE(w.wrapped, n[1]::oid)
        FROM regexp_matches(r.ev_action::text, ':(?:funcid|aggfnoid|winfnoid) (\d+)', 'g') AS n
        LEFT JOIN wrapped_functions() AS w ON w.wrapper = n[1]::oid
        WHERE n[1]::oid >= 16384) AS m(id)
    WHERE r.ev_class = view AND r.rulename = '_RETURN'
$$;
COMMENT ON FUNCTION pgtrickle_private.chosen_names(regclass) IS
    'The operators and the user''s functions that PostgreSQL chose for a view, each as often as it did; mirrors and '
    'wrappers count as what they stand for.';

-- Asked before anything is read: a wrapper sets the path where a function is called by its name, but not where an
-- operator, a cast, an aggregate or a domain calls it.
CREATE OR REPLACE FUNCTION pgtrickle_private.unwrapped_dependence(view regclass) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET standard_conforming_strings = on
AS $$
BEGIN
    IF uses_plain_names(view) THEN
        RETURN NULL;
    END IF;
    RETURN (
        SELECT min(COALESCE(
            (SELECT min(said_of_path(f)) FROM path_dependent_among(ARRAY(
                SELECT DISTINCT m[2]::oid
                FROM regexp_matches(t.tree, ':(funcid|opfuncid|aggfnoid|winfnoid) (\d+)', 'g') AS m
                WHERE m[1] <> 'funcid' OR m[2]::oid NOT IN (SELECT wrappable_functions(view))),
                ARRAY(SELECT k.oid FROM types_used(view) AS u(id) JOIN pg_constraint AS k ON k.contypid = u.id)) AS f),
            CASE WHEN t.tree LIKE '%{SQLVALUEFUNCTION :op 14 %' THEN 'CURRENT_SCHEMA' END,
            names_shown(view)))
        FROM query_trees(view) AS t);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.unwrapped_dependence(regclass) IS
    'What of a view, or of one that it reads, may depend on the search_path although wrappers stand for functions, or '
    'NULL.';

REVOKE ALL ON FUNCTION pgtrickle_private.name_facts(pgtrickle.pgt_stream_tables),
    pgtrickle_private.chosen_names(regclass), pgtrickle_private.unwrapped_dependence(regclass) FROM PUBLIC;
