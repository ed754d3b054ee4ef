-- The catalog: schemas, types, tables, indexes and grants. Run once, in one transaction, and never edited afterwards.
-- Refuses before it creates: the same check runs again with the functions, at every install.
DO $$
BEGIN
    IF current_setting('server_version_num')::integer < 150000 THEN
        RAISE EXCEPTION 'pytrickle needs PostgreSQL 15 or newer, this server is %', current_setting('server_version')
            USING ERRCODE = '0A000', CONSTRAINT = 'server_too_old', HINT = 'Upgrade the server, or install into a newer one.';
    END IF;
    IF EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'pg_trickle') THEN
        RAISE EXCEPTION 'the extension pg_trickle is installed in this database and owns the same names'
            USING ERRCODE = '55000', CONSTRAINT = 'pg_trickle_installed',
                  HINT = 'Use another database, or DROP EXTENSION pg_trickle first.';
    END IF;
END
$$;

CREATE SCHEMA pgtrickle;
CREATE SCHEMA pgtrickle_changes;
CREATE SCHEMA pgtrickle_state;
COMMENT ON SCHEMA pgtrickle IS 'pytrickle: catalog and functions.';
COMMENT ON SCHEMA pgtrickle_changes IS 'pytrickle: change buffers, capture functions and staging tables.';
COMMENT ON SCHEMA pgtrickle_state IS 'pytrickle: defining queries as views, and aggregate state.';

REVOKE ALL ON SCHEMA pgtrickle, pgtrickle_changes, pgtrickle_state FROM PUBLIC;
GRANT USAGE ON SCHEMA pgtrickle TO PUBLIC;

CREATE TYPE pgtrickle.cut AS (snapshot pg_snapshot, xid xid8, pos bigint, lsn pg_lsn);
COMMENT ON TYPE pgtrickle.cut IS
    'A set of changes: those visible in the snapshot, and those of transaction xid up to position pos. See pgtrickle.covers().';
COMMENT ON COLUMN pgtrickle.cut.snapshot IS 'Changes of transactions visible in this snapshot are covered.';
COMMENT ON COLUMN pgtrickle.cut.xid IS 'The transaction that took the cut, never visible in its own snapshot; NULL when it wrote nothing.';
COMMENT ON COLUMN pgtrickle.cut.pos IS 'Changes of transaction xid up to this position are covered.';
COMMENT ON COLUMN pgtrickle.cut.lsn IS
    'WAL insert position when the cut was taken: not below that of any covered change. Informative, NULL where the platform refuses it.';

-- CACHE 1: positions must grow within a transaction even when a savepoint or a trigger is in between.
CREATE SEQUENCE pgtrickle.change_pos AS bigint CACHE 1;
COMMENT ON SEQUENCE pgtrickle.change_pos IS 'Order of captured statements and watermark advances within one transaction.';

