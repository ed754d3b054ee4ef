-- Staging tables: what is never done to those of sinks, and which a refresh or a sink left behind.

-- Executors of a dead refresher, or a task that was given up, may still be writing to one: it is left for the next
-- time. Whoever stages rows may lock what he stages into, in as many tables as he likes: after ten that are locked the
-- rest is left for the next time. In no order, so that none is left for ever.
CREATE OR REPLACE FUNCTION pgtrickle_private.drop_unused_staging(namespace text, prefix text) RETURNS integer
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET lock_timeout = '100ms' SET client_min_messages = warning
AS $$
DECLARE
    staging regclass;
    dropped integer := 0;
    locked integer := 0;
BEGIN
    FOR staging IN
        SELECT oid FROM pg_class
        WHERE relnamespace = namespace::regnamespace AND relkind = 'r' AND relname ~ format('^%s_[0-9a-f]+$', prefix)
        ORDER BY random()
    LOOP
        EXIT WHEN locked = 10;
        BEGIN
            -- What somebody made to depend on its type must not keep it.
            EXECUTE format('DROP TABLE %s CASCADE', staging);
            dropped := dropped + 1;
        EXCEPTION
            WHEN undefined_table THEN NULL;
            -- Whoever stages rows may also have made more depend on it than can be locked at once.
            WHEN OTHERS THEN locked := locked + 1;
        END;
    END LOOP;
    RETURN dropped;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.drop_unused_staging(text, text) IS
    'Drops the staging tables of this schema and prefix that nobody uses any more; returns how many.';

CREATE OR REPLACE FUNCTION pgtrickle_private.drop_staging(p_pgt_id bigint) RETURNS integer
    LANGUAGE sql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT drop_unused_staging('pgtrickle_changes', format('staging_%s', p_pgt_id))
$$;
COMMENT ON FUNCTION pgtrickle_private.drop_staging(bigint) IS
    'Drops staging tables of a stream table that nobody uses any more; returns how many.';

-- Who stages rows holds a lock of this class, by the number of the stream table (apply.staging_table).
CREATE OR REPLACE FUNCTION pgtrickle_private.drop_left_staging() RETURNS integer
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET standard_conforming_strings = on
AS $$
DECLARE
    id bigint;
    dropped integer := 0;
BEGIN
    FOR id IN
        SELECT DISTINCT split_part(c.relname, '_', 2)::bigint FROM pg_class AS c
        WHERE c.relname >= 'staging_' AND c.relname < 'staging`' AND c.relname ~ '^staging_\d+_[0-9a-f]+$'
            AND c.relnamespace = 'pgtrickle_changes'::regnamespace AND c.relkind = 'r'
    LOOP
        IF pg_try_advisory_xact_lock(1885828211, id::integer) THEN
            dropped := dropped + drop_staging(id);
        END IF;
    END LOOP;
    RETURN dropped;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.drop_left_staging() IS
    'Drops the staging tables of all stream tables for which nobody stages rows now, as a task leaves one that was '
    'given up; returns how many.';

-- PostgreSQL analyzes a table as its owner, and of a range type calls a function that the type's owner may replace. Who
-- loads into a table of his own is nobody whose code may run so.
CREATE OR REPLACE FUNCTION pgtrickle_private.never_analyze(staging regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    EXECUTE (SELECT format('ALTER TABLE %s %s', staging,
                 string_agg(format('ALTER COLUMN %I SET STATISTICS 0', a.attname), ', ' ORDER BY a.attnum))
             FROM pg_attribute AS a WHERE a.attrelid = staging AND a.attnum > 0 AND NOT a.attisdropped);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.never_analyze(regclass) IS
    'Has no statistics gathered of any column of a staging table, by whomever it is analyzed.';
