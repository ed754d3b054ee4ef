-- Creating a stream table and waiting for its first load.

-- PostgreSQL has two errors of one SQLSTATE for a COMMIT that is not possible. A function is never allowed to commit,
-- so its sentence, in whatever language, is that of a transaction block; in a block that catches errors it is the other
-- one.
CREATE OR REPLACE FUNCTION pgtrickle_private.refuse_transaction_block(told text) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    COMMIT;
EXCEPTION WHEN invalid_transaction_termination THEN
    IF told = SQLERRM THEN
        RAISE EXCEPTION 'create_and_load_stream_table commits, which a transaction block or a function does not allow'
            USING ERRCODE = '2D000', CONSTRAINT = 'transaction_block',
                HINT = 'CALL it on its own, in autocommit mode, or SELECT pgtrickle.create_stream_table(...), commit, '
                    'and SELECT pgtrickle.refresh_stream_table(...).';
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.refuse_transaction_block(text) IS
    'Error 2D000 if this is what a COMMIT is told where the caller is not allowed to commit.';

-- What commits cannot pin its search_path. So it has the rights of its caller alone, calls everything by its schema
-- with arguments of exactly the declared types, and uses no operator and no type that the caller''s path could give
-- another meaning.
CREATE OR REPLACE PROCEDURE pgtrickle.create_and_load_stream_table(
        name text, query text, schedule text DEFAULT 'calculated', refresh_mode text DEFAULT 'AUTO',
        initialize boolean DEFAULT true, diamond_consistency text DEFAULT NULL,
        diamond_schedule_policy text DEFAULT NULL, cdc_mode text DEFAULT NULL, append_only boolean DEFAULT false,
        pooler_compatibility_mode boolean DEFAULT false, partition_by text DEFAULT NULL,
        max_differential_joins integer DEFAULT NULL, max_delta_fraction double precision DEFAULT NULL,
        output_distribution_column text DEFAULT NULL, temporal boolean DEFAULT false,
        storage_backend text DEFAULT NULL, fillfactor integer DEFAULT NULL, target_freshness text DEFAULT NULL,
        orchestration_mode text DEFAULT 'MANAGED',
        watermark_gating text DEFAULT NULL, require_watermark boolean DEFAULT NULL, tier text DEFAULT NULL,
        schedule_timezone text DEFAULT current_setting('TimeZone'), watermark_tolerance interval DEFAULT NULL,
        gate_deadline interval DEFAULT NULL, fuse_ceiling bigint DEFAULT NULL, allow_circular boolean DEFAULT NULL,
        max_fixpoint_iterations integer DEFAULT NULL, batch_tolerance bigint DEFAULT NULL,
        watermark_retention interval DEFAULT NULL, output_mode text DEFAULT NULL, window_end text DEFAULT NULL,
        statement_timeout interval DEFAULT NULL, fuse text DEFAULT NULL, fuse_sensitivity integer DEFAULT NULL,
        engine text DEFAULT NULL, frozen_after interval DEFAULT NULL, close_after_idle interval DEFAULT NULL,
        timeout interval DEFAULT NULL,
        search_path text DEFAULT current_setting('search_path'))
    LANGUAGE plpgsql
AS $$
DECLARE
    id bigint;
BEGIN
    BEGIN
        COMMIT;
    EXCEPTION WHEN invalid_transaction_termination THEN
        PERFORM pgtrickle_private.refuse_transaction_block(SQLERRM);
    END;
    id := pgtrickle.create_stream_table(
        name, query, schedule, refresh_mode, CASE WHEN initialize THEN NULL ELSE false END, diamond_consistency,
        diamond_schedule_policy, cdc_mode, append_only, pooler_compatibility_mode, partition_by,
        max_differential_joins, max_delta_fraction, output_distribution_column, temporal, storage_backend, fillfactor,
        target_freshness, orchestration_mode, watermark_gating, require_watermark, tier, schedule_timezone,
        watermark_tolerance, gate_deadline, fuse_ceiling, allow_circular, max_fixpoint_iterations, batch_tolerance,
        watermark_retention, output_mode, window_end, statement_timeout, fuse, fuse_sensitivity, engine, frozen_after,
        close_after_idle, search_path);
    COMMIT;
    IF initialize THEN
        PERFORM pgtrickle_private.refresh_or_file(name, id, timeout);
    END IF;
END
$$;
COMMENT ON PROCEDURE pgtrickle.create_and_load_stream_table(
    text, text, text, text, boolean, text, text, text, boolean, boolean, text, integer, double precision, text, boolean,
    text, integer, text, text, text, boolean, text, text, interval, interval, bigint, boolean, integer, bigint,
        interval, text,
    text, interval, text, integer, text, interval, interval, interval, text) IS
    'Creates a stream table as create_stream_table() does, commits, and waits for its first load as '
    'refresh_stream_table() waits: who CALLs it and then reads sees the rows. Where no refresher runs, a notice '
    'says so and the request is kept. A load that fails is error 55000, one that takes longer than the timeout '
    '57014; the stream table is there then, and ticks go on trying. In a transaction block it is error 2D000 and '
    'creates nothing. With initialize => false it does not wait.';
