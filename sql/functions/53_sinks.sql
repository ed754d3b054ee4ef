-- Sinks: batches of a stream are staged by many, and committed once.

CREATE OR REPLACE FUNCTION pgtrickle.sink_number(source regclass, sink text) RETURNS integer
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
BEGIN
    PERFORM check_loader(source, 'load batches into');
    IF sink IS NULL OR sink = '' THEN
        PERFORM refuse_value('sink', sink, 'Give the sink a name.');
    END IF;
    IF NOT EXISTS (SELECT FROM pgt_sink_batches AS s WHERE s.source_relid = source AND s.sink_name = sink) THEN
        INSERT INTO pgt_sink_batches (source_relid, sink_name) VALUES (source, sink) ON CONFLICT DO NOTHING;
    END IF;
    RETURN (SELECT s.sink_id FROM pgt_sink_batches AS s WHERE s.source_relid = source AND s.sink_name = sink);
END
$$;
COMMENT ON FUNCTION pgtrickle.sink_number(regclass, text) IS
    'The number of a sink, which is made when it is first named. Refuses a role that may not insert into the source.';

CREATE OR REPLACE FUNCTION pgtrickle.create_sink_staging(source regclass, sink text, columns text[]) RETURNS text
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
DECLARE
    staging text := format('sink_%s_%s', sink_number(source, sink), replace(gen_random_uuid()::text, '-', ''));
    unknown text := (SELECT min(c.name) FROM unnest(columns) AS c(name)
                     WHERE NOT EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = source AND a.attname = c.name AND a.attnum > 0 AND NOT a.attisdropped));
BEGIN
    IF unknown IS NOT NULL THEN
        PERFORM refuse_value('column', unknown, format('%s has no such column.', qualified_name(source)));
    END IF;
    -- Types alone: what else the source asks of its rows is checked where they enter it.
    EXECUTE format('CREATE UNLOGGED TABLE pgtrickle_sinks.%I (%s)', staging,
                   (SELECT string_agg(format('%I %s', a.attname, format_type(a.atttypid, a.atttypmod)), ', ' ORDER BY c.place)
                    FROM unnest(columns) WITH ORDINALITY AS c(name, place)
                    JOIN pg_attribute AS a ON a.attrelid = source AND a.attname = c.name));
    EXECUTE format('GRANT SELECT, INSERT ON pgtrickle_sinks.%I TO %I', staging, calling_role());
    EXECUTE format('COMMENT ON TABLE pgtrickle_sinks.%I IS %L', staging, format('Rows of sink %s on their way into %s.', sink, qualified_name(source)));
    RETURN staging;
END
$$;
COMMENT ON FUNCTION pgtrickle.create_sink_staging(regclass, text, text[]) IS
    'Makes a table in pgtrickle_sinks with these columns of the source, for a part of a batch, which the caller may fill and read, and returns its name. '
    'Needs INSERT on the source.';

CREATE OR REPLACE FUNCTION pgtrickle.drop_sink_staging(source regclass, sink text) RETURNS integer
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
BEGIN
    RETURN drop_unused_staging('pgtrickle_sinks', format('sink_%s', sink_number(source, sink)));
END
$$;
COMMENT ON FUNCTION pgtrickle.drop_sink_staging(regclass, text) IS
    'Drops the staging tables of a sink that nobody writes to, and returns how many. Needs INSERT on the source.';

CREATE OR REPLACE FUNCTION pgtrickle.staged_rows(staging text, OUT row_count bigint, OUT row_digest numeric)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
DECLARE
    counting CONSTANT text := 'SELECT count(*), COALESCE(sum(%s), 0) FROM pgtrickle_sinks.%I AS s';
BEGIN
    EXECUTE format(counting, 'hash_record_extended(s, 0)', staging) INTO row_count, row_digest;
EXCEPTION
    -- Some types have no hash, such as json; by their text it takes longer.
    WHEN undefined_function THEN
        EXECUTE format(counting, 'hashtextextended(s::text, 0)', staging) INTO row_count, row_digest;
END
$$;
COMMENT ON FUNCTION pgtrickle.staged_rows(text) IS
    'How many rows a staging table in pgtrickle_sinks holds, and the sum of their hashes, which does not depend on their order. Needs SELECT on it.';

CREATE OR REPLACE FUNCTION pgtrickle.staged_event_time(source regclass, column_name text) RETURNS text
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
BEGIN
    PERFORM check_loader(source, 'load batches into');
    RETURN COALESCE((SELECT event_time_of(e, 's') FROM pgt_event_times AS e WHERE e.source_relid = source AND e.column_name = staged_event_time.column_name),
                    format('s.%I::timestamptz', column_name));
END
$$;
COMMENT ON FUNCTION pgtrickle.staged_event_time(regclass, text) IS
    'Expression for the event time, as a timestamptz, of a staged row s: as set_event_time() declared this column of the source, else by the time zone of the '
    'session. Needs INSERT on the source.';

CREATE OR REPLACE FUNCTION pgtrickle.watermark_of(source regclass) RETURNS timestamptz
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
BEGIN
    PERFORM check_loader(source, 'load batches into');
    RETURN (SELECT w.watermark FROM pgt_watermarks AS w WHERE w.source_relid = source);
