-- Diamonds: stream tables that are committed together as they are read through two ways. The refresher works them out
-- by itself, in pytrickle/schedule/units.py; a test holds that both find the same.

CREATE OR REPLACE FUNCTION pgtrickle_private.diamond_paths()
    RETURNS TABLE (meeting oid, root oid, node oid, dominates boolean)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    WITH RECURSIVE edge AS (
        SELECT DISTINCT d.source_relid::oid AS source, t.pgt_relid::oid AS reader
        FROM pgt_dependencies AS d JOIN pgt_stream_tables AS t USING (pgt_id)
    ), top AS (
        SELECT t.pgt_relid::oid AS meeting FROM pgt_stream_tables AS t
        WHERE t.diamond_consistency = 'atomic' AND (
            SELECT count(*) > 1 AND bool_or(d.source_type = 'STREAM_TABLE') FROM pgt_dependencies AS d
            WHERE d.pgt_id = t.pgt_id)
    ), above(meeting, node) AS (
        SELECT t.meeting, e.source FROM top AS t JOIN edge AS e ON e.reader = t.meeting AND e.source <> t.meeting
        UNION
        SELECT a.meeting, e.source FROM above AS a JOIN edge AS e ON e.reader = a.node AND e.source <> a.meeting
    ), start AS (
        SELECT a.meeting, a.node AS root FROM above AS a
        WHERE NOT EXISTS (SELECT FROM pgt_stream_tables AS t WHERE t.pgt_relid = a.node)
    ), around(meeting, root, avoided, node) AS (
        SELECT s.meeting, s.root, a.node, s.root FROM start AS s JOIN above AS a USING (meeting) WHERE a.node <> s.root
        UNION
        SELECT w.meeting, w.root, w.avoided, e.reader FROM around AS w JOIN edge AS e ON e.source = w.node
        WHERE e.reader <> w.avoided AND w.node <> w.meeting
            AND (e.reader = w.meeting OR (w.meeting, e.reader) IN (SELECT a.meeting, a.node FROM above AS a))
    ), below(meeting, root, node) AS (
        SELECT s.meeting, s.root, s.root FROM start AS s
        UNION
        SELECT b.meeting, b.root, e.reader FROM below AS b JOIN edge AS e ON e.source = b.node
        WHERE (b.meeting, e.reader) IN (SELECT a.meeting, a.node FROM above AS a)
    )
    SELECT b.meeting, b.root, b.node, NOT EXISTS (
        SELECT FROM around AS w
        WHERE (w.meeting, w.root, w.avoided, w.node) = (b.meeting, b.root, b.node, b.meeting))
    FROM below AS b
$$;
COMMENT ON FUNCTION pgtrickle_private.diamond_paths() IS
    'For each stream table that may be read through two ways, and each base table above it, what lies on the ways '
    'between, and whether all ways lead through it.';

CREATE OR REPLACE FUNCTION pgtrickle_private.diamond_members() RETURNS TABLE (meeting oid, member oid)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    WITH RECURSIVE edge AS (
        SELECT DISTINCT d.source_relid::oid AS source, t.pgt_relid::oid AS reader
        FROM pgt_dependencies AS d JOIN pgt_stream_tables AS t USING (pgt_id)
    ), path AS MATERIALIZED (
        SELECT * FROM diamond_paths()
    ), beyond(meeting, root, dominator, node) AS (
        SELECT p.meeting, p.root, p.node, e.reader FROM path AS p JOIN edge AS e ON e.source = p.node WHERE p.dominates
        UNION
        SELECT b.meeting, b.root, b.dominator, e.reader FROM beyond AS b JOIN edge AS e ON e.source = b.node
        WHERE b.node <> b.meeting
    ), found AS (
        SELECT DISTINCT p.meeting, p.node FROM path AS p
        WHERE NOT p.dominates AND NOT EXISTS (
            SELECT FROM path AS d WHERE d.dominates AND (d.meeting, d.root) = (p.meeting, p.root)
                AND NOT EXISTS (SELECT FROM beyond AS b
                                WHERE (b.meeting, b.root, b.dominator, b.node) = (p.meeting, p.root, d.node, p.node)))
    )
    SELECT f.meeting, f.node FROM found AS f UNION SELECT f.meeting, f.meeting FROM found AS f
$$;
COMMENT ON FUNCTION pgtrickle_private.diamond_members() IS
    'The stream tables that read something through two ways, each with all between it and where these ways part.';

CREATE OR REPLACE FUNCTION pgtrickle.diamond_groups()
    RETURNS TABLE (group_id integer, member_name text, member_schema text, is_convergence boolean, epoch bigint,
        schedule_policy text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    WITH RECURSIVE diamond AS MATERIALIZED (
        SELECT m.meeting, m.member FROM diamond_members() AS m
    ), step AS (
        -- Tied stream tables reach each other both ways, so that what lies between two groups joins them.
        SELECT d.source_relid::oid AS a, t.pgt_relid::oid AS b
        FROM pgt_dependencies AS d JOIN pgt_stream_tables AS t USING (pgt_id)
        UNION SELECT d.meeting, d.member FROM diamond AS d UNION SELECT d.member, d.meeting FROM diamond AS d
    ), onward(member, node) AS (
        SELECT DISTINCT d.member, d.member FROM diamond AS d
        UNION
        SELECT o.member, s.b FROM onward AS o JOIN step AS s ON s.a = o.node
    ), back(member, node) AS (
        SELECT DISTINCT d.member, d.member FROM diamond AS d
        UNION
        SELECT o.member, s.a FROM back AS o JOIN step AS s ON s.b = o.node
    ), unit AS (
        SELECT o.node, min(t.pgt_id) AS first
        FROM onward AS o JOIN back AS b USING (member, node) JOIN pgt_stream_tables AS t ON t.pgt_relid = o.member
        GROUP BY o.node
    )
    SELECT dense_rank() OVER (ORDER BY u.first)::integer, t.pgt_name, t.pgt_schema,
        EXISTS (SELECT FROM diamond AS d WHERE d.meeting = u.node), 0::bigint,
        CASE WHEN bool_or(t.diamond_schedule_policy = 'slowest' AND EXISTS (
            SELECT FROM diamond AS d WHERE d.meeting = u.node)) OVER (PARTITION BY u.first) THEN 'slowest'
            ELSE 'fastest' END
    FROM unit AS u JOIN pgt_stream_tables AS t ON t.pgt_relid = u.node ORDER BY 1, t.pgt_id
$$;
COMMENT ON FUNCTION pgtrickle.diamond_groups() IS
    'The stream tables that are committed together as one of them (is_convergence) reads something through two ways. '
    'epoch is not counted, and always 0.';
