-- Output modes: what append needs of a stream table, and what came too late for its windows.

CREATE OR REPLACE FUNCTION pgtrickle_private.check_window_end(view regclass, window_end text) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET quote_all_identifiers = off
AS $$
DECLARE
    found CONSTANT text := (SELECT format_type(a.atttypid, NULL) FROM pg_attribute AS a WHERE a.attrelid = view
        AND a.attname = window_end);
BEGIN
    IF found IS DISTINCT FROM 'timestamp with time zone' THEN
        PERFORM refuse_value('window_end', window_end, CASE WHEN found IS NULL
            THEN 'Name the column of the query that says when the window of a row ends.'
            ELSE format('The column is of type %s; cast it to timestamptz.', found) END);
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_window_end(regclass, text) IS
    'Error 22023, or 22004 for NULL, unless a window_end is a column of the query, and a timestamptz.';

CREATE OR REPLACE FUNCTION pgtrickle_private.check_output_mode(view regclass, options pgtrickle.pgt_stream_tables)
    RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF options.output_mode = 'complete' AND options.refresh_mode IN ('DIFFERENTIAL', 'DIFFERENTIAL_STRICT') THEN
        PERFORM refuse_value('refresh_mode', options.refresh_mode,
            'output_mode => ''complete'' computes the whole table: use AUTO or FULL.');
    ELSIF options.output_mode <> 'append' THEN
        -- One that has its number is there already: it may have lost its frozen_after.
        IF options.window_end IS NOT NULL AND options.frozen_after IS NULL AND options.pgt_id IS NULL THEN
            PERFORM refuse_value('window_end', options.window_end,
                'Only output_mode => ''append'' closes windows; beside that frozen_after may go by it.');
        END IF;
        RETURN;
    END IF;
    PERFORM check_window_end(view, options.window_end);
    IF options.watermark_gating NOT IN ('gate', 'hold_back') THEN
        PERFORM refuse_value('watermark_gating', options.watermark_gating,
            'Windows are closed by an effective watermark: use gate or hold_back, and a watermark group over the '
            'sources, which may be of one.');
    ELSIF options.refresh_mode = 'FULL' THEN
        PERFORM refuse_value('refresh_mode', 'FULL',
            'output_mode => ''append'' needs a differential refresh: use AUTO.');
    ELSIF options.allow_circular THEN
        PERFORM refuse_value('allow_circular', 'true',
            'What output_mode => ''append'' has emitted cannot follow from what comes later.');
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_output_mode(regclass, pgtrickle.pgt_stream_tables) IS
    'Error 22023, or 22004 for NULL, unless the output mode has what it needs.';

CREATE OR REPLACE FUNCTION pgtrickle_private.required_mode(options pgtrickle.pgt_stream_tables) RETURNS text
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT CASE WHEN options.output_mode = 'append' THEN 'DIFFERENTIAL' ELSE options.refresh_mode END
$$;
COMMENT ON FUNCTION pgtrickle_private.required_mode(pgtrickle.pgt_stream_tables) IS
    'The refresh mode that the query must allow: what append emits can only follow from changes.';

CREATE OR REPLACE FUNCTION pgtrickle_private.known_kinds(p_pgt_id bigint) RETURNS text[]
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    scope CONSTANT record := gating_scope(p_pgt_id);
BEGIN
    RETURN ARRAY(
        SELECT group_kind(g) FROM pgt_watermark_groups AS g WHERE g.group_id = ANY (scope.groups)
        UNION
        SELECT k.kind FROM pgt_watermarks AS w
            CROSS JOIN LATERAL kind_of(ROW(w.watermark, w.batch)::progress) AS k(kind)
        WHERE w.source_relid = ANY (scope.sources) AND k.kind IS NOT NULL);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.known_kinds(bigint) IS
    'What the groups and the sources of a stream table are known to go by: event time, batch numbers, both, or '
    'nothing yet.';

CREATE OR REPLACE FUNCTION pgtrickle_private.check_windows_close(p_pgt_id bigint) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF EXISTS (SELECT FROM pgt_stream_tables AS t WHERE t.pgt_id = p_pgt_id AND t.output_mode = 'append')
        AND known_kinds(p_pgt_id) = '{batch numbers}'
    THEN
        PERFORM refuse_value('output_mode', 'append',
            'Its sources go by batch numbers, but windows are closed by event time: put one that has event times into '
            'a watermark group first.');
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_windows_close(bigint) IS
    'Error 22023 where windows would never be closed: all that is known of the sources goes by batch numbers.';

CREATE OR REPLACE FUNCTION pgtrickle.late_changes(
        name text DEFAULT NULL, max_rows integer DEFAULT 100, search_path text DEFAULT current_setting('search_path'))
    RETURNS TABLE (stream_table text, window_end timestamptz, closed_through timestamptz, weight bigint, change jsonb,
        recorded_at timestamptz)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    id CONSTANT bigint := CASE WHEN name IS NOT NULL THEN stream_table_id(name, search_path) END;