END
$$;
COMMENT ON FUNCTION pgtrickle.watermark_of(regclass) IS
    'The watermark of a source, for its loader to go on from; NULL: it has none, or goes by batch numbers. Needs INSERT on the source.';

CREATE OR REPLACE FUNCTION pgtrickle.claim_sink_batch(
        source regclass, sink text, query_id text, batch_id bigint, row_count bigint DEFAULT NULL, row_digest numeric DEFAULT NULL) RETURNS boolean
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
DECLARE
    number integer := sink_number(source, sink);
    last pgt_sink_batches;
BEGIN
    IF batch_id IS NULL OR batch_id < 0 THEN
        PERFORM refuse_value('batch_id', batch_id::text, 'Batches are numbered from 0.');
    END IF;
    SELECT s.* INTO last FROM pgt_sink_batches AS s WHERE s.sink_id = number FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'sink % of % was dropped meanwhile', sink, source
            USING ERRCODE = '40001', CONSTRAINT = 'sink_dropped', HINT = 'Claim the batch again: it is the first one then.';
    ELSIF claim_sink_batch.query_id <> last.query_id THEN
        RAISE EXCEPTION 'sink % of % belongs to another streaming query', sink, source
            USING ERRCODE = '55000', CONSTRAINT = 'invalid_argument',
                  HINT = format('Its checkpoint is another one, which may bring rows that are there already. If not, forget the sink by '
                                'pgtrickle.drop_sink(%L, %L), or give it another name.', source, sink);
    ELSIF claim_sink_batch.batch_id = last.batch_id THEN
        IF claim_sink_batch.row_count <> last.row_count OR claim_sink_batch.row_digest <> last.row_digest THEN
            RAISE EXCEPTION 'batch % of sink % is committed already, and comes again with other rows: % in place of %',
                last.batch_id, sink, claim_sink_batch.row_count, last.row_count
                USING ERRCODE = '55000', CONSTRAINT = 'invalid_argument',
                      HINT = format('The checkpoint lost its newest entry, or the query gives other rows each time. Delete from %s what the batch brought, '
                                    'SELECT pgtrickle.drop_sink(%L, %L), and start the query again.', source, source, sink);
        END IF;
        RETURN false;
    ELSIF claim_sink_batch.batch_id <> last.batch_id + 1 THEN
        RAISE EXCEPTION 'batch % of sink % does not follow batch %, the last one in %', claim_sink_batch.batch_id, sink, last.batch_id, source
            USING ERRCODE = '55000', CONSTRAINT = 'invalid_argument',
                  HINT = 'Checkpoint and database are not of the same moment: one of them was set back or replaced.';
    END IF;
    UPDATE pgt_sink_batches AS s
    SET query_id = COALESCE(claim_sink_batch.query_id, s.query_id), batch_id = claim_sink_batch.batch_id,
        row_count = claim_sink_batch.row_count, row_digest = claim_sink_batch.row_digest, committed_at = clock_timestamp(), committed_by = session_user
    WHERE s.sink_id = number;
    RETURN true;
END
$$;
COMMENT ON FUNCTION pgtrickle.claim_sink_batch(regclass, text, text, bigint, bigint, numeric) IS
    'Says that the caller''s transaction commits this batch of a sink, with so many rows and the sum of staged_rows(). False: it is committed already, load '
    'nothing. Error 55000 for a batch that is neither the last one nor the next, that comes again with other rows, or of another query. Concurrent claims wait '
    'for each other. Needs INSERT on the source.';

CREATE OR REPLACE FUNCTION pgtrickle.drop_sink(source regclass, sink text) RETURNS void
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
DECLARE
    number integer;
BEGIN
    PERFORM check_loader(source, 'load batches into');
    DELETE FROM pgt_sink_batches AS s WHERE s.source_relid = source AND s.sink_name = sink RETURNING s.sink_id INTO number;
    IF number IS NULL THEN
        PERFORM refuse_value('sink', sink, format('%s has no such sink.', qualified_name(source)));
    END IF;
    PERFORM drop_unused_staging('pgtrickle_sinks', format('sink_%s', number));
END
$$;
COMMENT ON FUNCTION pgtrickle.drop_sink(regclass, text) IS
    'Forgets a sink and which batch it committed last, and drops its staging tables: the next batch of that name is loaded whatever its number. '
    'The rows that it loaded stay, and so does the watermark. Needs INSERT on the source.';

-- Another table may get the number of one that was dropped.
CREATE OR REPLACE FUNCTION pgtrickle.forget_sinks() RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
BEGIN
    DELETE FROM pgt_sink_batches AS s WHERE NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = s.source_relid);
    PERFORM drop_unused_staging('pgtrickle_sinks', staging.prefix)
    FROM (SELECT DISTINCT substring(c.relname FROM '^(sink_\d+)_') AS prefix FROM pg_class AS c WHERE c.relnamespace = 'pgtrickle_sinks'::regnamespace) AS staging
    WHERE staging.prefix NOT IN (SELECT format('sink_%s', s.sink_id) FROM pgt_sink_batches AS s);
END
$$;
COMMENT ON FUNCTION pgtrickle.forget_sinks() IS
    'Forgets the sinks of tables that are gone, and drops the staging tables of sinks that are forgotten.';
