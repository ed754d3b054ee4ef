-- What keeps stream tables from being refreshed, or has them computed anew, as soon as it can be noticed.

CREATE OR REPLACE FUNCTION pgtrickle_private.lost_sources(p_pgt_id bigint) RETURNS text
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN (
        SELECT string_agg(d.source_name, ', ' ORDER BY d.source_name) FROM pgt_dependencies AS d
        WHERE d.pgt_id = p_pgt_id AND NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = d.source_relid));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.lost_sources(bigint) IS
    'The names of those sources of a stream table that no longer exist, or NULL.';

CREATE OR REPLACE FUNCTION pgtrickle_private.unreadable_of(stream_table pgtrickle.pgt_stream_tables) RETURNS text
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    name text;
BEGIN
    IF getdatabaseencoding() <> 'SQL_ASCII' THEN
        RETURN NULL;
    END IF;
    name := qualified_name(stream_table.pgt_relid);
    RETURN CASE WHEN readable_text(name) <> name
        THEN format('its name has bytes that are no UTF-8: %s', readable_text(name))
        ELSE unreadable_part(stream_table.view_relid) END;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.unreadable_of(pgtrickle.pgt_stream_tables) IS
    'What of a stream table has bytes that are no UTF-8, as a sentence, or NULL: it may have been renamed since.';

CREATE OR REPLACE FUNCTION pgtrickle_private.filtered_by_policies(stream_table pgtrickle.pgt_stream_tables)
    RETURNS text
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF hides_rows(stream_table.pgt_relid) THEN
        RETURN 'row-level security is forced on it, which hides rows from its owner';
    ELSIF EXISTS (SELECT FROM pgt_dependencies AS d JOIN pg_class AS c ON c.oid = d.source_relid
                  WHERE d.pgt_id = stream_table.pgt_id AND c.relrowsecurity)
    THEN
        RETURN (SELECT min(p.message) FROM access_problems(stream_table.view_relid) AS p WHERE p.code = '0A000');
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.filtered_by_policies(pgtrickle.pgt_stream_tables) IS
    'Which row-level security keeps a stream table from being refreshed, as a sentence, or NULL.';

CREATE OR REPLACE FUNCTION pgtrickle_private.lasting_problem(stream_table pgtrickle.pgt_stream_tables) RETURNS text
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    lost CONSTANT text := lost_sources(stream_table.pgt_id);
BEGIN
    RETURN CASE
        WHEN NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = stream_table.pgt_relid) THEN 'its table was dropped'
        WHEN lost IS NOT NULL THEN format('it reads %s, which was dropped', lost)
        WHEN NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = stream_table.view_relid)
            THEN 'its defining query was dropped by DROP ... CASCADE'
        ELSE COALESCE(unreadable_of(stream_table), filtered_by_policies(stream_table))
    END;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.lasting_problem(pgtrickle.pgt_stream_tables) IS
    'What a stream table lost without which it can never be refreshed again, or what it is called that cannot be read; '
    'or NULL.';

CREATE OR REPLACE FUNCTION pgtrickle_private.incident_remedy(kind text, subject text) RETURNS text
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT CASE kind
        WHEN 'stale' THEN 'See whether its loader still runs.'
        WHEN 'gate_deadline' THEN 'SELECT * FROM pgtrickle.watermark_status() names the source that its group waits '
            'for.'
        WHEN 'suspended' THEN format('Mend what made it fail, then SELECT pgtrickle.resume_stream_table(%L).', subject)
        WHEN 'fuse' THEN format('Look at the changes, then SELECT pgtrickle.reset_fuse(%L).', subject)
        WHEN 'lag' THEN 'SELECT * FROM pgtrickle.freshness() names what holds its changes.'
        WHEN 'watermark_lag' THEN 'See whether its loader still runs, or raise the limit: '
            || format('SELECT pgtrickle.set_alert_limits(%L, lag => ...).', subject)
        WHEN 'group_lag' THEN 'SELECT * FROM pgtrickle.watermark_status() names its slowest source.'
        WHEN 'late_share' THEN 'Have its loader wait longer before it advances the watermark.'
        WHEN 'rate' THEN 'Its loader does not keep up: give it more time or more machines.'
        WHEN 'idle_share' THEN 'See whether the loaders of its sources still run.' END
$$;
COMMENT ON FUNCTION pgtrickle_private.incident_remedy(text, text) IS 'What to do about an incident, or NULL.';

