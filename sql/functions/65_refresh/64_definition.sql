-- What the planner reads: a stream table's definition, and the scales of numeric sums.

-- Every transaction below the oldest one that a snapshot saw running had ended by then, subtransactions too. An id that
-- is so old that its number came round again is taken for a younger one: then the answer is false.
CREATE OR REPLACE FUNCTION pgtrickle_private.ended_before(p_xid xid, p_oldest xid8) RETURNS boolean
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT p_oldest IS NULL OR p_xid::text::bigint < 3
        OR age.back < 2147483648 AND next.id - age.back < p_oldest::text::bigint
    FROM (SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint) AS next(id),
        LATERAL (SELECT (next.id - p_xid::text::bigint) & 4294967295) AS age(back)
$$;
COMMENT ON FUNCTION pgtrickle_private.ended_before(xid, xid8) IS
    'Whether a transaction whose work is visible had ended when p_oldest was the oldest one running, or has by now '
    'where p_oldest is NULL; may answer false when in doubt, never true.';

-- A refresh also reads what a source held at its frontier, or holds at its cut. A first load reads at some cut of the
-- source's watermarks.
CREATE OR REPLACE FUNCTION pgtrickle_private.oldest_read(p_source regclass, p_frontier pgtrickle.cut) RETURNS xid8
LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT COALESCE(pg_snapshot_xmin((p_frontier).snapshot)::text,
        (SELECT min(pg_snapshot_xmin((h.cut).snapshot)::text::bigint)::text
            FROM pgtrickle.pgt_watermark_history AS h WHERE h.source_relid = p_source))::xid8
$$;
COMMENT ON FUNCTION pgtrickle_private.oldest_read(regclass, pgtrickle.cut) IS
    'The oldest transaction that was running at the earliest moment at which refreshes read a source that stands at '
    'this frontier; NULL where they only read what it holds now.';

-- PL/pgSQL keeps the plans of these two, which take longer to make than to follow. A column that is NOT NULL may have
-- NULLs all the same: in a child that dropped the constraint, in rows from before one that is NOT VALID, and at a
-- frontier from before the column became NOT NULL.
DROP FUNCTION IF EXISTS pgtrickle_private.source_facts(regclass);
CREATE OR REPLACE FUNCTION pgtrickle_private.source_facts(p_source regclass, p_oldest xid8)
RETURNS jsonb
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RETURN (
        SELECT jsonb_build_object(
            'relid', c.oid::bigint,
            'schema', n.nspname,
            'name', c.relname,
            'pages', size.pages,
            'rows', size.rows,
            'columns', (
                SELECT coalesce(jsonb_agg(jsonb_build_array(
                    a.attname, format_type(a.atttypid, a.atttypmod),
                    -- Of somebody else's type the name alone, such as date, would say the wrong thing.
                    CASE WHEN t.typnamespace = 'pg_catalog'::regnamespace THEN t.typname::text
                        ELSE concat(t.typnamespace::regnamespace, '.', t.typname) END,
                    coalesce(l.collisdeterministic, true),
                    NOT a.attnotnull OR c.relkind <> 'p' AND c.relhassubclass OR EXISTS (
                        SELECT FROM pg_constraint AS k
                        WHERE k.conrelid = c.oid AND k.contype = 'n' AND k.conkey = ARRAY[a.attnum]
                            AND (NOT k.convalidated OR NOT pgtrickle_private.ended_before(k.xmin, p_oldest)))
                        OR NOT pgtrickle_private.ended_before(a.xmin, p_oldest)
                ) ORDER BY a.attnum), '[]')
                FROM pg_attribute AS a
                    JOIN pg_type AS t ON t.oid = a.atttypid
                    LEFT JOIN pg_collation AS l ON l.oid = a.attcollation
                WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
            ),
            'indexed', (
                SELECT coalesce(jsonb_agg(DISTINCT a.attname), '[]')
                FROM pg_index AS i
                    JOIN pg_class AS x ON x.oid = i.indexrelid
                    JOIN pg_am AS m ON m.oid = x.relam AND m.amname = 'btree'
                    JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
                WHERE i.indrelid = c.oid AND i.indisvalid AND i.indpred IS NULL
            ),
            'unique', (
                SELECT coalesce(jsonb_agg(u.names), '[]')
                FROM pg_index AS i
                    JOIN pg_class AS x ON x.oid = i.indexrelid
                    JOIN pg_am AS m ON m.oid = x.relam AND m.amname = 'btree'
                    CROSS JOIN LATERAL (
                        SELECT jsonb_agg(a.attname) AS names FROM pg_attribute AS a
                        WHERE a.attrelid = i.indrelid AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1])
                        HAVING count(*) = i.indnkeyatts) AS u
                WHERE i.indrelid = c.oid AND i.indisvalid AND i.indpred IS NULL AND i.indisunique
            ),
            -- One that is checked at the end of a transaction may be violated in the middle of it, where a cut may lie.
            'keys', (
                SELECT coalesce(jsonb_agg(u.names), '[]')
                FROM pg_index AS i
                    JOIN pg_class AS x ON x.oid = i.indexrelid
                    JOIN pg_am AS m ON m.oid = x.relam AND m.amname = 'btree'
                    CROSS JOIN LATERAL (
                        SELECT jsonb_agg(a.attname) AS names
                        FROM generate_series(0, i.indnkeyatts - 1) AS k (place)
                            JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[k.place]
                                AND a.attcollation = i.indcollation[k.place]
                            JOIN pg_opclass AS o ON o.oid = i.indclass[k.place] AND o.opcdefault
                        HAVING count(*) = i.indnkeyatts) AS u
                WHERE i.indrelid = c.oid AND i.indisvalid AND i.indpred IS NULL AND i.indisunique AND i.indimmediate
                    AND (c.relkind = 'p' OR NOT c.relhassubclass)
                    AND pgtrickle_private.ended_before(i.xmin, p_oldest)
            )
        )
        FROM pg_class AS c
            JOIN pg_namespace AS n ON n.oid = c.relnamespace
            CROSS JOIN pgtrickle_private.size_of(c.oid) AS size
        WHERE c.oid = p_source);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.source_facts(regclass, xid8) IS
    'Name, columns (name, full type, base type, whether equality is bytewise, whether it may be NULL now or could when '
    'p_oldest was running), size, indexed leading columns, unique indexes and unique keys of a source.';

