-- Names of the extension pg_trickle beside ours: what is written for its catalog reads this one. Run once and never
-- edited afterwards. What follows from another column is generated; what is asked for when a stream table is created or
-- altered, or what refreshes write, is stored.

ALTER TABLE pgtrickle.pgt_stream_tables
    ADD COLUMN original_query text GENERATED ALWAYS AS (defining_query) STORED,
    ADD COLUMN requested_refresh_mode text GENERATED ALWAYS AS (refresh_mode) STORED,
    ADD COLUMN is_populated boolean GENERATED ALWAYS AS (frontier_version > 0) STORED,
    ADD COLUMN frontier jsonb,
    ADD COLUMN consecutive_errors integer GENERATED ALWAYS AS (consecutive_failures) STORED,
    ADD COLUMN needs_reinit boolean GENERATED ALWAYS AS (reinitialize_reason IS NOT NULL) STORED,
    ADD COLUMN requested_cdc_mode text CHECK (requested_cdc_mode IN ('auto', 'trigger', 'wal')),
    ADD COLUMN is_append_only boolean NOT NULL DEFAULT false,
    ADD COLUMN scc_id integer,
    ADD COLUMN last_fixpoint_iterations integer,
    ADD COLUMN max_differential_joins integer CHECK (max_differential_joins >= 0),
    ADD COLUMN max_delta_fraction double precision CHECK (max_delta_fraction BETWEEN 0 AND 1),
    ADD COLUMN pooler_compatibility_mode boolean NOT NULL DEFAULT false,
    ADD COLUMN refresh_tier text GENERATED ALWAYS AS (tier) STORED,
    ADD COLUMN effective_refresh_mode text,
    ADD COLUMN fuse_mode text GENERATED ALWAYS AS (CASE WHEN fuse_ceiling IS NULL THEN 'off' ELSE 'on' END) STORED,
    ADD COLUMN fuse_state text
        GENERATED ALWAYS AS (CASE WHEN fuse_blown_at > '-infinity' THEN 'blown' ELSE 'armed' END) STORED,
    ADD COLUMN fuse_sensitivity integer CHECK (fuse_sensitivity > 0),
    ADD COLUMN blown_at timestamptz GENERATED ALWAYS AS (NULLIF(fuse_blown_at, '-infinity')) STORED,
    ADD COLUMN blow_reason text
        GENERATED ALWAYS AS (CASE WHEN fuse_blown_at > '-infinity' THEN last_skip_reason END) STORED,
    ADD COLUMN last_error_message text GENERATED ALWAYS AS (last_error) STORED,
    ADD COLUMN last_error_at timestamptz,
    ADD COLUMN refresh_reason text,
    ADD COLUMN refresh_reason_detail text GENERATED ALWAYS AS (refresh_reason) STORED,
    ADD COLUMN freshness_deadline_ms bigint CHECK (freshness_deadline_ms > 0),
    ADD COLUMN target_freshness_mode text CHECK (target_freshness_mode IN ('INTERVAL', 'ON_COMMIT', 'MANUAL')),
    ADD COLUMN st_partition_key text,
    ADD COLUMN in_shadow_build boolean NOT NULL DEFAULT false,
    ADD COLUMN shadow_table_name text,
    ADD COLUMN st_placement text NOT NULL DEFAULT 'local',
    ADD COLUMN temporal_mode boolean NOT NULL DEFAULT false,
    ADD COLUMN storage_backend text NOT NULL DEFAULT 'heap',
    ADD COLUMN storage_fillfactor integer CHECK (storage_fillfactor BETWEEN 10 AND 100),
    ADD COLUMN post_refresh_action text NOT NULL DEFAULT 'none'
        CHECK (post_refresh_action IN ('none', 'analyze', 'reindex', 'reindex_if_drift')),
    ADD COLUMN reindex_drift_threshold double precision,
    ADD COLUMN orchestration_mode text NOT NULL DEFAULT 'MANAGED' CHECK (orchestration_mode IN ('MANAGED', 'EXTERNAL')),
    ADD COLUMN defining_search_path text GENERATED ALWAYS AS (session_settings ->> 'search_path') STORED,
    ADD COLUMN updated_at timestamptz GENERATED ALWAYS AS (GREATEST(created_at, last_refresh_at)) STORED;
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.original_query IS
    'The same as defining_query, which is kept as it was given.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.requested_refresh_mode IS 'The same as refresh_mode: what was asked for.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.is_populated IS 'Whether it was ever filled.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.frontier IS
    'How far it read each captured source, by the number of the relation: the WAL position, and when. For people only.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.consecutive_errors IS 'The same as consecutive_failures.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.needs_reinit IS
    'Whether the next refresh computes everything anew; reinitialize_reason says why.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.requested_cdc_mode IS
    'The way of capture that was asked for; triggers capture in any case.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.is_append_only IS
    'Whether its creator said that its sources only grow. Nothing depends on it.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.scc_id IS
    'Number of the cycle that it is in: that of its first stream table; NULL: it is in none.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.last_fixpoint_iterations IS
    'How many rounds its cycle took to its last fixed point.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.max_differential_joins IS
    'A limit that was asked for. Nothing depends on it.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.max_delta_fraction IS
    'A limit that was asked for. Nothing depends on it.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.pooler_compatibility_mode IS
    'Whether no notifications are sent about it.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.refresh_tier IS 'The same as tier.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.effective_refresh_mode IS
    'How it was refreshed when there was last something to do: DIFFERENTIAL or FULL.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.fuse_mode IS 'off, or on where it has a fuse_ceiling.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.fuse_state IS
    'blown while the fuse holds a delta for a decision, else armed.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.fuse_sensitivity IS
    'A number of refreshes over the ceiling that was asked for; the first one blows the fuse.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.blown_at IS 'Since when a delta is held by the fuse.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.blow_reason IS 'Why it is held.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.last_error_message IS 'The same as last_error.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.last_error_at IS 'When that error came; NULL after a good refresh.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.refresh_reason IS 'Why the last refresh did what it did.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.refresh_reason_detail IS 'The same as refresh_reason.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.freshness_deadline_ms IS
    'A freshness that was asked for, in milliseconds. Nothing depends on it.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.target_freshness_mode IS
    'How a freshness was asked for. Nothing depends on it.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.st_partition_key IS
    'A partitioning that was asked for; the table has none.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.in_shadow_build IS
    'Always false: a new query takes the place of the old one in one transaction.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.shadow_table_name IS 'Always NULL.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.st_placement IS 'Always local: no tables are distributed.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.temporal_mode IS
    'Always false: no rows of the past are kept in the table.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.storage_backend IS 'Always heap.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.storage_fillfactor IS 'The fillfactor that was asked for.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.post_refresh_action IS
    'What was asked for after each refresh. Nothing depends on it.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.reindex_drift_threshold IS
    'A limit that was asked for. Nothing depends on it.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.orchestration_mode IS
    'MANAGED, or EXTERNAL where somebody else refreshes it.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.defining_search_path IS
    'The search_path under which the defining query was given.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.updated_at IS 'When it was last refreshed, or created.';

