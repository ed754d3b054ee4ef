-- The changes between two versions of a source or stream table.

CREATE OR REPLACE FUNCTION pgtrickle_private.version_ranges(relation regclass, since bigint, until bigint)
    RETURNS TABLE (version bigint, watermark timestamptz, lowest xid8, highest xid8, before pgtrickle.cut,
        reached pgtrickle.cut)
    LANGUAGE sql STABLE SECURITY DEFINER ROWS 10 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT r.version, (r.progress).watermark, pg_snapshot_xmin((r.before).snapshot)::text::xid8,
        greatest(pg_snapshot_xmax((r.cut).snapshot)::text::xid8, (r.cut).xid), r.before, r.cut
    FROM (SELECT v.*, lag(v.cut) OVER (ORDER BY v.version) AS before FROM versions_of(relation) AS v
        WHERE v.version BETWEEN since AND until) AS r
    WHERE r.version > since
$$;
COMMENT ON FUNCTION pgtrickle_private.version_ranges(regclass, bigint, bigint) IS
    'The versions after one and up to another, each with the cuts that its changes lie between, and the transactions '
    'that they may be of.';

-- Each change belongs to one range, for the cuts of a relation form a chain. OFFSET 0 keeps the conditions apart from
-- those of the join: only so do they reach the index below the view, which is a security barrier.
CREATE OR REPLACE FUNCTION pgtrickle_private.changes_query(relation regclass) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT format($template$
        SELECT c.pgt_weight::integer AS weight, r.version, r.watermark, c.pgt_pos AS pos,
            ROW(%s)::%s AS changed
        FROM pgtrickle_private.version_ranges(%s::oid::regclass, $1, $2) AS r CROSS JOIN LATERAL (
            SELECT * FROM %s AS c WHERE c.pgt_xid >= r.lowest AND c.pgt_xid <= r.highest
                AND pgtrickle.covers(r.reached, c.pgt_xid, c.pgt_pos)
                AND NOT pgtrickle.covers(r.before, c.pgt_xid, c.pgt_pos) OFFSET 0) AS c$template$,
        (SELECT string_agg(format('c.%I', a.attname), ', ' ORDER BY a.attnum) FROM pg_attribute AS a
            WHERE a.attrelid = relation AND a.attnum > 0 AND NOT a.attisdropped),
        relation, relation::oid, feed_view(relation))
$$;
COMMENT ON FUNCTION pgtrickle_private.changes_query(regclass) IS
    'Query for the changes of a relation after version $1 and up to $2, as they were captured.';

-- The text of a row tells it from every other, also where equal values look different.
CREATE OR REPLACE FUNCTION pgtrickle_private.net_changes_query(captured text) RETURNS text
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT format($template$
        SELECT sign(n.weight)::integer AS weight, n.version, n.watermark, n.pos, n.changed
        FROM (SELECT sum(c.weight) AS weight, $2 AS version, max(c.pos) AS pos, (array_agg(c.changed))[1] AS changed,
                (SELECT r.watermark FROM pgtrickle_private.version_ranges($3, $1, $2) AS r WHERE r.version = $2)
                    AS watermark
            FROM (%s) AS c GROUP BY c.changed::text) AS n
            CROSS JOIN generate_series(1, abs(n.weight))$template$, captured)
$$;
COMMENT ON FUNCTION pgtrickle_private.net_changes_query(text) IS
    'Query for what captured changes come to in the end, all at the last version.';

CREATE OR REPLACE FUNCTION pgtrickle_private.key_columns(relation regclass) RETURNS text[]
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT k.names FROM pg_index AS i CROSS JOIN LATERAL (
        SELECT array_agg(a.attname::text ORDER BY a.attnum) AS names, bool_and(a.attnotnull) AS never_null
        FROM pg_attribute AS a
        WHERE a.attrelid = relation AND a.attnum = ANY ((i.indkey::smallint[])[0:i.indnkeyatts - 1])) AS k
    WHERE i.indrelid = relation AND i.indisunique AND i.indimmediate AND i.indisvalid AND i.indpred IS NULL
        AND i.indexprs IS NULL AND (k.never_null OR i.indnullsnotdistinct)
    ORDER BY i.indisprimary DESC, i.indexrelid LIMIT 1
$$;
COMMENT ON FUNCTION pgtrickle_private.key_columns(regclass) IS
    'The columns of the primary key or of another unique index that tells every row from the others; NULL: none does.';

CREATE OR REPLACE FUNCTION pgtrickle_private.change_types_query(changes text, key text[]) RETURNS text
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT format(CASE WHEN key IS NULL THEN $plain$
        SELECT CASE WHEN c.weight > 0 THEN 'insert' ELSE 'delete' END, c.version, c.watermark, c.changed
        FROM (%1$s) AS c ORDER BY c.version, c.pos, c.weight$plain$
    ELSE $paired$
        SELECT CASE WHEN c.weight < 0 THEN CASE WHEN lead(c.weight) OVER same > 0 THEN 'update_preimage' ELSE 'delete'
                END
            WHEN lag(c.weight) OVER same < 0 THEN 'update_postimage' ELSE 'insert' END,
            c.version, c.watermark, c.changed
        FROM (SELECT c.*, row_number() OVER (ORDER BY c.version, c.pos, c.weight) AS place FROM (%1$s) AS c) AS c
        WINDOW same AS (PARTITION BY c.version, %2$s ORDER BY c.place)
        -- What a row became stands beside what it was.
        ORDER BY CASE WHEN c.weight > 0 AND lag(c.weight) OVER same < 0 THEN lag(c.place) OVER same ELSE c.place END,
            c.weight$paired$ END,
        changes, (SELECT string_agg(format('(c.changed).%I', k.name), ', ') FROM unnest(key) AS k (name)))
