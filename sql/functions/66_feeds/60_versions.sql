-- Versions: of a source its watermarks, of a stream table that is followed its refreshes, each with the cut it was at.

CREATE OR REPLACE FUNCTION pgtrickle_private.versions_of(relation regclass)
    RETURNS TABLE (version bigint, progress pgtrickle.progress, is_first boolean, cut pgtrickle.cut,
        recorded_at timestamptz)
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT h.history_id, h.progress, true, h.cut, h.advanced_at FROM pgt_watermark_history AS h
    WHERE h.source_relid = relation
    UNION ALL
    SELECT v.version, ROW(v.watermark, v.batch)::progress, v.is_first, v.cut, v.recorded_at FROM pgt_versions AS v
    WHERE v.source_relid = relation
$$;
COMMENT ON FUNCTION pgtrickle_private.versions_of(regclass) IS
    'The versions of a source or stream table, each with the changes that lead to it.';

-- Deferred: at the commit all rows of the refresh are written. A later event of the same transaction finds its version.
CREATE OR REPLACE FUNCTION pgtrickle_private.record_version() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    reached cut;
BEGIN
    IF is_copied() THEN
        RETURN NULL;
    END IF;
    reached := current_cut();
    reached.xid := pg_current_xact_id();
    reached.pos := nextval('pgtrickle.change_pos');
    PERFORM heed_run();
    INSERT INTO pgt_versions (source_relid, watermark, batch, is_first, cut)
    SELECT t.pgt_relid, t.effective_watermark, t.effective_batch,
        NOT EXISTS (SELECT FROM pgt_versions AS v WHERE v.source_relid = t.pgt_relid
            AND v.watermark IS NOT DISTINCT FROM t.effective_watermark
            AND v.batch IS NOT DISTINCT FROM t.effective_batch),
        reached
    FROM pgt_stream_tables AS t
    WHERE t.pgt_id = NEW.pgt_id AND NOT EXISTS (
        SELECT FROM pgt_versions AS v WHERE v.source_relid = t.pgt_relid AND (v.cut).xid = reached.xid);
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.record_version() IS
    'Records, as its transaction commits, what a refresh made of a stream table that is followed.';

DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_trigger AS t
        WHERE t.tgrelid = 'pgtrickle.pgt_stream_tables'::regclass AND t.tgname = 'record_version') THEN
        CREATE CONSTRAINT TRIGGER record_version AFTER UPDATE ON pgtrickle.pgt_stream_tables
            DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
            WHEN (NEW.followed AND (NOT OLD.followed OR OLD.frontier_version <> NEW.frontier_version
                OR OLD.effective_watermark IS DISTINCT FROM NEW.effective_watermark
                OR OLD.effective_batch IS DISTINCT FROM NEW.effective_batch))
            EXECUTE FUNCTION pgtrickle_private.record_version();
        ALTER TABLE pgtrickle.pgt_stream_tables ENABLE ALWAYS TRIGGER record_version;
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION pgtrickle_private.present_columns(relation regclass) RETURNS text[]
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT ARRAY(SELECT a.attname::text FROM pg_attribute AS a
        WHERE a.attrelid = relation AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum)
$$;
COMMENT ON FUNCTION pgtrickle_private.present_columns(regclass) IS
    'The columns of a relation, in their order.';

CREATE OR REPLACE FUNCTION pgtrickle_private.feed_problem(relation regclass) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    problem CONSTANT text := capture_problem(relation);
    columns CONSTANT text[] := present_columns(relation);
BEGIN
    RETURN CASE
        WHEN NOT EXISTS (SELECT FROM pgt_feeds AS f WHERE f.source_relid = relation) THEN 'it has no feed'
        WHEN NOT EXISTS (SELECT FROM pgt_feeds AS f WHERE f.source_relid = relation AND f.cut_off_at IS NULL) THEN
            (SELECT 'its feed was cut off: ' || f.cut_off_reason FROM pgt_feeds AS f WHERE f.source_relid = relation
                ORDER BY f.cut_off_at DESC LIMIT 1)
        WHEN EXISTS (SELECT FROM pgt_feeds AS f WHERE f.source_relid = relation
            AND f.system_identifier <> (SELECT c.system_identifier FROM pg_control_system() AS c))
            THEN 'the database was restored or copied from another cluster'
        WHEN problem IS NOT NULL THEN 'changes may have been missed: ' || problem
        WHEN NOT EXISTS (SELECT FROM pgt_feeds AS f WHERE f.source_relid = relation AND f.cut_off_at IS NULL
            AND f.columns_used @> columns) THEN 'columns were added after its feed was created'
    END;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.feed_problem(regclass) IS
    'Why changes of a source or stream table cannot be followed, or NULL.';

CREATE OR REPLACE FUNCTION pgtrickle_private.version_is_readable(relation regclass, reached pgtrickle.cut)
    RETURNS boolean
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT EXISTS (
        SELECT FROM pgt_feeds AS f JOIN pgt_change_tracking AS t USING (source_relid)
        WHERE f.source_relid = relation AND f.cut_off_at IS NULL AND f.columns_used @> present_columns(relation)
            AND cut_is_readable(reached, f.captured_xid, f.captured_pos, t.cleaned_through))
$$;
COMMENT ON FUNCTION pgtrickle_private.version_is_readable(regclass, pgtrickle.cut) IS
    'Whether every change beyond the cut, of all columns, is still kept.';

