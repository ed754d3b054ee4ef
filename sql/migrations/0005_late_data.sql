-- Event times of sources, and the ledger of rows that came after they were promised. Run once, in one transaction, and never edited afterwards.
CREATE TABLE pgtrickle.pgt_event_times (
    event_time_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source_relid regclass NOT NULL UNIQUE,
    source_name text NOT NULL,
    column_name text NOT NULL,
    column_type text NOT NULL CHECK (column_type IN ('timestamp with time zone', 'timestamp without time zone', 'date')),
    time_zone text CHECK ((time_zone IS NULL) = (column_type = 'timestamp with time zone')),
    too_late interval CHECK (too_late > interval '0'),
    declared_at timestamptz NOT NULL,
    declared_by text NOT NULL,
    rows_before bigint NOT NULL,
    late_forgotten bigint NOT NULL DEFAULT 0
);
COMMENT ON TABLE pgtrickle.pgt_event_times IS 'Which column of a source is its event time. Written by pgtrickle.set_event_time().';
COMMENT ON COLUMN pgtrickle.pgt_event_times.event_time_id IS 'Number of the declaration; names its trigger functions.';
COMMENT ON COLUMN pgtrickle.pgt_event_times.source_relid IS 'The source.';
COMMENT ON COLUMN pgtrickle.pgt_event_times.source_name IS 'Its qualified name when its event time was declared.';
COMMENT ON COLUMN pgtrickle.pgt_event_times.column_name IS 'The column.';
COMMENT ON COLUMN pgtrickle.pgt_event_times.column_type IS 'Its type.';
COMMENT ON COLUMN pgtrickle.pgt_event_times.time_zone IS 'The time zone in which a timestamp or date is meant; NULL for timestamptz.';
COMMENT ON COLUMN pgtrickle.pgt_event_times.too_late IS 'Rows later than this are kept out of the source; NULL: none are.';
COMMENT ON COLUMN pgtrickle.pgt_event_times.declared_at IS 'When it was first declared; late rows are counted from then on.';
COMMENT ON COLUMN pgtrickle.pgt_event_times.declared_by IS 'Session user who declared it last.';
COMMENT ON COLUMN pgtrickle.pgt_event_times.rows_before IS 'Rows inserted until then, as PostgreSQL''s statistics had it.';
COMMENT ON COLUMN pgtrickle.pgt_event_times.late_forgotten IS 'Late rows counted, but trimmed from the ledger since.';

CREATE TABLE pgtrickle.pgt_late_rows (
    late_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source_relid regclass NOT NULL,
    event_time timestamptz NOT NULL,
    watermark timestamptz NOT NULL,
    row_data jsonb NOT NULL,
    arrived_at timestamptz NOT NULL,
    arrived_by text NOT NULL,
    status text NOT NULL CHECK (status IN ('loaded', 'kept_out', 'replayed', 'discarded')),
    settled_at timestamptz,
    settled_by text
);
CREATE INDEX pgt_late_rows_source_idx ON pgtrickle.pgt_late_rows (source_relid, late_id);
COMMENT ON TABLE pgtrickle.pgt_late_rows IS 'The late ledger: rows that came after their source was said to be complete through their event time.';
COMMENT ON COLUMN pgtrickle.pgt_late_rows.late_id IS 'Order of entries.';
COMMENT ON COLUMN pgtrickle.pgt_late_rows.source_relid IS 'The source.';
COMMENT ON COLUMN pgtrickle.pgt_late_rows.event_time IS 'Event time of the row.';
COMMENT ON COLUMN pgtrickle.pgt_late_rows.watermark IS 'The watermark it missed.';
COMMENT ON COLUMN pgtrickle.pgt_late_rows.row_data IS 'The row: every value as PostgreSQL writes it as text, generated columns left out.';
COMMENT ON COLUMN pgtrickle.pgt_late_rows.arrived_at IS 'When it came.';
COMMENT ON COLUMN pgtrickle.pgt_late_rows.arrived_by IS 'Session user who loaded it.';
COMMENT ON COLUMN pgtrickle.pgt_late_rows.status IS
    'loaded: it is in the source; kept_out: it waits here, later than the source''s limit; replayed: it was put into the source afterwards; discarded: it will not be.';
COMMENT ON COLUMN pgtrickle.pgt_late_rows.settled_at IS 'When it was replayed or discarded.';
COMMENT ON COLUMN pgtrickle.pgt_late_rows.settled_by IS 'Session user who did.';

-- It has a new column; the new one comes with the functions.
DROP FUNCTION IF EXISTS pgtrickle.watermarks();
