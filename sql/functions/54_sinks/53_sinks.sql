-- Sinks: batches of a stream are staged by many, and committed once.

-- Two loaders of one table may each have a sink. Without one to whom it belongs, as before that was noted, it is for
-- every loader of the table, until one uses it.
CREATE OR REPLACE FUNCTION pgtrickle_private.check_sink(caller name, source regclass, sink text) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    holder text;
BEGIN
    PERFORM check_loader(caller, source, 'load batches into');
    SELECT s.loader INTO holder FROM pgt_sink_batches AS s WHERE s.source_relid = source AND s.sink_name = sink;
    IF holder IS NOT NULL AND NOT (
        pg_has_role(caller, (SELECT c.relowner FROM pg_class AS c WHERE c.oid = source), 'USAGE')
        OR EXISTS (SELECT FROM pg_roles AS r WHERE r.rolname = holder AND pg_has_role(caller, r.oid, 'USAGE')))
    THEN
        RAISE EXCEPTION 'sink % of % is that of %', sink, source, quote_ident(holder)
            USING ERRCODE = '42501', CONSTRAINT = 'insufficient_privilege',
                  HINT = format('Give your sink another name; the owner of %s may forget this one by '
                      'pgtrickle.drop_sink().', source);
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_sink(name, regclass, text) IS
    'Error 42501 for a role that may not load into the source, or whose sink this is not; the owner of the source may '
    'use every one.';

CREATE OR REPLACE FUNCTION pgtrickle_private.sink_number(caller name, source regclass, sink text) RETURNS integer
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM check_sink(caller, source, sink);
    IF COALESCE(btrim(sink), '') = '' THEN
        PERFORM refuse_value('sink', sink, 'Give the sink a name.');
    END IF;
    PERFORM check_length('sink', sink);
    IF NOT EXISTS (SELECT FROM pgt_sink_batches AS s WHERE s.source_relid = source AND s.sink_name = sink) THEN
        INSERT INTO pgt_sink_batches (source_relid, sink_name, loader)
            VALUES (source, sink, caller) ON CONFLICT DO NOTHING;
        -- Another may have made it meanwhile.
        PERFORM check_sink(caller, source, sink);
    END IF;
    RETURN (SELECT s.sink_id FROM pgt_sink_batches AS s WHERE s.source_relid = source AND s.sink_name = sink);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.sink_number(name, regclass, text) IS
    'The number of a sink, which is made, for its caller, when it is first named. Refuses a role that may not insert '
    'into the source, or whose sink it is not.';

CREATE OR REPLACE FUNCTION pgtrickle_private.make_sink_staging(caller name, source regclass, sink text, columns text[],
    partition text) RETURNS text
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    staging text := format('sink_%s_%s', sink_number(caller, source, sink), replace(gen_random_uuid()::text, '-', ''));
    unknown text := (SELECT min(c.name) FROM unnest(columns) AS c(name)
                     WHERE c.name IS DISTINCT FROM partition
                         AND NOT EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = source AND a.attname = c.name
                         AND a.attnum > 0 AND NOT a.attisdropped));
BEGIN
    IF array_ndims(columns) IS DISTINCT FROM 1 OR array_position(columns, NULL) IS NOT NULL THEN
        PERFORM refuse_value('columns', columns::text, format('Name columns of %s.', qualified_name(source)));
    ELSIF unknown IS NOT NULL THEN
        PERFORM refuse_value('column', unknown, format('%s has no such column.', qualified_name(source)));
    END IF;
    -- Types alone: what else the source asks of its rows is checked where they enter it. The source need not keep of
    -- which partition a row is.
    EXECUTE format('CREATE UNLOGGED TABLE pgtrickle_sinks.%I (%s)', staging,
                   (SELECT string_agg(format('%I %s', c.name,
                       COALESCE(format_type(a.atttypid, a.atttypmod), 'text')), ', ' ORDER BY c.place)
                    FROM unnest(columns) WITH ORDINALITY AS c(name, place)
                    LEFT JOIN pg_attribute AS a ON a.attrelid = source AND a.attname = c.name
                        AND a.attnum > 0 AND NOT a.attisdropped));
    PERFORM never_analyze(format('pgtrickle_sinks.%I', staging)::regclass);
    PERFORM hand_over(format('pgtrickle_sinks.%I', staging)::regclass);
    EXECUTE format('GRANT SELECT, INSERT ON pgtrickle_sinks.%I TO %I', staging, caller);
    EXECUTE format('COMMENT ON TABLE pgtrickle_sinks.%I IS %L', staging,
        format('Rows of sink %s on their way into %s.', sink, qualified_name(source)));
    RETURN staging;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.make_sink_staging(name, regclass, text, text[], text) IS
    'Makes a staging table of a sink, for its caller; returns its name.';