ALTER TABLE pgtrickle.pgt_dependencies
    ADD COLUMN cdc_mode text NOT NULL DEFAULT 'TRIGGER';
COMMENT ON COLUMN pgtrickle.pgt_dependencies.cdc_mode IS 'Always TRIGGER.';

ALTER TABLE pgtrickle.pgt_change_tracking
    ADD COLUMN slot_name text
        GENERATED ALWAYS AS (CASE capture_mode WHEN 'row' THEN 'pgtrickle_row_' ELSE 'pgtrickle_insert_' END
            || source_relid::oid::text) STORED;
COMMENT ON COLUMN pgtrickle.pgt_change_tracking.slot_name IS 'Name of the trigger that captures its inserts.';

ALTER TABLE pgtrickle.pgt_refresh_history
    ADD COLUMN start_time timestamptz GENERATED ALWAYS AS (started_at) STORED,
    ADD COLUMN end_time timestamptz GENERATED ALWAYS AS (finished_at) STORED,
    ADD COLUMN rows_updated bigint NOT NULL DEFAULT 0,
    ADD COLUMN delta_row_count bigint GENERATED ALWAYS AS (delta_rows) STORED,
    ADD COLUMN was_full_fallback boolean
        GENERATED ALWAYS AS (action IN ('FULL', 'REINITIALIZE')
        AND COALESCE(strpos(reason, 'the differential refresh failed'), 0) > 0) STORED,
    ADD COLUMN refresh_reason text GENERATED ALWAYS AS (reason) STORED,
    ADD COLUMN refresh_reason_detail text GENERATED ALWAYS AS (reason) STORED,
    ADD COLUMN error_message text
        GENERATED ALWAYS AS (COALESCE(error, CASE WHEN status = 'SKIPPED' THEN reason END)) STORED,
    ADD COLUMN fixpoint_iteration integer,
    ADD COLUMN error_sqlstate text
        GENERATED ALWAYS AS (CASE WHEN starts_with(sqlstate, 'SQLSTATE ') THEN substr(sqlstate, 10) END) STORED,
    ADD COLUMN duration_ms double precision
        GENERATED ALWAYS AS ((extract(epoch FROM finished_at - started_at) * 1000)::double precision) STORED;
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.start_time IS 'The same as started_at.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.end_time IS 'The same as finished_at.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.rows_updated IS 'Always 0: a row that changed was removed and added.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.delta_row_count IS 'The same as delta_rows.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.was_full_fallback IS
    'Whether it computed everything because a differential refresh had failed.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.refresh_reason IS 'The same as reason.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.refresh_reason_detail IS 'The same as reason.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.error_message IS 'Error of a failed refresh, or why one was skipped.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.fixpoint_iteration IS
    'How many rounds the cycle of the stream table took to its fixed point; NULL: it is in none.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.error_sqlstate IS 'SQLSTATE of that error, if PostgreSQL raised it.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.duration_ms IS 'How long it took, in milliseconds.';