CREATE OR REPLACE FUNCTION pgtrickle_private.planner_facts(p_pgt_id bigint)
RETURNS jsonb
LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
        SET standard_conforming_strings = on
AS $$
BEGIN
    RETURN (
        SELECT jsonb_build_object(
            'pgt_id', s.pgt_id,
            'schema', n.nspname,
            'name', c.relname,
            'view', (SELECT format('pgtrickle_state.%I', h.relname) FROM pg_class AS h WHERE h.oid = s.view_relid),
            'text', pg_get_viewdef(s.view_relid),
            -- Where increments become rows, texts are read as PostgreSQL writes them, not as these settings have it.
            'full_reason', COALESCE(s.full_reason,
                CASE WHEN s.session_settings ->> 'array_nulls' = 'off' THEN 'array_nulls = off where it was created'
                    WHEN s.session_settings ->> 'xmloption' = 'document'
                    THEN 'xmloption = document where it was created'
                END),
            'search_path', s.session_settings ->> 'search_path',
            'names', pgtrickle_private.name_facts(s),
            'bytewise', pgtrickle_private.is_bytewise(s.view_relid),
            'columns', (
                SELECT coalesce(jsonb_agg(jsonb_build_array(a.attname, format_type(a.atttypid, a.atttypmod))
                    ORDER BY a.attnum), '[]')
                FROM pg_attribute AS a
                WHERE a.attrelid = s.pgt_relid AND a.attnum > 0 AND NOT a.attisdropped
            ),
            'altered', (
                SELECT array_agg((a.atttypid, a.atttypmod, a.attcollation)::text
                    ORDER BY a.attnum) FILTER (WHERE a.attrelid = s.pgt_relid)
                    IS DISTINCT FROM array_agg((a.atttypid, a.atttypmod, a.attcollation)::text
                        ORDER BY a.attnum) FILTER (WHERE a.attrelid = s.view_relid)
                FROM pg_attribute AS a
                WHERE a.attrelid IN (s.pgt_relid, s.view_relid) AND a.attnum > 0 AND NOT a.attisdropped
            ) AND NOT pgtrickle_private.stored_alike(s.pgt_relid, s.view_relid),
            'views', (
                SELECT coalesce(jsonb_agg(jsonb_build_object(
                    'schema', vn.nspname, 'name', vc.relname, 'text', pg_get_viewdef(vc.oid)) ORDER BY vc.oid), '[]')
                FROM pgtrickle_private.views_below(s.view_relid) AS v(oid)
                    JOIN pg_class AS vc ON vc.oid = v.oid
                    JOIN pg_namespace AS vn ON vn.oid = vc.relnamespace
                WHERE vc.oid <> s.view_relid
            ),
            -- Of a function PostgreSQL expects many rows: to join them it would read all of pg_proc, so they come as an
            -- array.
            'aggregates', (
                SELECT coalesce(jsonb_agg(DISTINCT CASE WHEN p.pronamespace = 'pg_catalog'::regnamespace
                    THEN p.proname::text
                    ELSE p.oid::regproc::text END), '[]')
                FROM pg_proc AS p
                WHERE p.oid = ANY (ARRAY(
                    SELECT m.found[1]::oid
                    FROM pgtrickle_private.views_below(s.view_relid) AS v(oid)
                        JOIN pg_rewrite AS r ON r.ev_class = v.oid,
                        regexp_matches(r.ev_action::text, ':aggfnoid (\d+)', 'g') AS m(found)))
            ),
            'set_returning', (
                SELECT coalesce(jsonb_agg(DISTINCT CASE WHEN p.pronamespace = 'pg_catalog'::regnamespace
                    THEN p.proname::text
                    ELSE pn.nspname || '.' || p.proname END), '[]')
                FROM pg_proc AS p
                    JOIN pg_namespace AS pn ON pn.oid = p.pronamespace
                WHERE p.proretset AND p.oid = ANY (ARRAY(
                    SELECT m.found[1]::oid
                    FROM pgtrickle_private.views_below(s.view_relid) AS v(oid)
                        JOIN pg_rewrite AS r ON r.ev_class = v.oid,
                        regexp_matches(r.ev_action::text, ':funcid (\d+)', 'g') AS m(found)))
            ),
            'sources', (
                SELECT coalesce(jsonb_agg(
                    pgtrickle_private.source_facts(d.source_relid,
                        pgtrickle_private.oldest_read(d.source_relid, d.frontier))
                    || jsonb_build_object('kind', d.source_type, 'used', to_jsonb(d.columns_used), 'buffer', t.buffer)
                    ORDER BY d.source_relid), '[]')
                FROM pgtrickle.pgt_dependencies AS d
                    -- Another stream table may have captured of a source what this one cannot follow.
                    LEFT JOIN pgtrickle.pgt_change_tracking AS t
                        ON t.source_relid = d.source_relid AND d.source_type <> 'UNCAPTURED'
                WHERE d.pgt_id = s.pgt_id
            )
        )
        FROM pgtrickle.pgt_stream_tables AS s
            JOIN pg_class AS c ON c.oid = s.pgt_relid
            JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE s.pgt_id = p_pgt_id);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.planner_facts(bigint) IS
    'The defining query as PostgreSQL prints it, with its views, sources and columns: all that the planner needs.';