CREATE OR REPLACE FUNCTION pgtrickle.create_sink_staging(source regclass, sink text, columns text[],
    partition text DEFAULT NULL) RETURNS text
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    answer jsonb;
BEGIN
    INSERT INTO pgt_calls (call, source, arguments)
        VALUES ('create_sink_staging', source, jsonb_build_object(
            'sink', sink, 'columns', columns, 'partition', partition))
    RETURNING result INTO answer;
    RETURN answer #>> '{}';
END
$$;
COMMENT ON FUNCTION pgtrickle.create_sink_staging(regclass, text, text[], text) IS
    'Makes a table in pgtrickle_sinks with these columns of the source, for a part of a batch, which the caller may '
    'fill and read, and returns its name. The one named partition the source need not have: it is a text then. '
    'Needs INSERT on the source.';

CREATE OR REPLACE FUNCTION pgtrickle.drop_sink_staging(source regclass, sink text) RETURNS integer
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    answer jsonb;
BEGIN
    INSERT INTO pgt_calls (call, source, arguments)
        VALUES ('drop_sink_staging', source, jsonb_build_object('sink', sink)) RETURNING result INTO answer;
    RETURN answer::integer;
END
$$;
COMMENT ON FUNCTION pgtrickle.drop_sink_staging(regclass, text) IS
    'Drops the staging tables of a sink that nobody writes to, and returns how many. Needs INSERT on the source.';

CREATE OR REPLACE FUNCTION pgtrickle.staged_rows(staging text, OUT row_count bigint, OUT row_digest numeric)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    counting CONSTANT text := 'SELECT count(*), COALESCE(sum(%s), 0) FROM pgtrickle_sinks.%I AS s';
BEGIN
    IF NOT EXISTS (SELECT FROM pg_class AS c WHERE c.relname = staging
        AND c.relnamespace = 'pgtrickle_sinks'::regnamespace) THEN
        PERFORM refuse_value('staging', staging, 'Give the name that create_sink_staging() returned.');
    END IF;
    EXECUTE format(counting, 'hash_record_extended(s, 0)', staging) INTO row_count, row_digest;
EXCEPTION
    -- Some types have no hash, such as json; by their text it takes longer.
    WHEN undefined_function THEN
        EXECUTE format(counting, 'hashtextextended(s::text, 0)', staging) INTO row_count, row_digest;
END
$$;
COMMENT ON FUNCTION pgtrickle.staged_rows(text) IS
    'How many rows a staging table in pgtrickle_sinks holds, and the sum of their hashes, which does not depend on '
    'their order. Needs SELECT on it.';

CREATE OR REPLACE FUNCTION pgtrickle.staged_event_time(source regclass, column_name text) RETURNS text
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF column_name IS NULL THEN
        PERFORM refuse_value('column_name', NULL, 'Name the column that holds the event time.');
    END IF;
    RETURN COALESCE((SELECT event_time_of(e, 's') FROM pgt_event_times AS e WHERE e.source_relid = source
        AND e.column_name = staged_event_time.column_name), format('s.%I::timestamptz', column_name));
