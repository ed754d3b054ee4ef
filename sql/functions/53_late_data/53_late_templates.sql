-- The bodies of the trigger functions that judge rows by their event time, as templates.

-- Of an UPDATE the n-th new row is the n-th old one changed, unless a trigger dropped one on its way to another
-- partition.
CREATE OR REPLACE FUNCTION pgtrickle_private.late_template() RETURNS text
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT '
#variable_conflict use_variable
DECLARE
    asserted timestamptz;
    source regclass;
    paired boolean;
BEGIN
    %1$s;
    IF TG_OP = ''INSERT'' THEN
        IF (SELECT min(%2$s) FROM %3$s AS n) < asserted THEN
            %4$s ''loaded''
            FROM (
                SELECT n.*, row_number() OVER (PARTITION BY %2$s) AS pgt_copy FROM %3$s AS n WHERE %2$s < asserted
            ) AS n
            LEFT JOIN pgtrickle_private.being_replayed(source) AS r ON r.event_time = %2$s
            WHERE n.pgt_copy > COALESCE(r.copies, 0);
            PERFORM pgtrickle_private.note_replayed(source, r.event_time, array_agg(%8$s))
            FROM pgtrickle_private.being_replayed(source) AS r JOIN %3$s AS n ON %2$s = r.event_time
            GROUP BY r.event_time;
        END IF;
        RETURN NULL;
    ELSIF asserted IS NULL OR (SELECT min(%2$s) FROM %3$s AS n) >= asserted IS NOT FALSE THEN
        RETURN NULL;
    END IF;
    paired := (SELECT count(*) FROM %3$s AS n) = (SELECT count(*) FROM %5$s AS o);
    %4$s ''loaded''
    FROM (SELECT n.*, row_number() OVER () AS pgt_copy FROM %3$s AS n) AS n
    LEFT JOIN (SELECT %6$s AS pgt_before, row_number() OVER () AS pgt_copy FROM %5$s AS o) AS o USING (pgt_copy)
    WHERE %2$s < asserted AND %2$s IS DISTINCT FROM CASE WHEN paired THEN pgt_before
        ELSE (SELECT %6$s FROM %5$s AS o WHERE %6$s = %2$s LIMIT 1) END;
    RETURN NULL;
EXCEPTION WHEN OTHERS THEN
    %7$s
    RETURN NULL;
END
'
$$;
COMMENT ON FUNCTION pgtrickle_private.late_template() IS
    'Body of the functions that note late rows after a statement or a row.';

-- Called per row only where the trigger's condition found one too late, but for tables that need row triggers. What it
-- cannot judge, because the columns changed or no limit can be taken from the watermark, comes in.
CREATE OR REPLACE FUNCTION pgtrickle_private.too_late_template() RETURNS text
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT '
#variable_conflict use_variable
DECLARE
    asserted timestamptz;
    source regclass;
BEGIN
    %1$s;
    IF (%4$s < CASE WHEN asserted > ''3000-01-01 BC'' THEN asserted - %2$L::interval END
        AND NOT EXISTS (SELECT FROM pgtrickle.pgt_late_rows AS l
                        WHERE l.source_relid = source AND l.replay_xid = pg_current_xact_id()
                        AND l.status = ''kept_out'' AND l.replay_time = %4$s)
        AND NOT EXISTS (SELECT FROM pgtrickle.pgt_moved_rows AS m
                        WHERE m.event_time_id = %3$s AND m.moved_by = pg_current_xact_id())
        AND %5$L = (SELECT array_agg(a.attname::text ORDER BY a.attname) FROM pg_attribute AS a
                    WHERE a.attrelid = TG_RELID AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '''')) THEN
        %6$s ''kept_out'' FROM (SELECT NEW.*) AS n;
        RETURN NULL;
    END IF;
    RETURN NEW;
EXCEPTION WHEN OTHERS THEN
    RETURN NEW;
END
'
$$;
COMMENT ON FUNCTION pgtrickle_private.too_late_template() IS
    'Body of the function that keeps rows out which are beyond the limit.';

-- A row that moves to another partition is deleted and inserted there: the limit is for rows that come. It is in force
-- again when the next INSERT begins.
CREATE OR REPLACE FUNCTION pgtrickle_private.moved_template() RETURNS text
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT '
BEGIN
    IF TG_OP = ''INSERT'' THEN
        DELETE FROM pgtrickle.pgt_moved_rows WHERE event_time_id = %1$s AND moved_by = pg_current_xact_id_if_assigned();
        RETURN NULL;
    END IF;
    INSERT INTO pgtrickle.pgt_moved_rows (event_time_id, moved_by) VALUES (%1$s, pg_current_xact_id())
    ON CONFLICT DO NOTHING;
    RETURN OLD;
END
'
$$;
COMMENT ON FUNCTION pgtrickle_private.moved_template() IS
    'Body of the function that lets rows pass the limit on their way to another partition.';