CREATE OR REPLACE FUNCTION pgtrickle_private.only_one(value anyelement, rows bigint)
RETURNS anyelement
LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF rows > 1 THEN
        RAISE EXCEPTION 'more than one row returned by a subquery used as an expression' USING ERRCODE = '21000';
    END IF;
    RETURN value;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.only_one(anyelement, bigint) IS
    'The value of a scalar subquery that has so many rows; error 21000 if that is more than one.';

CREATE OR REPLACE FUNCTION pgtrickle_private.add_scales(p_state jsonb, p_increment jsonb)
RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT jsonb_agg(jsonb_build_array(total.scale, total.count) ORDER BY total.scale)
    FROM (
        SELECT (pair ->> 0)::integer AS scale, sum((pair ->> 1)::bigint)::bigint AS count
        FROM jsonb_array_elements(coalesce(p_state, '[]') || coalesce(p_increment, '[]')) AS pair
        GROUP BY 1
        HAVING sum((pair ->> 1)::bigint) <> 0
    ) AS total
$$;
COMMENT ON FUNCTION pgtrickle_private.add_scales(jsonb, jsonb) IS
    'Add two histograms of numeric scales, each an array of [scale, count] pairs or NULL.';

CREATE OR REPLACE FUNCTION pgtrickle_private.max_scale(p_scales jsonb)
RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
    SELECT coalesce(max((pair ->> 0)::integer), 0)
    FROM jsonb_array_elements(coalesce(p_scales, '[]')) AS pair
$$;
COMMENT ON FUNCTION pgtrickle_private.max_scale(jsonb) IS
    'The widest scale in a histogram: the scale that PostgreSQL gives to the sum of those values.';

REVOKE ALL ON FUNCTION pgtrickle_private.views_below(regclass), pgtrickle_private.source_facts(regclass, xid8),
    pgtrickle_private.ended_before(xid, xid8), pgtrickle_private.oldest_read(regclass, pgtrickle.cut),
    pgtrickle_private.planner_facts(bigint), pgtrickle_private.only_one(anyelement, bigint),
        pgtrickle_private.add_scales(jsonb, jsonb), pgtrickle_private.max_scale(jsonb)
    FROM PUBLIC;
