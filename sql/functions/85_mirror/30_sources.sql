-- What stream tables read and how it is captured, under the names of pg_trickle.

CREATE OR REPLACE FUNCTION pgtrickle.list_sources(name text, search_path text DEFAULT current_setting('search_path'))
    RETURNS TABLE (source_table text, source_oid bigint, source_type text, cdc_mode text, columns_used text)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    id CONSTANT bigint := stream_table_id(name, search_path);
BEGIN
    RETURN QUERY SELECT s.source_table, s.source_oid, s.source_type, s.cdc_mode, s.columns_used
    FROM direct_sources() AS s WHERE s.pgt_id = id ORDER BY s.source_table;
END
$$;
COMMENT ON FUNCTION pgtrickle.list_sources(text, text) IS
    'What one stream table reads directly. cdc_mode is NULL where no changes are captured, and all is read every time.';

CREATE OR REPLACE FUNCTION pgtrickle_private.direct_sources()
    RETURNS TABLE (pgt_id bigint, stream_table text, source_table text, source_oid bigint, source_type text,
        cdc_mode text, columns_used text, buffer regclass)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT t.pgt_id, format('%I.%I', t.pgt_schema, t.pgt_name), qualified_name(d.source_relid),
        d.source_relid::oid::bigint, CASE WHEN d.source_type <> 'UNCAPTURED' THEN d.source_type ELSE
            CASE c.relkind WHEN 'm' THEN 'MATVIEW' WHEN 'f' THEN 'FOREIGN_TABLE' ELSE 'TABLE' END END,
        CASE WHEN d.source_type <> 'UNCAPTURED' THEN d.cdc_mode END, array_to_string(d.columns_used, ', '),
        to_regclass(k.buffer)
    FROM pgt_dependencies AS d JOIN pgt_stream_tables AS t USING (pgt_id)
        LEFT JOIN pg_class AS c ON c.oid = d.source_relid
        LEFT JOIN pgt_change_tracking AS k ON k.source_relid = d.source_relid
$$;
COMMENT ON FUNCTION pgtrickle_private.direct_sources() IS
    'What each stream table reads directly, and where its changes are kept.';

CREATE OR REPLACE FUNCTION pgtrickle.change_buffer_sizes()
    RETURNS TABLE (stream_table text, source_table text, source_oid bigint, cdc_mode text, pending_rows bigint,
        buffer_bytes bigint)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT s.stream_table, s.source_table, s.source_oid, s.cdc_mode, pg_stat_get_live_tuples(s.buffer),
        pg_total_relation_size(s.buffer)
    FROM direct_sources() AS s WHERE s.buffer IS NOT NULL ORDER BY 1, 2
$$;
COMMENT ON FUNCTION pgtrickle.change_buffer_sizes() IS
    'The size of the change buffer of each source of each stream table. pending_rows is PostgreSQL''s estimate for the '
    'whole buffer, the same for all that read the source.';

CREATE OR REPLACE FUNCTION pgtrickle.trigger_inventory()
    RETURNS TABLE (source_table text, source_oid bigint, trigger_name text, trigger_type text, present boolean,
        enabled boolean)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET standard_conforming_strings = on
AS $$
    SELECT qualified_name(e.relation), e.relation::bigint, e.trigger_name,
        CASE WHEN e.trigger_name LIKE 'pgtrickle\_truncate\_%' THEN 'TRUNCATE' ELSE 'DML' END, t.oid IS NOT NULL,
        COALESCE(t.tgenabled = e.fires, false)
    FROM pgt_change_tracking AS k CROSS JOIN LATERAL capture_triggers(k.source_relid, k.capture_mode) AS e
        LEFT JOIN pg_trigger AS t ON t.tgrelid = e.relation AND t.tgname = e.trigger_name
    ORDER BY 1, 3
$$;
COMMENT ON FUNCTION pgtrickle.trigger_inventory() IS
    'The triggers that capture needs: whether each is there, and enabled in the sessions in which it has to fire.';

CREATE OR REPLACE FUNCTION pgtrickle.check_cdc_health()
    RETURNS TABLE (source_relid bigint, source_table text, cdc_mode text, slot_name text, lag_bytes bigint,
        confirmed_lsn text, alert text, selective_capture boolean)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT k.source_relid::oid::bigint, qualified_name(k.source_relid), 'TRIGGER', k.slot_name, NULL::bigint,
        NULL::text, capture_problem(k.source_relid), true
    FROM pgt_change_tracking AS k ORDER BY 2
$$;
COMMENT ON FUNCTION pgtrickle.check_cdc_health() IS
    'Each captured source, and in alert why changes of it may have been missed, if they may. Only columns that are '
    'read are captured.';

CREATE OR REPLACE FUNCTION pgtrickle.cdc_pause_status() RETURNS TABLE (paused boolean, capture_mode text, note text)
    LANGUAGE sql IMMUTABLE ROWS 1 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT false, 'hold', 'capture cannot be paused: every change of a source is kept until all that read it have it'
$$;
COMMENT ON FUNCTION pgtrickle.cdc_pause_status() IS 'Always false: capture cannot be paused.';

CREATE OR REPLACE FUNCTION pgtrickle.shared_buffer_stats()
    RETURNS TABLE (source_oid bigint, source_table text, consumer_count integer, consumers text,
        columns_tracked integer, safe_frontier_lsn text, buffer_rows bigint, is_partitioned boolean)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT k.source_relid::oid::bigint, qualified_name(k.source_relid), count(d.pgt_id)::integer,
        string_agg(format('%I.%I', t.pgt_schema, t.pgt_name), ', ' ORDER BY t.pgt_schema, t.pgt_name)
            FILTER (WHERE t.pgt_id IS NOT NULL),
        (SELECT count(*)::integer FROM jsonb_object_keys(k.captured_columns)), min((d.frontier).lsn)::text,
        pg_stat_get_live_tuples(to_regclass(k.buffer)), false
    FROM pgt_change_tracking AS k LEFT JOIN pgt_dependencies AS d USING (source_relid)
        LEFT JOIN pgt_stream_tables AS t ON t.pgt_id = d.pgt_id
    GROUP BY k.source_relid ORDER BY 2
$$;
COMMENT ON FUNCTION pgtrickle.shared_buffer_stats() IS
    'The change buffer of each source, and the stream tables that share it.';

CREATE OR REPLACE FUNCTION pgtrickle.slot_health()
    RETURNS TABLE (slot_name text, source_relid bigint, active boolean, retained_wal_bytes bigint, wal_status text)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT k.slot_name, k.source_relid::oid::bigint, capture_problem(k.source_relid) IS NULL, 0::bigint, 'trigger'
    FROM pgt_change_tracking AS k ORDER BY 1
$$;
COMMENT ON FUNCTION pgtrickle.slot_health() IS
    'Each captured source by the name of a trigger, and whether that is sound: no replication slot is used, so no '
    'WAL is retained.';

CREATE OR REPLACE FUNCTION pgtrickle.list_auxiliary_columns(
        name text, search_path text DEFAULT current_setting('search_path'))
    RETURNS TABLE (column_name text, data_type text, purpose text)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT NULL::text, NULL::text, NULL::text WHERE stream_table_id(name, search_path) IS NULL
$$;
COMMENT ON FUNCTION pgtrickle.list_auxiliary_columns(text, text) IS
    'No rows: a stream table has exactly the columns of its defining query.';
