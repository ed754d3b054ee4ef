-- What is written for the pg_trickle extension runs here. Run once and never edited afterwards.

-- Batch numbers have a function of their own, advance_batch(): beside these two no driver could find out the types of
-- advance_watermark($1, $2).
DROP FUNCTION IF EXISTS pgtrickle.advance_watermark(regclass, bigint);
DROP FUNCTION IF EXISTS pgtrickle.advance_watermark(regclass, text);