CREATE TABLE pgtrickle.pgt_schema_version (
    version integer PRIMARY KEY,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE pgtrickle.pgt_schema_version IS 'Migrations applied to this catalog.';
COMMENT ON COLUMN pgtrickle.pgt_schema_version.version IS 'Number of the migration file.';
COMMENT ON COLUMN pgtrickle.pgt_schema_version.name IS 'Name of the migration file.';
COMMENT ON COLUMN pgtrickle.pgt_schema_version.checksum IS 'Digest of the file as it was applied.';
COMMENT ON COLUMN pgtrickle.pgt_schema_version.applied_at IS 'When it was applied.';

CREATE TABLE pgtrickle.pgt_stream_tables (
    pgt_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    pgt_relid regclass NOT NULL UNIQUE,
    pgt_schema text NOT NULL,
    pgt_name text NOT NULL,
    defining_query text NOT NULL,
    view_relid regclass NOT NULL,
    schedule text NOT NULL DEFAULT 'calculated',
    refresh_mode text NOT NULL DEFAULT 'AUTO' CHECK (refresh_mode IN ('AUTO', 'DIFFERENTIAL', 'FULL')),
    watermark_gating text NOT NULL DEFAULT 'auto' CHECK (watermark_gating IN ('auto', 'none', 'gate', 'hold_back')),
    require_watermark boolean NOT NULL DEFAULT false,
    status text NOT NULL DEFAULT 'INITIALIZING' CHECK (status IN ('INITIALIZING', 'ACTIVE', 'ERROR')),
    session_settings jsonb NOT NULL,
    full_reason text,
    time_dependent boolean NOT NULL DEFAULT false,
    frontier_version bigint NOT NULL DEFAULT 0,
    data_timestamp timestamptz,
    effective_watermark timestamptz,
    last_refresh_at timestamptz,
    last_skip_reason text,
    last_error text,
    reinitialize_reason text,
    refresh_xid xid8,
    system_identifier bigint NOT NULL,
    view_stamp text,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by text NOT NULL DEFAULT session_user,
    UNIQUE (pgt_schema, pgt_name)
);
COMMENT ON TABLE pgtrickle.pgt_stream_tables IS 'One row per stream table.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.pgt_id IS 'Number of the stream table; names its hidden view, state and staging table.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.pgt_relid IS 'The table that holds the rows.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.pgt_schema IS 'Schema of that table.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.pgt_name IS 'Name of that table.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.defining_query IS 'The defining query as the user gave it.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.view_relid IS 'Hidden view made from the defining query.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.schedule IS '''calculated'' (when a source changed) or an interval.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.refresh_mode IS 'AUTO, DIFFERENTIAL or FULL.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.watermark_gating IS 'auto, none, gate or hold_back.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.require_watermark IS 'Wait, instead of reading on, while a source of an overlapping group has no usable watermark.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.status IS 'INITIALIZING until first filled, ACTIVE, or ERROR after a failed refresh.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.session_settings IS 'Settings of the creator that change what the defining query means; pinned whenever it is evaluated.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.full_reason IS 'Why only a FULL refresh is possible, as far as the database knows; otherwise NULL.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.time_dependent IS 'The result may change although no source does.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.frontier_version IS 'Counts refreshes; compared and set by each.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.data_timestamp IS 'When the snapshot was taken that the contents show.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.effective_watermark IS 'The contents are complete through this event time; never moves back.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.last_refresh_at IS 'When the last refresh ended.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.last_skip_reason IS 'Why the last refresh was skipped; a skip enters the history once per change of reason.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.last_error IS 'Error of the last refresh; NULL after a good one.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.reinitialize_reason IS 'Not NULL: changes may have been missed, the next refresh computes everything anew.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.refresh_xid IS 'The one transaction that may write the stream table.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.system_identifier IS 'Cluster in which the frontiers are valid.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.view_stamp IS 'Differs once a view or function below the defining query was replaced.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.created_at IS 'When it was created.';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.created_by IS 'Session user who created it.';

CREATE TABLE pgtrickle.pgt_dependencies (
    pgt_id integer NOT NULL REFERENCES pgtrickle.pgt_stream_tables ON DELETE CASCADE,
    source_relid regclass NOT NULL,
    source_name text NOT NULL,
    source_type text NOT NULL CHECK (source_type IN ('TABLE', 'STREAM_TABLE', 'UNCAPTURED')),
    columns_used text[] NOT NULL,
    frontier pgtrickle.cut,
    captured_xid xid8,
    PRIMARY KEY (pgt_id, source_relid)
);
CREATE INDEX pgt_dependencies_source_idx ON pgtrickle.pgt_dependencies (source_relid);
COMMENT ON TABLE pgtrickle.pgt_dependencies IS 'Direct sources of each stream table, after expansion of views.';
COMMENT ON COLUMN pgtrickle.pgt_dependencies.pgt_id IS 'The stream table.';
COMMENT ON COLUMN pgtrickle.pgt_dependencies.source_relid IS 'The relation it reads.';
COMMENT ON COLUMN pgtrickle.pgt_dependencies.source_name IS 'Its qualified name when the dependency was recorded.';
COMMENT ON COLUMN pgtrickle.pgt_dependencies.source_type IS 'TABLE, STREAM_TABLE, or UNCAPTURED (read whole at every refresh).';
COMMENT ON COLUMN pgtrickle.pgt_dependencies.columns_used IS 'Columns the defining query reads; empty if it only counts rows.';
COMMENT ON COLUMN pgtrickle.pgt_dependencies.frontier IS 'The cut of the source that the stream table shows; NULL before the first refresh.';
COMMENT ON COLUMN pgtrickle.pgt_dependencies.captured_xid IS 'Transaction since which every column used is captured.';

CREATE TABLE pgtrickle.pgt_change_tracking (
    source_relid regclass PRIMARY KEY,
    source_name text NOT NULL,
    buffer text NOT NULL UNIQUE,
    capture_mode text NOT NULL CHECK (capture_mode IN ('statement', 'row')),
    captured_columns jsonb NOT NULL,
    relations oid[] NOT NULL,
    cleaned_through pgtrickle.cut[] NOT NULL DEFAULT '{}',
    installed_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE pgtrickle.pgt_change_tracking IS 'One row per captured source.';
COMMENT ON COLUMN pgtrickle.pgt_change_tracking.source_relid IS 'The captured relation.';
COMMENT ON COLUMN pgtrickle.pgt_change_tracking.source_name IS 'Its qualified name when capture was installed.';
COMMENT ON COLUMN pgtrickle.pgt_change_tracking.buffer IS 'Qualified name of its change buffer.';
COMMENT ON COLUMN pgtrickle.pgt_change_tracking.capture_mode IS 'statement, or row where statement triggers would miss changes.';
COMMENT ON COLUMN pgtrickle.pgt_change_tracking.captured_columns IS 'Captured columns, each with the transaction since which it is captured.';
COMMENT ON COLUMN pgtrickle.pgt_change_tracking.relations IS 'The source and its partitions or children when capture was installed, sorted.';
COMMENT ON COLUMN pgtrickle.pgt_change_tracking.cleaned_through IS 'Changes covered by all of these cuts have been deleted from the buffer.';
COMMENT ON COLUMN pgtrickle.pgt_change_tracking.installed_at IS 'When capture was last installed or repaired.';

CREATE TABLE pgtrickle.pgt_capture_gaps (
    source_relid regclass NOT NULL,
    relation text NOT NULL,
    reason text NOT NULL,
    noted_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE pgtrickle.pgt_capture_gaps IS 'Changes that capture could not record exactly; the consumers are reinitialized.';
COMMENT ON COLUMN pgtrickle.pgt_capture_gaps.source_relid IS 'The captured relation.';
COMMENT ON COLUMN pgtrickle.pgt_capture_gaps.relation IS 'The relation that was changed: the source, or a partition or child of it.';
COMMENT ON COLUMN pgtrickle.pgt_capture_gaps.reason IS 'What happened.';
COMMENT ON COLUMN pgtrickle.pgt_capture_gaps.noted_at IS 'When.';

CREATE TABLE pgtrickle.pgt_watermarks (
    source_relid regclass PRIMARY KEY,
    source_name text NOT NULL,
    watermark timestamptz NOT NULL,
    cut pgtrickle.cut NOT NULL,
    advanced_at timestamptz NOT NULL,
    last_seen_at timestamptz NOT NULL,
    advanced_by text NOT NULL
);
COMMENT ON TABLE pgtrickle.pgt_watermarks IS 'Latest watermark per source. Written by pgtrickle.advance_watermark() only.';
COMMENT ON COLUMN pgtrickle.pgt_watermarks.source_relid IS 'The source.';
COMMENT ON COLUMN pgtrickle.pgt_watermarks.source_name IS 'Its qualified name at the last advance.';
COMMENT ON COLUMN pgtrickle.pgt_watermarks.watermark IS 'The source is complete through this event time.';
COMMENT ON COLUMN pgtrickle.pgt_watermarks.cut IS 'What the source held when the loader said so.';
COMMENT ON COLUMN pgtrickle.pgt_watermarks.advanced_at IS 'When the watermark last moved.';
COMMENT ON COLUMN pgtrickle.pgt_watermarks.last_seen_at IS 'When the loader last called, even with an equal watermark.';
COMMENT ON COLUMN pgtrickle.pgt_watermarks.advanced_by IS 'Session user who moved it.';

CREATE TABLE pgtrickle.pgt_watermark_history (
    history_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source_relid regclass NOT NULL,
    watermark timestamptz NOT NULL,
    cut pgtrickle.cut NOT NULL,
    advanced_at timestamptz NOT NULL,
    advanced_by text NOT NULL,
    UNIQUE (source_relid, watermark)
);
COMMENT ON TABLE pgtrickle.pgt_watermark_history IS 'Every advance with its cut, append-only: hold_back finds the cut of an earlier watermark here.';
COMMENT ON COLUMN pgtrickle.pgt_watermark_history.history_id IS 'Order of entries.';
COMMENT ON COLUMN pgtrickle.pgt_watermark_history.source_relid IS 'The source.';
COMMENT ON COLUMN pgtrickle.pgt_watermark_history.watermark IS 'The source is complete through this event time ...';
COMMENT ON COLUMN pgtrickle.pgt_watermark_history.cut IS '... at this cut.';
COMMENT ON COLUMN pgtrickle.pgt_watermark_history.advanced_at IS 'When it was advanced.';
COMMENT ON COLUMN pgtrickle.pgt_watermark_history.advanced_by IS 'Session user who advanced it.';

CREATE TABLE pgtrickle.pgt_watermark_groups (
    group_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    group_name text NOT NULL UNIQUE,
    sources regclass[] NOT NULL CHECK (cardinality(sources) > 0),
    tolerance interval NOT NULL DEFAULT '0' CHECK (tolerance >= interval '0'),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE pgtrickle.pgt_watermark_groups IS 'Sources whose watermarks must agree.';
COMMENT ON COLUMN pgtrickle.pgt_watermark_groups.group_id IS 'Number of the group.';
COMMENT ON COLUMN pgtrickle.pgt_watermark_groups.group_name IS 'Name of the group.';
COMMENT ON COLUMN pgtrickle.pgt_watermark_groups.sources IS 'Its members.';
COMMENT ON COLUMN pgtrickle.pgt_watermark_groups.tolerance IS 'Largest distance between the watermarks that still counts as agreement.';
COMMENT ON COLUMN pgtrickle.pgt_watermark_groups.created_at IS 'When it was created.';

CREATE TABLE pgtrickle.pgt_refresh_history (
    refresh_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    pgt_id integer NOT NULL REFERENCES pgtrickle.pgt_stream_tables ON DELETE CASCADE,
    action text NOT NULL CHECK (action IN ('NO_DATA', 'DIFFERENTIAL', 'FULL', 'REINITIALIZE', 'SKIP')),
    status text NOT NULL CHECK (status IN ('COMPLETED', 'FAILED', 'SKIPPED')),
    initiated_by text NOT NULL CHECK (initiated_by IN ('SCHEDULER', 'MANUAL', 'REQUEST')),
    reason text,
    started_at timestamptz NOT NULL,
    finished_at timestamptz,
    delta_rows bigint,
    rows_inserted bigint,
    rows_deleted bigint,
    effective_watermark timestamptz,
    data_timestamp timestamptz,
    error text
);
CREATE INDEX pgt_refresh_history_table_idx ON pgtrickle.pgt_refresh_history (pgt_id, refresh_id DESC);
CREATE INDEX pgt_refresh_history_started_idx ON pgtrickle.pgt_refresh_history (started_at);
COMMENT ON TABLE pgtrickle.pgt_refresh_history IS 'What each refresh did, and why it did not.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.refresh_id IS 'Order of entries.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.pgt_id IS 'The stream table.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.action IS 'NO_DATA, DIFFERENTIAL, FULL, REINITIALIZE or SKIP.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.status IS 'COMPLETED, FAILED or SKIPPED.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.initiated_by IS 'SCHEDULER, MANUAL or REQUEST.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.reason IS 'One sentence: why this action.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.started_at IS 'When it began.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.finished_at IS 'When it ended.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.delta_rows IS 'Rows of the delta that was applied.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.rows_inserted IS 'Rows added to the stream table.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.rows_deleted IS 'Rows removed from the stream table.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.effective_watermark IS 'Effective watermark after the refresh.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.data_timestamp IS 'When the snapshot was taken.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_history.error IS 'Error of a failed refresh.';

CREATE TABLE pgtrickle.pgt_refresh_requests (
    request_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    pgt_id integer NOT NULL REFERENCES pgtrickle.pgt_stream_tables ON DELETE CASCADE,
    requested_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    requested_by text NOT NULL DEFAULT session_user
);
COMMENT ON TABLE pgtrickle.pgt_refresh_requests IS 'Refreshes asked for from SQL; a row is deleted when it has been served.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_requests.request_id IS 'Order of requests.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_requests.pgt_id IS 'The stream table to refresh.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_requests.requested_at IS 'When it was asked for.';
COMMENT ON COLUMN pgtrickle.pgt_refresh_requests.requested_by IS 'Session user who asked.';
