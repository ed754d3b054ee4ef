-- Capture that a loader itself damaged, as by a new partition, set right before its watermark is recorded.

-- To look into capture closely takes longer than an advance. So what loaders do to it is looked for: partitions that
-- came or went, and triggers switched off for a while. Of statements that capture could not follow, which the next tick
-- settles, it is known from which cut on changes can be read.
CREATE OR REPLACE FUNCTION pgtrickle_private.may_be_damaged(source regclass) RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM pgt_change_tracking AS k WHERE k.source_relid = source AND (
            k.relations <> capture_relations(source) OR EXISTS (
                SELECT FROM pg_trigger AS t
                WHERE t.tgrelid = ANY (k.relations) AND t.xmin::text = pg_current_xact_id()::xid::text)));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.may_be_damaged(regclass) IS
    'Whether it is worth asking what is wrong with capture of a source, whose loader is about to advance it.';

-- Changes before the advance can be read from its cut on, those after it not.
CREATE OR REPLACE FUNCTION pgtrickle_private.note_gaps_again(source regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF current_setting(format('pgtrickle.gap_%s', source::oid), true) <> '' THEN
        PERFORM set_config(format('pgtrickle.gap_%s', source::oid), '', true);
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.note_gaps_again(regclass) IS
    'Has a gap noted again that this transaction noted already, if it leaves one after this.';

-- A tick that repairs it later makes the cut of that very advance unreadable, so that what is held back would stand
-- still for as long as each load does the same. Only who may lock the table does. It waits for others for less than
-- deadlock_timeout, since another loader may be waiting for this one to record its watermark. No advance fails for it.
CREATE OR REPLACE FUNCTION pgtrickle_private.mend_capture(caller name, source regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET lock_timeout = '300ms' SET enable_seqscan = on
AS $$
BEGIN
    -- Within a statement its table cannot be altered, and an older snapshot does not show all that was not captured.
    IF pg_trigger_depth() > 1 OR current_setting('transaction_isolation') IN ('repeatable read', 'serializable')
        OR NOT has_table_privilege(caller, source, 'UPDATE, DELETE, TRUNCATE')
        OR NOT EXISTS (
            SELECT FROM pgt_dependencies AS d JOIN pgt_stream_tables AS t USING (pgt_id)
            WHERE d.source_relid = source AND d.source_type <> 'UNCAPTURED' AND t.watermark_gating = 'hold_back')
        OR NOT may_be_damaged(source) THEN
        RETURN;
    END IF;
    BEGIN
        IF capture_damage(source) IS NOT NULL THEN
            PERFORM make_good(source);
        END IF;
    EXCEPTION WHEN OTHERS THEN
        RAISE LOG 'capture of % was left to the next tick: %', source, SQLERRM;
    END;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.mend_capture(name, regclass) IS
    'Repairs capture of a source that is held back before its loader advances it, if that can be done soon; else the '
    'next tick does.';