$$;
COMMENT ON FUNCTION pgtrickle_private.change_types_query(text, text[]) IS
    'Query that names the type of each change, in an order in which the changes of a row follow each other. With a '
    'key, a deletion and the insertion of the same key that follows it in one version are an update.';

CREATE OR REPLACE FUNCTION pgtrickle_private.typed_changes_query(relation regclass, deduplication text,
    compute_updates boolean) RETURNS text
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    captured CONSTANT text := changes_query(relation);
    key CONSTANT text[] := CASE WHEN compute_updates THEN key_columns(relation) END;
BEGIN
    PERFORM check_choice('deduplication', deduplication, 'none', 'net');
    IF compute_updates AND key IS NULL THEN
        RAISE EXCEPTION 'updates of % cannot be told from deletions and insertions: it has no key', relation
            USING ERRCODE = '22023', CONSTRAINT = 'invalid_argument',
                HINT = 'Give it a primary key, or leave compute_updates out.';
    END IF;
    RETURN change_types_query(CASE deduplication WHEN 'net' THEN net_changes_query(captured) ELSE captured END, key);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.typed_changes_query(regclass, text, boolean) IS
    'Query for the changes of a relation after version $1 and up to $2; $3 is the relation.';

-- A table that was made anew since the snapshot holds none of its changes, and locks do not tell the two apart.
CREATE OR REPLACE FUNCTION pgtrickle_private.check_same_buffer(relation regclass) RETURNS void
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM pgt_change_tracking AS t JOIN pg_class AS c ON c.oid = to_regclass(t.buffer)
        WHERE t.source_relid = relation) THEN
        PERFORM refuse_version(relation, format('capture of %s was installed anew meanwhile', relation));
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_same_buffer(regclass) IS
    'Error 55000 if the change buffer that was read is another one than the snapshot knows.';

CREATE OR REPLACE FUNCTION pgtrickle.changes_of_versions(
        relation anyelement, since bigint, until bigint DEFAULT NULL, deduplication text DEFAULT 'none',
        compute_updates boolean DEFAULT false)
    RETURNS TABLE (_change_type text, _commit_version bigint, _commit_timestamp timestamptz, changed anyelement)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
    SET TimeZone = 'UTC' SET DateStyle = 'ISO' SET IntervalStyle = 'postgres' SET extra_float_digits = 1
    SET bytea_output = 'hex' SET jit = off
AS $$
DECLARE
    source CONSTANT regclass := (SELECT t.typrelid FROM pg_type AS t WHERE t.oid = pg_typeof(relation)
        AND t.typrelid <> 0);
    last CONSTANT bigint := COALESCE(until, newest_version(source));
BEGIN
    IF source IS NULL OR since IS NULL THEN
        PERFORM refuse_value(CASE WHEN source IS NULL THEN 'relation' ELSE 'since' END, NULL,
            'Call it like pgtrickle.changes_of_versions(NULL::sales, 12), with the version that was read before.');
    ELSIF since > until THEN
        PERFORM refuse_value('until', until::text, format('Give a version that is not before %s.', since));
    END IF;
    PERFORM check_reads_all(current_user, source, 'follow the changes of');
    PERFORM check_version(source, since), check_version(source, last);
    RETURN QUERY EXECUTE typed_changes_query(source, deduplication, compute_updates) USING since, last, source;
    PERFORM check_same_buffer(source);
END
$$;
COMMENT ON FUNCTION pgtrickle.changes_of_versions(anyelement, bigint, bigint, text, boolean) IS
    'The changes that lead from one version of a source or stream table to another (NULL: its newest), by its row '
    'type: NULL::sales. Each row as it was inserted or deleted, with the version that shows it and its watermark, in '
    'an order in which the changes of one row follow each other. With deduplication => ''net'' what they come to in '
    'the end, all at the last version; with compute_updates => true also update_preimage and update_postimage, which '
    'needs a key. Needs SELECT on the relation, no policy that hides rows, and a feed; error 55000 if the changes are '
    'no longer kept.';

CREATE OR REPLACE FUNCTION pgtrickle.changes(
        relation anyelement, since timestamptz, until timestamptz DEFAULT NULL, deduplication text DEFAULT 'none',
        compute_updates boolean DEFAULT false)
    RETURNS TABLE (_change_type text, _commit_version bigint, _commit_timestamp timestamptz, changed anyelement)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    source CONSTANT regclass := (SELECT t.typrelid FROM pg_type AS t WHERE t.oid = pg_typeof(relation)
        AND t.typrelid <> 0);
BEGIN
    IF source IS NULL OR since IS NULL THEN
        PERFORM refuse_value(CASE WHEN source IS NULL THEN 'relation' ELSE 'since' END, NULL,
            'Call it like pgtrickle.changes(NULL::sales, ''2026-03-02 12:00Z'').');
    ELSIF since > until THEN
        PERFORM refuse_value('until', until::text, format('Give a watermark that is not before %s.', since));
    END IF;
    RETURN QUERY SELECT * FROM changes_of_versions(relation, version_at(source, ROW(since, NULL)::progress),
        CASE WHEN until IS NOT NULL THEN version_at(source, ROW(until, NULL)::progress) END, deduplication,
        compute_updates);
END
$$;
COMMENT ON FUNCTION pgtrickle.changes(anyelement, timestamptz, timestamptz, text, boolean) IS
    'The same from what the relation was as of one watermark to what it is as of another: as of the first plus the '
    'changes is as of the second. Error 55000 where it is not complete through one of them yet.';
