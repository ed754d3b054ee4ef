-- Gaps in capture can be deleted where all tables are published, though they have no key. Run once and never edited
-- afterwards.

ALTER TABLE pgtrickle.pgt_capture_gaps REPLICA IDENTITY FULL;
