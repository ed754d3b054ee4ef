-- Since which position a source is captured, and through which watermark a group let a stream table. Run once and never edited afterwards.
ALTER TABLE pgtrickle.pgt_dependencies ADD COLUMN captured_pos bigint;
COMMENT ON COLUMN pgtrickle.pgt_dependencies.captured_pos IS
    'Position in that transaction since which they are: a cut that it took later can be read. NULL: only cuts of later transactions can.';

UPDATE pgtrickle.pgt_change_tracking AS t
SET captured_columns = (SELECT COALESCE(jsonb_object_agg(c.key, jsonb_build_object('xid', c.value)), '{}') FROM jsonb_each(t.captured_columns) AS c);
COMMENT ON COLUMN pgtrickle.pgt_change_tracking.captured_columns IS
    'Captured columns, each with the transaction, and the position in it, since which it is captured.';

ALTER TABLE pgtrickle.pgt_stream_tables ADD COLUMN let_through jsonb NOT NULL DEFAULT '{}';
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.let_through IS
    'By the number of each watermark group: the newest watermark at which the group was aligned, or its sources agreed, when the stream table was refreshed.';

-- What is known of the time before: of several groups the least of their watermarks.
WITH RECURSIVE read(pgt_id, relid) AS (
    SELECT d.pgt_id, d.source_relid FROM pgtrickle.pgt_dependencies AS d
    UNION
    SELECT r.pgt_id, d.source_relid FROM read AS r JOIN pgtrickle.pgt_stream_tables AS u ON u.pgt_relid = r.relid
    JOIN pgtrickle.pgt_dependencies AS d ON d.pgt_id = u.pgt_id)
UPDATE pgtrickle.pgt_stream_tables AS t
SET let_through = (
    SELECT COALESCE(jsonb_object_agg(v.group_id, v.reached) FILTER (WHERE v.reached IS NOT NULL), '{}')
    FROM (SELECT g.group_id, CASE WHEN g.batch_tolerance IS NULL AND t.effective_watermark IS NOT NULL THEN jsonb_build_object('watermark', t.effective_watermark)
                                  WHEN g.batch_tolerance IS NOT NULL AND t.effective_batch IS NOT NULL THEN jsonb_build_object('batch', t.effective_batch) END AS reached
          FROM pgtrickle.pgt_watermark_groups AS g
          WHERE EXISTS (SELECT FROM read AS r WHERE r.pgt_id = t.pgt_id AND r.relid = ANY (g.sources))) AS v);

-- Their parameters or columns changed; the new ones come with the functions.
DO $$
DECLARE
    changed regprocedure;
BEGIN
    FOR changed IN
        SELECT p.oid FROM pg_catalog.pg_proc AS p
        WHERE p.pronamespace = 'pgtrickle'::regnamespace AND p.proname IN (
            'agreed_entries', 'base_readings', 'cut_is_readable', 'gate_group', 'gating_decision', 'groups_decision', 'hold_back_group',
            'install_capture', 'latest_entry', 'missing_entry', 'retained_cuts', 'watermark_status')
    LOOP
        EXECUTE format('DROP FUNCTION %s', changed);
    END LOOP;
END
$$;