END
$$;
COMMENT ON FUNCTION pgtrickle.staged_event_time(regclass, text) IS
    'Expression for the event time, as a timestamptz, of a staged row s: as set_event_time() declared this column of '
    'the source, else by the time zone of the session.';

CREATE OR REPLACE FUNCTION pgtrickle.watermark_of(source regclass) RETURNS timestamptz
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT w.watermark FROM pgt_watermarks AS w WHERE w.source_relid = source
$$;
COMMENT ON FUNCTION pgtrickle.watermark_of(regclass) IS
    'The watermark of a source, for its loader to go on from; NULL: it has none, or goes by batch numbers.';

CREATE OR REPLACE FUNCTION pgtrickle.watermark_of(
        source text, search_path text DEFAULT current_setting('search_path')) RETURNS timestamptz
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN watermark_of(source_named(source, search_path));
END
$$;
COMMENT ON FUNCTION pgtrickle.watermark_of(text, text) IS
    'The same for a source that comes by its name, as text.';

CREATE OR REPLACE FUNCTION pgtrickle_private.commit_sink_batch(caller name, source regclass, sink text,
    next pgtrickle.pgt_sink_batches) RETURNS boolean
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    number integer := sink_number(caller, source, sink);
    last pgt_sink_batches;
BEGIN
    IF next.batch_id IS NULL OR next.batch_id < 0 THEN
        PERFORM refuse_value('batch_id', next.batch_id::text, 'Batches are numbered from 0.');
    ELSIF next.query_id = '' THEN
        PERFORM refuse_value('query_id', next.query_id, 'Give the id of the streaming query: its checkpoint has it.');
    ELSIF next.row_count < 0 THEN
        PERFORM refuse_value('row_count', next.row_count::text, 'Give what staged_rows() counted, or NULL.');
    ELSIF next.row_digest IN ('NaN', 'Infinity', '-Infinity') THEN
        PERFORM refuse_value('row_digest', next.row_digest::text, 'Give what staged_rows() summed up, or NULL.');
    END IF;
    PERFORM check_length('query_id', next.query_id);
    SELECT s.* INTO last FROM pgt_sink_batches AS s WHERE s.sink_id = number FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'sink % of % was dropped meanwhile', sink, source
            USING ERRCODE = '40001', CONSTRAINT = 'sink_dropped',
                HINT = 'Claim the batch again: it is the first one then.';
    ELSIF next.query_id <> last.query_id THEN
        RAISE EXCEPTION 'sink % of % belongs to another streaming query', sink, source
            USING ERRCODE = '55000', CONSTRAINT = 'invalid_argument',
                  HINT = format('Its checkpoint is another one, which may bring rows that are there already. If not, '
                      'forget the sink by '
                                'pgtrickle.drop_sink(%L, %L), or give it another name.', source, sink);
    ELSIF next.batch_id = last.batch_id THEN
        IF next.row_count <> last.row_count OR next.row_digest <> last.row_digest THEN
            RAISE EXCEPTION 'batch % of sink % is committed already, and comes again with other rows: % in place of %',
                last.batch_id, sink, next.row_count, last.row_count
                USING ERRCODE = '55000', CONSTRAINT = 'invalid_argument',
                      HINT = format('The checkpoint lost its newest entry, or the query gives other rows each time. '
                          'Delete from %s what the batch brought, '
                                    'SELECT pgtrickle.drop_sink(%L, %L), and start the query again.', source, source,
                                        sink);
        END IF;
        RETURN false;
    ELSIF next.batch_id <> last.batch_id + 1 THEN
        RAISE EXCEPTION 'batch % of sink % does not follow batch %, the last one in %', next.batch_id, sink,
            last.batch_id, source
            USING ERRCODE = '55000', CONSTRAINT = 'invalid_argument',
                  HINT = 'Checkpoint and database are not of the same moment: one of them was set back or replaced.';
    END IF;
    UPDATE pgt_sink_batches AS s
    SET query_id = COALESCE(next.query_id, s.query_id), batch_id = next.batch_id,
        row_count = next.row_count, row_digest = next.row_digest, committed_at = clock_timestamp(),
            committed_by = caller, loader = COALESCE(s.loader, caller)
    WHERE s.sink_id = number;
    RETURN true;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.commit_sink_batch(name, regclass, text, pgtrickle.pgt_sink_batches) IS
    'Says that this transaction commits a batch of a sink, for its caller. False: it is committed already.';