CREATE OR REPLACE FUNCTION pgtrickle.problems()
    RETURNS TABLE (stream_table text, problem text, remedy text, lasting boolean, incident boolean)
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    restored CONSTANT text := restored();
BEGIN
    RETURN QUERY
    WITH RECURSIVE lost AS (
        SELECT t.pgt_id, t.pgt_relid, format('%I.%I', t.pgt_schema, t.pgt_name) AS name, lasting_problem(t) AS problem
        FROM pgt_stream_tables AS t WHERE lasting_problem(t) IS NOT NULL),
    waiting AS (
        SELECT d.pgt_id, l.name AS culprit FROM lost AS l JOIN pgt_dependencies AS d ON d.source_relid = l.pgt_relid
        UNION
        SELECT d.pgt_id, w.culprit FROM waiting AS w JOIN pgt_stream_tables AS t ON t.pgt_id = w.pgt_id
        JOIN pgt_dependencies AS d ON d.source_relid = t.pgt_relid),
    -- Each source is looked into once, however many read it.
    missed AS MATERIALIZED (
        SELECT s.source_relid, capture_problem(s.source_relid) AS problem
        FROM (SELECT DISTINCT d.source_relid FROM pgt_dependencies AS d WHERE d.source_type <> 'UNCAPTURED') AS s),
    passing AS (
        SELECT DISTINCT ON (d.pgt_id) d.pgt_id,
            COALESCE(restored, format('changes of %s may have been missed: %s', d.source_name, m.problem)) AS problem
        FROM pgt_dependencies AS d JOIN missed AS m USING (source_relid)
        WHERE d.source_type <> 'UNCAPTURED' AND (restored IS NOT NULL OR m.problem IS NOT NULL)
        ORDER BY d.pgt_id, d.source_name)
    SELECT format('%I.%I', t.pgt_schema, t.pgt_name),
        COALESCE(l.problem, 'it waits for ' || w.culprits || ', which cannot be refreshed', p.problem),
        CASE
            WHEN t.pgt_id IN (SELECT p.pgt_id FROM plainly_dropped() AS p)
            THEN 'The next tick removes what is left of it.'
            WHEN hides_rows(t.pgt_relid) THEN format('ALTER TABLE %s NO FORCE ROW LEVEL SECURITY: its policies still '
                'hold for all but its owner.', t.pgt_relid)
            WHEN l.problem = filtered_by_policies(t)
            THEN 'Let the policies not apply to that role: ALTER ROLE ... BYPASSRLS, or for the owner of the table '
                'ALTER TABLE ... NO FORCE ROW LEVEL SECURITY.'
            WHEN l.problem = unreadable_of(t) THEN 'Rename it: the refresher reads all names and queries as UTF-8.'
            WHEN l.problem IS NOT NULL THEN CASE
                WHEN EXISTS (SELECT FROM pg_class AS c WHERE c.oid = l.pgt_relid) THEN format(
                    'Once what it reads is there again, SELECT pgtrickle.alter_stream_table(%L, query => ...) gives it '
                    'its query anew. ', l.name) ELSE '' END || format(
                'SELECT pgtrickle.drop_stream_table(%L, cascade => true) removes it with all that reads it; then '
                'create them anew.', l.name)
            WHEN w.culprits IS NULL THEN 'Its next refresh computes it anew.'
        END,
        l.problem IS NOT NULL OR w.culprits IS NOT NULL, false
    FROM pgt_stream_tables AS t
    LEFT JOIN lost AS l USING (pgt_id)
    LEFT JOIN (SELECT pgt_id, string_agg(DISTINCT culprit, ', ') AS culprits FROM waiting GROUP BY pgt_id) AS w
        USING (pgt_id)
    LEFT JOIN passing AS p USING (pgt_id)
    WHERE l.problem IS NOT NULL OR w.culprits IS NOT NULL OR p.problem IS NOT NULL
    UNION ALL
    -- An idle source need not come.
    SELECT a.subject, a.sentence, incident_remedy(a.kind, a.subject), false, true
    FROM pgt_alerts AS a WHERE a.closed_at IS NULL AND a.kind <> 'idle'
    ORDER BY 1, 5, 2;
END
$$;
COMMENT ON FUNCTION pgtrickle.problems() IS
    'Stream tables that have lost what they need (lasting), wait for one that has, or will be computed anew by the '
    'next tick since changes may have been missed or the database was restored; each with its remedy. It looks at '
    'what is there now, also where no tick has noticed it yet. Beside them the open incidents (incident), of which '
    'stream_table may be a source or a group; idle sources are none.';
