-- Limits beyond which an alert is raised: of sources, of groups, and of all that have none of their own.

CREATE OR REPLACE FUNCTION pgtrickle_private.check_alert_limits(
        lag interval, late_share double precision, rate double precision, idle_share double precision) RETURNS void
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF lag <= interval '0' THEN
        PERFORM refuse_value('lag', lag::text, 'Use an interval longer than zero.');
    ELSIF NOT COALESCE(late_share >= 0 AND late_share < 1, true) THEN
        PERFORM refuse_value('late_share', late_share::text, 'Use a share from 0 to below 1, such as 0.05.');
    ELSIF NOT COALESCE(rate > 0 AND rate < 'infinity', true) THEN
        PERFORM refuse_value('rate', rate::text, 'Use seconds of event time per second, such as 0.5.');
    ELSIF NOT COALESCE(idle_share >= 0 AND idle_share < 1, true) THEN
        PERFORM refuse_value('idle_share', idle_share::text, 'Use a share from 0 to below 1, such as 0.2.');
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_alert_limits(interval, double precision, double precision,
    double precision) IS 'Error 22023 unless these limits of alerts make sense.';

CREATE OR REPLACE FUNCTION pgtrickle_private.limited(source text, group_name text, search_path text,
        OUT source_relid regclass, OUT group_id integer)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF source IS NOT NULL AND group_name IS NOT NULL THEN
        PERFORM refuse_value('group_name', group_name, 'Name a source or a watermark group, not both.');
    ELSIF source IS NOT NULL THEN
        source_relid := source_named(source, search_path);
        IF (SELECT c.relkind IN ('r', 'p', 'f', 'm') AND c.relpersistence <> 't' AND NOT is_of_the_system(c.oid)
            FROM pg_class AS c WHERE c.oid = source_relid) IS NOT TRUE THEN
            PERFORM refuse_value('source', source, 'Name a table that a loader fills, or a stream table.');
        END IF;
    ELSIF group_name IS NOT NULL THEN
        SELECT g.group_id INTO group_id FROM pgt_watermark_groups AS g WHERE g.group_name = limited.group_name;
        IF NOT FOUND THEN
            PERFORM refuse_unknown_group(group_name);
        END IF;
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.limited(text, text, text) IS
    'What limits are about: a source, a watermark group, or with neither all of them.';

CREATE OR REPLACE FUNCTION pgtrickle.set_alert_limits(
        source text DEFAULT NULL, group_name text DEFAULT NULL, lag interval DEFAULT '5 minutes',
        late_share double precision DEFAULT 0.05, rate double precision DEFAULT 0.5,
        idle_share double precision DEFAULT 0.2, search_path text DEFAULT current_setting('search_path')) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    what CONSTANT record := limited(source, group_name, search_path);
BEGIN
    PERFORM check_alert_limits(lag, late_share, rate, idle_share);
    DELETE FROM pgt_alert_limits AS l
    WHERE l.source_relid IS NOT DISTINCT FROM what.source_relid AND l.group_id IS NOT DISTINCT FROM what.group_id;
    INSERT INTO pgt_alert_limits (source_relid, source_name, group_id, lag, late_share, rate, idle_share)
    VALUES (what.source_relid, qualified_name(what.source_relid), what.group_id, set_alert_limits.lag,
        set_alert_limits.late_share, set_alert_limits.rate, set_alert_limits.idle_share);
END
$$;
COMMENT ON FUNCTION pgtrickle.set_alert_limits(text, text, interval, double precision, double precision,
    double precision, text) IS
    'Sets the limits beyond which ticks raise an alert: of a source, of a watermark group, or with neither of all that '
    'have none of their own. A source goes by its own, else by those of its groups. NULL: no alert. lag: how far a '
    'watermark may be behind the clock, those of a group apart, a stream table behind its sources. late_share: of the '
    'rows since its event time was declared, once they are 100. rate: seconds of event time that a watermark gains '
    'per second, after 10 advances. idle_share: of the sources of a group. What is not given gets its default.';

CREATE OR REPLACE FUNCTION pgtrickle.reset_alert_limits(
        source text DEFAULT NULL, group_name text DEFAULT NULL,
        search_path text DEFAULT current_setting('search_path')) RETURNS boolean
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    what CONSTANT record := limited(source, group_name, search_path);
BEGIN
    DELETE FROM pgt_alert_limits AS l
    WHERE l.source_relid IS NOT DISTINCT FROM what.source_relid AND l.group_id IS NOT DISTINCT FROM what.group_id;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION pgtrickle.reset_alert_limits(text, text, text) IS
    'Takes the limits of a source, of a watermark group, or with neither those of all without their own; says whether '
    'there were any. Open incidents end with the next tick.';

CREATE OR REPLACE FUNCTION pgtrickle.alert_limits()
    RETURNS TABLE (source text, group_name text, lag interval, late_share double precision, rate double precision,
        idle_share double precision)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT COALESCE(qualified_name(l.source_relid), l.source_name), g.group_name, l.lag, l.late_share, l.rate,
        l.idle_share
    FROM pgt_alert_limits AS l LEFT JOIN pgt_watermark_groups AS g USING (group_id)
    ORDER BY 1 NULLS FIRST, 2 NULLS FIRST
$$;
COMMENT ON FUNCTION pgtrickle.alert_limits() IS
    'The limits beyond which an alert is raised. Those with neither source nor group_name hold for all without their '
    'own.';

CREATE OR REPLACE FUNCTION pgtrickle_private.alert_limits_of(p_source regclass)
    RETURNS TABLE (group_name text, lag interval, late_share double precision, rate double precision)
    LANGUAGE plpgsql STABLE ROWS 1 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN QUERY SELECT NULL::text, l.lag, l.late_share, l.rate FROM pgt_alert_limits AS l
        WHERE l.source_relid = p_source;
    IF NOT FOUND THEN
        RETURN QUERY SELECT g.group_name, l.lag, l.late_share, l.rate
            FROM pgt_alert_limits AS l JOIN pgt_watermark_groups AS g USING (group_id) WHERE p_source = ANY (g.sources);
    END IF;
    IF NOT FOUND THEN
        RETURN QUERY SELECT NULL::text, l.lag, l.late_share, l.rate FROM pgt_alert_limits AS l
            WHERE l.source_relid IS NULL AND l.group_id IS NULL;
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.alert_limits_of(regclass) IS
    'The limits by which a source goes: its own, or those of each of its groups that has any, or those of all.';

CREATE OR REPLACE FUNCTION pgtrickle_private.table_lag_limit(p_pgt_id bigint) RETURNS interval
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM pgt_alert_limits AS l WHERE l.lag IS NOT NULL) THEN
        RETURN NULL;
    END IF;
    RETURN (SELECT min(l.lag) FROM base_sources(p_pgt_id) AS b CROSS JOIN LATERAL alert_limits_of(b.source) AS l);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.table_lag_limit(bigint) IS
    'How far a stream table may be behind its sources: the least of the limits of what it is made of, or NULL.';
