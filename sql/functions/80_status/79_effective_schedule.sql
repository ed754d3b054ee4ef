-- When stream tables are refreshed in effect, in words.

-- PL/pgSQL keeps the plans: the status asks these for every stream table.
CREATE OR REPLACE FUNCTION pgtrickle_private.schedule_distance(t pgtrickle.pgt_stream_tables) RETURNS interval
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN (
        SELECT tier_factor((t).tier) * CASE
            WHEN cron_expression((t).schedule) IS NOT NULL
            THEN (SELECT interval '366 '
                'days' / (cron_dates((t).schedule) * cardinality(c.seconds) * cardinality(c.minutes)
                    * cardinality(c.hours))::float8
                  FROM cron_fields((t).schedule) AS c)
            WHEN (t).schedule <> 'calculated' THEN (t).schedule::interval END);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.schedule_distance(pgtrickle.pgt_stream_tables) IS
    'How far the moments of a schedule are apart, on average for a cron expression; NULL for calculated and frozen.';

CREATE OR REPLACE FUNCTION pgtrickle_private.own_schedule(t pgtrickle.pgt_stream_tables) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN (
        SELECT CASE
            WHEN (t).paused THEN 'never: paused'
            WHEN (t).tier = 'frozen' THEN 'never: frozen'
            WHEN cron_expression((t).schedule) IS NOT NULL
            THEN format('%s %s%s', (t).schedule, (t).schedule_timezone,
                CASE (t).tier WHEN 'warm' THEN ', every 2nd time'
                WHEN 'cold' THEN ', every 10th time' END)
            WHEN (t).schedule <> 'calculated'
                THEN written_interval(tier_factor((t).tier)
                    * least((t).schedule::interval, interval '1000 years')) END);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.own_schedule(pgtrickle.pgt_stream_tables) IS
    'What a stream table''s schedule and tier come to, in words; NULL for one that is calculated.';

CREATE OR REPLACE FUNCTION pgtrickle_private.followed_schedule(t pgtrickle.pgt_stream_tables) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN (
        WITH RECURSIVE reached AS (
            SELECT d.source_relid FROM pgt_dependencies AS d WHERE d.pgt_id = (t).pgt_id
            UNION
            SELECT d.source_relid
            FROM reached JOIN pgt_stream_tables AS u ON u.pgt_relid = reached.source_relid
                JOIN pgt_dependencies AS d ON d.pgt_id = u.pgt_id
            WHERE u.schedule = 'calculated' AND is_running(u)
        ), upstream AS (
            SELECT reached.source_relid, u FROM reached
                LEFT JOIN pgt_stream_tables AS u ON u.pgt_relid = reached.source_relid
        )
        SELECT CASE
            WHEN (t).time_dependent
                OR EXISTS (SELECT FROM pgt_dependencies AS d
                           WHERE d.pgt_id = (t).pgt_id AND d.source_type = 'UNCAPTURED')
            THEN 'at every tick'
            WHEN NOT EXISTS (SELECT FROM upstream)
                OR EXISTS (SELECT FROM upstream WHERE (u).pgt_id IS NULL OR ((u).time_dependent AND is_running(u)))
            THEN 'when a source changes'
            ELSE COALESCE((
                SELECT format('with %s: %s', qualified_name(source_relid), own_schedule(u)) FROM upstream
                WHERE (u).schedule <> 'calculated' AND is_running(u)
                ORDER BY schedule_distance(u), source_relid LIMIT 1),
                'never: all that it reads is paused or frozen') END);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.followed_schedule(pgtrickle.pgt_stream_tables) IS
    'When changes reach a calculated stream table: at any time from a base table, else with the most frequent of the '
    'scheduled stream tables they come through.';

CREATE OR REPLACE FUNCTION pgtrickle_private.effective_schedule(t pgtrickle.pgt_stream_tables) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT COALESCE(own_schedule(t),
                    followed_schedule(t) || CASE WHEN (t).tier <> 'hot'
                        THEN format(', at most once in %s poll intervals', tier_factor((t).tier)) ELSE '' END)
$$;
COMMENT ON FUNCTION pgtrickle_private.effective_schedule(pgtrickle.pgt_stream_tables) IS
    'When a stream table is refreshed, in words: its schedule stretched by its tier, or what a calculated one follows.';
