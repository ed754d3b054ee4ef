-- When changes came, how long refreshes took for each of their parts, and limits beyond which an alert is raised. Run
-- once and never edited afterwards.

-- A loader holds the buffers that it wrote to, in an order of its own: so all are locked or none, and whoever waits
-- gives way before PostgreSQL ends one of the two. What another role owns gets the column once it is handed over.
DO $$
DECLARE
    buffer text;
    patience CONSTANT text := current_setting('lock_timeout');
    deadline CONSTANT timestamptz := clock_timestamp()
        + COALESCE(NULLIF(current_setting('lock_timeout')::interval, '0'), '5 minutes');
    locked boolean := false;
BEGIN
    WHILE NOT locked LOOP
        BEGIN
            PERFORM set_config('lock_timeout', '400ms', true);
            FOR buffer IN SELECT k.buffer
                FROM pgtrickle.pgt_change_tracking AS k JOIN pg_catalog.pg_class AS c ON c.oid = to_regclass(k.buffer)
                WHERE pg_catalog.pg_has_role(c.relowner, 'USAGE') ORDER BY 1 LOOP
                EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', buffer);
            END LOOP;
            locked := true;
        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
            IF clock_timestamp() > deadline THEN
                RAISE;
            END IF;
            PERFORM pg_sleep(0.1);
        END;
    END LOOP;
    PERFORM set_config('lock_timeout', patience, true);
    FOR buffer IN SELECT k.buffer
        FROM pgtrickle.pgt_change_tracking AS k JOIN pg_catalog.pg_class AS c ON c.oid = to_regclass(k.buffer)
        WHERE pg_catalog.pg_has_role(c.relowner, 'USAGE') ORDER BY 1 LOOP
        -- In two steps: nobody knows when the changes came that are there already.
        EXECUTE format('ALTER TABLE %s ADD COLUMN IF NOT EXISTS pgt_at timestamptz', buffer);
        EXECUTE format('ALTER TABLE %s ALTER COLUMN pgt_at SET DEFAULT clock_timestamp()', buffer);
    END LOOP;
END
$$;

ALTER TABLE pgtrickle.pgt_refresh_history
    ADD COLUMN refresh_xid xid8,
    ADD COLUMN phases jsonb,
    ADD COLUMN staged_bytes bigint,
    ADD COLUMN oldest_change_at timestamptz,
    ADD COLUMN newest_change_at timestamptz,
    ADD COLUMN change_clock text CHECK (change_clock IN ('commit', 'capture'));
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.refresh_xid IS 'The transaction that wrote the stream table.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.phases IS
    'How many milliseconds it spent planning, computing rows and applying them.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.staged_bytes IS
    'The size of the rows that were computed, on their way to the stream table; NULL: Spark wrote them to a table.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.oldest_change_at IS
    'When the oldest change that it took in came, by change_clock; NULL: there was none, or nobody knows.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.newest_change_at IS
    'When the newest change that it took in came, by change_clock.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.change_clock IS
    'commit: the times are those of the changes'' commits; capture: those at which they were captured, before that.';

CREATE TABLE pgtrickle.pgt_alert_limits (
    limit_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source_relid regclass,
    source_name text,
    group_id integer REFERENCES pgtrickle.pgt_watermark_groups ON DELETE CASCADE,
    lag interval CHECK (lag > interval '0'),
    late_share double precision CHECK (late_share >= 0 AND late_share < 1),
    rate double precision CHECK (rate > 0 AND rate < 'infinity'),
    idle_share double precision CHECK (idle_share >= 0 AND idle_share < 1),
    CHECK (source_relid IS NULL OR group_id IS NULL)
);
CREATE UNIQUE INDEX pgt_alert_limits_of_idx
    ON pgtrickle.pgt_alert_limits (COALESCE(source_relid, 0::regclass), COALESCE(group_id, 0));
COMMENT ON TABLE pgtrickle.pgt_alert_limits IS
    'Limits beyond which an alert is raised: of a source, of a watermark group, or, with neither, of all without their '
    'own. Written by pgtrickle.set_alert_limits().';
COMMENT ON COLUMN pgtrickle.pgt_alert_limits.limit_id IS 'Number of the entry.';
COMMENT ON COLUMN pgtrickle.pgt_alert_limits.source_relid IS 'The source, if they are those of one.';
COMMENT ON COLUMN pgtrickle.pgt_alert_limits.source_name IS 'Its qualified name when they were set.';
COMMENT ON COLUMN pgtrickle.pgt_alert_limits.group_id IS 'The watermark group, if they are those of one.';
COMMENT ON COLUMN pgtrickle.pgt_alert_limits.lag IS
    'How far a watermark may be behind the clock, those of a group apart, a stream table behind its sources; NULL: '
    'however far.';
COMMENT ON COLUMN pgtrickle.pgt_alert_limits.late_share IS
    'Which share of the rows of a source may be late; NULL: any.';
COMMENT ON COLUMN pgtrickle.pgt_alert_limits.rate IS
    'How many seconds of event time a watermark must gain per second; NULL: any number.';
COMMENT ON COLUMN pgtrickle.pgt_alert_limits.idle_share IS
    'Which share of the sources of a group may be idle; NULL: any.';

ALTER TABLE pgtrickle.pgt_alerts
    ADD COLUMN opening_posted_at timestamptz,
    ADD COLUMN closing_posted_at timestamptz;
COMMENT ON COLUMN pgtrickle.pgt_alerts.opening_posted_at IS
    'When its beginning was posted to the webhook; NULL: it was not, or there is none.';
COMMENT ON COLUMN pgtrickle.pgt_alerts.closing_posted_at IS
    'When its end was posted to the webhook; NULL: it was not, or there is none.';

-- Their columns or arguments changed; the new ones come with the functions.
DO $$
DECLARE
    changed regprocedure;
    detail text;
BEGIN
    FOR changed IN
        SELECT p.oid FROM pg_catalog.pg_proc AS p
        WHERE p.pronamespace IN ('pgtrickle'::regnamespace, 'pgtrickle_private'::regnamespace)
            AND p.proname IN ('freshness', 'raise_alerts', 'present_incidents', 'problems', 'refresh_history')
    LOOP
        EXECUTE format('DROP FUNCTION %s', changed);
    END LOOP;
EXCEPTION WHEN dependent_objects_still_exist THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
    RAISE EXCEPTION 'something of yours is made of the catalog: %', detail
        USING ERRCODE = '2BP01', CONSTRAINT = 'dependents_exist', HINT = 'Drop it, install, and create it again.';
END
$$;
