-- What many stream tables need where few are gated. Run once and never edited afterwards.

-- They take other arguments now.
DROP FUNCTION IF EXISTS pgtrickle_private.gating_decisions(bigint);
DROP FUNCTION IF EXISTS pgtrickle_private.dropped_sources();

-- Which stream tables have frozen rows is asked at every tick.
CREATE INDEX pgt_stream_tables_frozen_idx ON pgtrickle.pgt_stream_tables (pgt_id) WHERE frozen_after IS NOT NULL;