CREATE OR REPLACE FUNCTION pgtrickle_private.refuse_version(relation regclass, sentence text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION '%', sentence USING ERRCODE = '55000', CONSTRAINT = 'not_retained',
        HINT = format('Read %s as a whole, and follow its changes from there: pgtrickle.versions() lists what can be '
            'read. Where there is no feed, or it was cut off, create one: pgtrickle.create_feed().', relation);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.refuse_version(regclass, text) IS
    'Error 55000, by which a reader learns that it must read a table as a whole again.';

CREATE OR REPLACE FUNCTION pgtrickle_private.no_version(relation regclass, wanted bigint) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT COALESCE(
        (SELECT format('version %s of %s is gone: the watermark %s was taken back', wanted, relation,
             progress_text(ROW(w.watermark, w.batch)::progress))
         FROM pgt_withdrawn_watermarks AS w WHERE w.source_relid = relation AND w.version = wanted),
        format('%s has no version %s', relation, wanted))
$$;
COMMENT ON FUNCTION pgtrickle_private.no_version(regclass, bigint) IS
    'The sentence that says why there is no version of this number.';

-- Public, as what everybody may call runs with the rights of its caller, who may not read the catalog.
CREATE OR REPLACE FUNCTION pgtrickle_private.check_version(relation regclass, wanted bigint) RETURNS void
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    problem CONSTANT text := feed_problem(relation);
    reached cut;
BEGIN
    IF problem IS NOT NULL THEN
        PERFORM refuse_version(relation, format('the changes of %s cannot be followed: %s', relation, problem));
    END IF;
    SELECT (v.cut).* INTO reached FROM versions_of(relation) AS v WHERE v.version = wanted;
    IF NOT FOUND THEN
        PERFORM refuse_version(relation, no_version(relation, wanted));
    ELSIF NOT version_is_readable(relation, reached) THEN
        PERFORM refuse_version(relation, format('the changes of %s no longer reach back to version %s', relation,
            wanted));
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_version(regclass, bigint) IS
    'Error 55000 unless every change since this version is kept.';

CREATE OR REPLACE FUNCTION pgtrickle_private.newest_version(relation regclass) RETURNS bigint
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT max(v.version) FROM versions_of(relation) AS v
$$;
COMMENT ON FUNCTION pgtrickle_private.newest_version(regclass) IS
    'The newest version of a source or stream table; NULL if it has none.';

-- The first of several versions with one watermark: so it is the same one whenever it is asked for.
CREATE OR REPLACE FUNCTION pgtrickle_private.version_at(relation regclass, wanted pgtrickle.progress) RETURNS bigint
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    newest CONSTANT progress := (SELECT v.progress FROM versions_of(relation) AS v ORDER BY v.version DESC LIMIT 1);
    found CONSTANT bigint := (
        SELECT v.version FROM versions_of(relation) AS v WHERE v.is_first AND reaches(wanted, v.progress)
        ORDER BY v.version DESC LIMIT 1);
BEGIN
    IF wanted IS NULL THEN
        PERFORM refuse_value('watermark', NULL, 'Give an event time or the number of a batch.');
    ELSIF NOT reaches(newest, wanted) OR newest IS NULL THEN
        RAISE EXCEPTION '% is not complete through %, but through %', relation, progress_text(wanted),
            COALESCE(progress_text(newest), 'nothing yet')
            USING ERRCODE = '55000', CONSTRAINT = 'not_fresh', HINT = CASE
                WHEN NOT newest IS NULL THEN 'Ask again later, or for an earlier watermark.'
                WHEN EXISTS (SELECT FROM pgt_stream_tables AS t WHERE t.pgt_relid = relation)
                THEN 'Versions of a stream table begin with its first feed: pgtrickle.create_feed().'
                ELSE 'Versions of a source begin with its first watermark: pgtrickle.advance_watermark().' END;
    ELSIF NOT withdrawn(relation, wanted) IS NULL THEN
        PERFORM refuse_version(relation, format('the watermark %s of %s was taken back',
            progress_text(withdrawn(relation, wanted)), relation));
    ELSIF found IS NULL THEN
        PERFORM refuse_version(relation, format('the versions of %s begin after %s', relation, progress_text(wanted)));
    END IF;
    RETURN found;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.version_at(regclass, pgtrickle.progress) IS
    'The version of a source or stream table at its newest watermark that is not after this one. Error 55000 if it is '
    'not complete through there yet, or its versions begin later.';

CREATE OR REPLACE FUNCTION pgtrickle.versions(relation regclass)
    RETURNS TABLE (version bigint, watermark timestamptz, batch bigint, recorded_at timestamptz, readable boolean)
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    WITH feed AS MATERIALIZED (SELECT feed_problem(relation) IS NULL AS sound)
    SELECT v.version, (v.progress).watermark, (v.progress).batch, v.recorded_at,
        f.sound AND version_is_readable(relation, v.cut)
    FROM versions_of(relation) AS v CROSS JOIN feed AS f ORDER BY v.version
$$;
COMMENT ON FUNCTION pgtrickle.versions(regclass) IS
    'The versions of a source or stream table, oldest first: what it was complete through, and whether the changes '
    'since then are kept. Those of a source are its watermarks, those of a stream table the refreshes since its first '
    'feed was created.';