ALTER TABLE pgtrickle.pgt_watermarks
    ADD COLUMN updated_at timestamptz GENERATED ALWAYS AS (advanced_at) STORED,
    ADD COLUMN wal_lsn_at_advance text GENERATED ALWAYS AS ((cut).lsn::text) STORED;
COMMENT ON COLUMN pgtrickle.pgt_watermarks.updated_at IS 'The same as advanced_at.';
COMMENT ON COLUMN pgtrickle.pgt_watermarks.wal_lsn_at_advance IS 'WAL insert position when the watermark was advanced.';

ALTER TABLE pgtrickle.pgt_watermark_groups
    ADD COLUMN source_relids oid[] GENERATED ALWAYS AS (sources::oid[]) STORED,
    ADD COLUMN tolerance_secs double precision
        GENERATED ALWAYS AS (extract(epoch FROM tolerance)::double precision) STORED;
COMMENT ON COLUMN pgtrickle.pgt_watermark_groups.source_relids IS 'Its members.';
COMMENT ON COLUMN pgtrickle.pgt_watermark_groups.tolerance_secs IS
    'The tolerance in seconds; NULL: the group goes by batch numbers.';

ALTER TABLE pgtrickle.pgt_source_gates
    ADD COLUMN gated boolean GENERATED ALWAYS AS (ungated_at IS NULL) STORED;
COMMENT ON COLUMN pgtrickle.pgt_source_gates.gated IS 'Whether the gate is shut.';

ALTER TABLE pgtrickle.pgt_refresh_groups
    ADD COLUMN member_oids oid[] GENERATED ALWAYS AS (members::oid[]) STORED;
COMMENT ON COLUMN pgtrickle.pgt_refresh_groups.member_oids IS 'Its stream tables.';

ALTER TABLE pgtrickle.pgt_schema_version
    ADD COLUMN description text GENERATED ALWAYS AS (name) STORED;
COMMENT ON COLUMN pgtrickle.pgt_schema_version.description IS 'The same as name.';

DO $$
DECLARE
    kinds CONSTANT text := $kinds$ CASE
        WHEN %1$I IS NULL THEN NULL
        WHEN %2$I IN ('SQLSTATE 55P03', 'LockTimeout') THEN 'LOCK_TIMEOUT'
        WHEN %2$I = 'SQLSTATE 57014' AND strpos(%1$I, 'statement_timeout') > 0 THEN 'STATEMENT_TIMEOUT'
        WHEN %2$I = 'SQLSTATE 57014' THEN 'CANCELLED'
        WHEN %2$I = 'SQLSTATE 40P01' THEN 'DEADLOCK'
        WHEN %2$I IN ('SQLSTATE 40001', 'SerializationFailure') THEN 'SERIALIZATION'
        WHEN %2$I IN ('SQLSTATE 53200', 'SparkOutOfMemory') THEN 'OUT_OF_MEMORY'
        WHEN %2$I IN ('RefreshConflict', 'SparkLost', 'ConnectionLost', 'SQLSTATE 53300')
            OR starts_with(%2$I, 'SQLSTATE 08') OR starts_with(%2$I, 'SQLSTATE 57P') THEN 'UNKNOWN_RETRYABLE'
        ELSE 'PERMANENT' END $kinds$;
    of_table record;
    kind text;
BEGIN
    FOR of_table IN
        VALUES ('pgt_stream_tables', 'last_error', 'last_sqlstate', 'last_error_code', 'last_error_retryable'),
            ('pgt_refresh_history', 'error', 'sqlstate', 'error_code', 'retryable')
    LOOP
        kind := format(kinds, of_table.column2, of_table.column3);
        EXECUTE format('ALTER TABLE pgtrickle.%I ADD COLUMN %I text GENERATED ALWAYS AS (%s) STORED, '
            'ADD COLUMN %I boolean GENERATED ALWAYS AS '
            '((%3$s) IN (''LOCK_TIMEOUT'', ''DEADLOCK'', ''SERIALIZATION'', ''UNKNOWN_RETRYABLE'')) STORED',
            of_table.column1, of_table.column4, kind, of_table.column5);
    END LOOP;
END
$$;
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.last_error_code IS 'The class of that error.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.last_error_retryable IS 'Whether the same refresh may succeed later.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.error_code IS 'The class of that error.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.retryable IS 'Whether the same refresh might succeed later.';

-- Their columns changed, or their rows have another name now; the new ones come with the functions.
DO $$
DECLARE
    changed regprocedure;
BEGIN
    FOR changed IN
        SELECT p.oid FROM pg_catalog.pg_proc AS p
        WHERE p.pronamespace IN ('pgtrickle'::regnamespace, 'pgtrickle_private'::regnamespace) AND p.proname IN (
            'bootstrap_gate_status', 'dependency_tree', 'history_rows', 'pgt_status', 'refresh_groups', 'refresh_history',
            'source_gates', 'status_rows', 'stream_table_definition', 'watermark_groups', 'watermark_status',
            'watermarks')
    LOOP
        EXECUTE format('DROP FUNCTION %s', changed);
    END LOOP;
END
$$;
