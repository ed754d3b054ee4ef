-- How long a refresh may take. Run once and never edited afterwards.
ALTER TABLE pgtrickle.pgt_stream_tables ADD COLUMN statement_timeout interval CHECK (statement_timeout > interval '0');
COMMENT ON COLUMN pgtrickle.pgt_stream_tables.statement_timeout IS
    'How long one statement of its refresh may run; NULL: as long as the refresher, or the server, lets it.';

-- Their parameters changed; the new ones come with the functions.
DROP FUNCTION IF EXISTS pgtrickle.create_stream_table(
    text, text, text, text, text, boolean, text, text, interval, interval, text, text, bigint, boolean, integer, bigint, interval, text, text, text);
DROP FUNCTION IF EXISTS pgtrickle.alter_stream_table(
    text, text, text, text, boolean, text, text, interval, interval, text, text, bigint, boolean, integer, text, bigint, interval, text[], text);
