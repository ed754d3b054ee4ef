-- An index on a change buffer costs whoever writes many rows as much as all else of capture. A buffer whose changes are
-- taken in as they come is read whole faster than by an index. So it has one only while few changes are looked for
-- among many: by refreshes, which tell so, or by whoever reads what is retained.

CREATE OR REPLACE FUNCTION pgtrickle_private.buffer_index(buffer regclass) RETURNS regclass
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN (SELECT i.indexrelid::regclass FROM pg_index AS i
        JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attname = 'pgt_xid'
        WHERE i.indrelid = buffer AND i.indnatts = 1 AND i.indkey[0] = a.attnum AND i.indisvalid
        ORDER BY 1 LIMIT 1);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.buffer_index(regclass) IS
    'The index of a change buffer on the transaction, or NULL.';

CREATE OR REPLACE FUNCTION pgtrickle_private.unindexed_buffers(buffers text[]) RETURNS SETOF text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT b FROM unnest(buffers) AS b JOIN pg_class AS c ON c.oid = to_regclass(b)
    WHERE pg_has_role(c.relowner, 'USAGE') AND buffer_index(c.oid) IS NULL ORDER BY b
$$;
COMMENT ON FUNCTION pgtrickle_private.unindexed_buffers(text[]) IS
    'Those of some change buffers that have no index and belong to the caller.';

-- Nobody can write while an index is made, which takes a tenth of what it took to write the rows. Where a transaction
-- has written to the buffer and stays open, that is left for a later time: others would have to wait behind it.
CREATE OR REPLACE FUNCTION pgtrickle_private.index_change_buffer(buffer text, pages bigint) RETURNS boolean
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET lock_timeout = '100ms'
AS $$
BEGIN
    IF pg_relation_size(to_regclass(buffer)) / current_setting('block_size')::integer <= pages
        OR NOT EXISTS (SELECT FROM unindexed_buffers(ARRAY[buffer])) THEN
        RETURN false;
    END IF;
    EXECUTE format('CREATE INDEX ON %s (pgt_xid)', to_regclass(buffer));
    RETURN true;
EXCEPTION WHEN OTHERS THEN
    -- It only makes reading faster.
    RAISE LOG 'the change buffer % could not be indexed: %', buffer, SQLERRM;
    RETURN false;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.index_change_buffer(text, bigint) IS
    'Gives a change buffer of more than so many pages an index, unless somebody writes to it; returns whether it did.';

CREATE OR REPLACE FUNCTION pgtrickle_private.drop_buffer_index(buffer text) RETURNS boolean
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    unneeded CONSTANT regclass := buffer_index(to_regclass(buffer));
BEGIN
    IF unneeded IS NULL THEN
        RETURN false;
    END IF;
    EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE NOWAIT', to_regclass(buffer));
    EXECUTE format('DROP INDEX %s', unneeded);
    RETURN true;
EXCEPTION WHEN OTHERS THEN
    -- It only makes writing faster.
    RAISE LOG 'the index of the change buffer % could not be dropped: %', buffer, SQLERRM;
    RETURN false;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.drop_buffer_index(text) IS
    'Drops the index of a change buffer, unless somebody reads the buffer or writes to it; returns whether it did.';

CREATE OR REPLACE FUNCTION pgtrickle_private.fit_buffer_index(source regclass, buffer text) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF pg_relation_size(to_regclass(buffer)) / current_setting('block_size')::integer <= 16 THEN
        PERFORM drop_buffer_index(buffer);
    ELSIF EXISTS (SELECT FROM pgt_feeds AS f WHERE f.source_relid = source)
        OR EXISTS (SELECT FROM pgt_dependencies AS d JOIN pgt_stream_tables AS t USING (pgt_id)
                   WHERE d.source_relid = source AND t.watermark_retention IS NOT NULL) THEN
        PERFORM index_change_buffer(buffer, 256);
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.fit_buffer_index(regclass, text) IS
    'Drops the index of a change buffer that was left with few pages; gives one to that of a source whose changes are '
    'retained.';