BEGIN
    IF id IS NOT NULL THEN
        PERFORM check_reads_all(current_user, stream_table_relation(id), 'list late changes of');
    END IF;
    RETURN QUERY
        SELECT l.stream_table, l.window_end, l.closed_through, l.weight, l.change, l.recorded_at
        FROM pgt_readable_late_changes AS l WHERE id IS NULL OR l.pgt_id = id
        ORDER BY l.late_id DESC LIMIT row_limit(max_rows);
END
$$;
COMMENT ON FUNCTION pgtrickle.late_changes(text, integer, text) IS
    'What came too late for windows that output mode append had emitted, or for rows that frozen_after had frozen, '
    'newest first: of one stream table, or of all of which the caller may read every row.';

CREATE OR REPLACE FUNCTION pgtrickle_private.is_kept_in_place(stream_table pgtrickle.pgt_stream_tables) RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    scope CONSTANT record := gating_scope(stream_table.pgt_id);
BEGIN
    RETURN stream_table.watermark_gating = 'hold_back' AND EXISTS (
        SELECT FROM unnest(scope.groups) AS g
            CROSS JOIN LATERAL hold_back_group(stream_table.pgt_id, g, scope.upstream) AS h
        WHERE h.let_through IS NULL AND NOT h.effective IS NULL
            AND closing_by_clock(stream_table.pgt_id, scope.gating, scope.groups, scope.upstream) IS NULL);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.is_kept_in_place(pgtrickle.pgt_stream_tables) IS
    'Whether a filled hold_back stream table stays where it is, since it cannot be read where the sources of one of '
    'its groups agree.';

CREATE OR REPLACE FUNCTION pgtrickle_private.silent_since(groups integer[], upstream bigint[]) RETURNS timestamptz
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN greatest(
        (SELECT max(greatest(w.advanced_at, s.ungated_at))
         FROM pgt_watermark_groups AS g CROSS JOIN unnest(g.sources) AS m(source)
         JOIN pgt_watermarks AS w ON w.source_relid = m.source
         LEFT JOIN pgt_source_gates AS s ON s.source_relid = m.source
         WHERE g.group_id = ANY (groups)),
        (SELECT max(d.changed_at) FROM pgt_dependencies AS d WHERE d.pgt_id = ANY (upstream)));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.silent_since(integer[], bigint[]) IS
    'When something came last: a watermark of these groups moved, a source gate opened, or one of these stream tables '
    'took in changes.';

-- The clock stands for the watermark that nobody advances any more, as long as the silence lasts: a row may come as
-- late after its time as the silence was long. Whole minutes are enough for windows, and are not written at every tick.
CREATE OR REPLACE FUNCTION pgtrickle_private.closing_by_clock(p_pgt_id bigint, gating text, groups integer[],
    upstream bigint[]) RETURNS timestamptz
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp SET TimeZone = 'UTC'
AS $$
DECLARE
    patience CONSTANT interval := (SELECT t.close_after_idle FROM pgt_stream_tables AS t
        WHERE t.pgt_id = p_pgt_id AND t.frontier_version > 0);
BEGIN
    -- What stream tables below hold back is not there yet, and no clock brings it.
    IF patience IS NULL OR gating = 'hold_back' AND cardinality(upstream) > 1
        OR (now() - silent_since(groups, upstream) > patience) IS NOT TRUE THEN
        RETURN NULL;
    END IF;
    RETURN date_trunc(CASE WHEN patience < interval '1 minute' THEN 'second' ELSE 'minute' END, now() - patience);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.closing_by_clock(bigint, text, integer[], bigint[]) IS
    'Through when a stream table closes windows because nothing came for its close_after_idle, or NULL.';

CREATE OR REPLACE FUNCTION pgtrickle.windows()
    RETURNS TABLE (stream_table text, window_end text, closed_through timestamptz, late_changes bigint, waits_for text,
        close_after_idle interval, silent_since timestamptz)
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN QUERY
        SELECT format('%I.%I', t.pgt_schema, t.pgt_name), t.window_end, t.effective_watermark,
               (SELECT count(*) FROM pgt_late_changes AS l WHERE l.pgt_id = t.pgt_id),
               CASE WHEN d.decision <> 'run' OR is_kept_in_place(t) THEN d.reason
                    WHEN d.effective_watermark IS NOT NULL THEN NULL
                    WHEN 'event time' = ANY (known_kinds(t.pgt_id)) THEN d.reason
                    ELSE 'an event time: no watermark group that goes by one concerns it' END,
               t.close_after_idle, silent_since(s.groups, s.upstream)
        FROM pgt_stream_tables AS t CROSS JOIN LATERAL gating_decision(t.pgt_id) AS d
            CROSS JOIN LATERAL gating_scope(t.pgt_id) AS s
            WHERE t.output_mode = 'append' ORDER BY 1;
END
$$;
COMMENT ON FUNCTION pgtrickle.windows() IS
    'Every stream table that emits closed windows: the column that ends them, through when they are closed, how many '
    'changes came too late, why none can be closed now, NULL where they can, after how long a silence the clock closes '
    'them, and when something came last.';
