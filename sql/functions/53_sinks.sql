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
    EXECUTE format('CREATE UNLOGGED TABLE pgtrickle_changes.%I (%s)', staging,
                   (SELECT string_agg(format('%I %s', a.attname, format_type(a.atttypid, a.atttypmod)), ', ' ORDER BY c.place)
                    FROM unnest(columns) WITH ORDINALITY AS c(name, place)
                    JOIN pg_attribute AS a ON a.attrelid = source AND a.attname = c.name));
    EXECUTE format('GRANT SELECT, INSERT ON pgtrickle_changes.%I TO %I', staging, calling_role());
    EXECUTE format('COMMENT ON TABLE pgtrickle_changes.%I IS %L', staging, format('Rows of sink %s on their way into %s.', sink, qualified_name(source)));
    RETURN staging;
END
$$;
COMMENT ON FUNCTION pgtrickle.create_sink_staging(regclass, text, text[]) IS
    'Makes a table in pgtrickle_changes with these columns of the source, for a part of a batch, which the caller may fill and read, and returns its name. '
    'Needs INSERT on the source.';

CREATE OR REPLACE FUNCTION pgtrickle.drop_sink_staging(source regclass, sink text) RETURNS integer
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pg_temp
AS $$
BEGIN
    RETURN drop_unused_staging(format('sink_%s', sink_number(source, sink)));
END
$$;
COMMENT ON FUNCTION pgtrickle.drop_sink_staging(regclass, text) IS
    'Drops the staging tables of a sink that nobody writes to, and returns how many. Needs INSERT on the source.';

CREATE OR REPLACE FUNCTION pgtrickle.claim_sink_batch(source regclass, sink text, query_id text, batch_id bigint) RETURNS boolean
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
    IF claim_sink_batch.query_id <> last.query_id THEN
        RAISE EXCEPTION 'sink % of % belongs to another streaming query', sink, source
            USING ERRCODE = '55000', CONSTRAINT = 'invalid_argument',
                  HINT = 'Its checkpoint is another one, which may bring rows that are there already. If not, give the sink another name.';
    ELSIF claim_sink_batch.batch_id = last.batch_id THEN
        RETURN false;
    ELSIF claim_sink_batch.batch_id <> last.batch_id + 1 THEN
        RAISE EXCEPTION 'batch % of sink % does not follow batch %, the last one in %', claim_sink_batch.batch_id, sink, last.batch_id, source
            USING ERRCODE = '55000', CONSTRAINT = 'invalid_argument',
                  HINT = 'Checkpoint and database are not of the same moment: one of them was set back or replaced.';
    END IF;
    UPDATE pgt_sink_batches AS s
    SET query_id = COALESCE(claim_sink_batch.query_id, s.query_id), batch_id = claim_sink_batch.batch_id,
        committed_at = clock_timestamp(), committed_by = session_user
    WHERE s.sink_id = number;
    RETURN true;
END
$$;
COMMENT ON FUNCTION pgtrickle.claim_sink_batch(regclass, text, text, bigint) IS
    'Says that the caller''s transaction commits this batch of a sink. False: it is committed already, load nothing. Error 55000 for a batch that '
    'is neither the last one nor the next, or of another query. Concurrent claims wait for each other. Needs INSERT on the source.';
