-- Rows that replication applies are captured one by one, also where no subscription is known. Run once and never edited
-- afterwards.

-- As capture_triggers() has it. What is damaged stays so, for the next tick to see; so does what the installer may not
-- alter.
DO $$
DECLARE
    source record;
    part record;
BEGIN
    FOR source IN
        SELECT k.source_relid::oid AS relid, k.relations FROM pgtrickle.pgt_change_tracking AS k
        WHERE k.capture_mode = 'statement'
            AND EXISTS (SELECT FROM pg_catalog.pg_class AS c WHERE c.oid = k.source_relid)
            AND (SELECT bool_and(t.tgenabled = 'A') AND (k.trigger_stamp IS NULL OR k.trigger_stamp
                    = md5(string_agg(concat(t.oid, ' ', t.xmin), ',' ORDER BY t.oid)))
                 FROM pg_catalog.pg_trigger AS t
                 WHERE t.tgrelid = ANY (k.relations) AND t.tgname IN (
                     SELECT format('pgtrickle_%s_%s', e, k.source_relid::oid)
                     FROM unnest('{insert,update,delete,truncate}'::text[]) AS e))
    LOOP
        BEGIN
            FOR part IN
                SELECT c.oid::regclass AS name, c.relispartition AND c.oid <> source.relid AS cloned
                FROM pg_catalog.pg_class AS c WHERE c.oid = ANY (source.relations) ORDER BY cloned
            LOOP
                IF NOT part.cloned THEN
                    EXECUTE format('CREATE OR REPLACE TRIGGER pgtrickle_row_%1$s AFTER INSERT OR UPDATE OR DELETE '
                        'ON %2$s FOR EACH ROW EXECUTE FUNCTION pgtrickle_changes.capture_row_%1$s()',
                        source.relid, part.name);
                END IF;
                EXECUTE format('ALTER TABLE %2$s ENABLE REPLICA TRIGGER pgtrickle_row_%1$s, '
                    'ENABLE TRIGGER pgtrickle_insert_%1$s, ENABLE TRIGGER pgtrickle_update_%1$s, '
                    'ENABLE TRIGGER pgtrickle_delete_%1$s', source.relid, part.name);
            END LOOP;
            UPDATE pgtrickle.pgt_change_tracking AS k SET trigger_stamp = NULL WHERE k.source_relid = source.relid;
        EXCEPTION
            WHEN insufficient_privilege OR undefined_object THEN NULL;
        END;
    END LOOP;
END
$$;