CREATE OR REPLACE FUNCTION pgtrickle.claim_sink_batch(
        source regclass, sink text, query_id text, batch_id bigint, row_count bigint DEFAULT NULL,
            row_digest numeric DEFAULT NULL) RETURNS boolean
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    answer jsonb;
BEGIN
    INSERT INTO pgt_calls (call, source, arguments)
    VALUES ('claim_sink_batch', source,
        jsonb_build_object('sink', sink, 'query_id', query_id, 'batch_id', batch_id, 'row_count', row_count,
        'row_digest', row_digest))
    RETURNING result INTO answer;
    RETURN answer::boolean;
END
$$;
COMMENT ON FUNCTION pgtrickle.claim_sink_batch(regclass, text, text, bigint, bigint, numeric) IS
    'Says that the caller''s transaction commits this batch of a sink, with so many rows and the sum of '
    'staged_rows(). False: it is committed already, load '
    'nothing. Error 55000 for a batch that is neither the last one nor the next, that comes again with other rows, or '
    'of another query. Concurrent claims wait '
    'for each other. Needs INSERT on the source.';

CREATE OR REPLACE FUNCTION pgtrickle_private.forget_sink(caller name, source regclass, sink text) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    number integer;
BEGIN
    PERFORM check_sink(caller, source, sink);
    DELETE FROM pgt_sink_batches AS s WHERE s.source_relid = source AND s.sink_name = sink
        RETURNING s.sink_id INTO number;
    IF number IS NULL THEN
        PERFORM refuse_value('sink', sink, format('%s has no such sink.', qualified_name(source)));
    END IF;
    PERFORM drop_unused_staging('pgtrickle_sinks', format('sink_%s', number));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.forget_sink(name, regclass, text) IS 'Forgets a sink, for its caller.';

CREATE OR REPLACE FUNCTION pgtrickle.drop_sink(source regclass, sink text) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    INSERT INTO pgt_calls (call, source, arguments) VALUES ('drop_sink', source, jsonb_build_object('sink', sink));
END
$$;
COMMENT ON FUNCTION pgtrickle.drop_sink(regclass, text) IS
    'Forgets a sink and which batch it committed last, and drops its staging tables: the next batch of that name is '
    'loaded whatever its number. '
    'The rows that it loaded stay, and so does the watermark. Needs INSERT on the source, and that the sink is the '
    'caller''s, or the source is.';

-- Another table may get the number of one that was dropped.
CREATE OR REPLACE FUNCTION pgtrickle_private.forget_sinks() RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET standard_conforming_strings = on
AS $$
BEGIN
    DELETE FROM pgt_sink_batches AS s WHERE s.sink_id IN (
        SELECT g.sink_id FROM pgt_sink_batches AS g
            WHERE NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = g.source_relid) FOR UPDATE SKIP LOCKED);
    PERFORM drop_unused_staging('pgtrickle_sinks', format('(%s)', string_agg(staging.prefix, '|')))
    FROM (SELECT DISTINCT substring(c.relname FROM '^(sink_\d+)_') AS prefix FROM pg_class AS c
        WHERE c.relnamespace = 'pgtrickle_sinks'::regnamespace) AS staging
    WHERE staging.prefix NOT IN (SELECT format('sink_%s', s.sink_id) FROM pgt_sink_batches AS s)
    HAVING count(*) > 0;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.forget_sinks() IS
    'Forgets the sinks of tables that are gone, and drops the staging tables of sinks that are forgotten.';
