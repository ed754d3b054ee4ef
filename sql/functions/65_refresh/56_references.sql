-- What goes with a row, also where foreign keys do nothing: in a session that has switched off triggers.

CREATE OR REPLACE FUNCTION pgtrickle_private.follow_reference() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF is_copied() THEN
        RETURN NULL;
    ELSIF TG_RELID = 'pgt_stream_tables'::regclass THEN
        DELETE FROM pgt_dependencies AS d WHERE d.pgt_id = OLD.pgt_id;
        DELETE FROM pgt_refresh_history AS h WHERE h.pgt_id = OLD.pgt_id;
        DELETE FROM pgt_refresh_requests AS r WHERE r.pgt_id = OLD.pgt_id;
        DELETE FROM pgt_late_changes AS l WHERE l.pgt_id = OLD.pgt_id;
    ELSIF TG_RELID = 'pgt_watermark_groups'::regclass THEN
        DELETE FROM pgt_alert_limits AS l WHERE l.group_id = OLD.group_id;
    ELSIF TG_OP = 'DELETE' THEN
        DELETE FROM pgt_source_partitions AS p WHERE p.source_relid = OLD.source_relid;
    ELSE
        UPDATE pgt_source_partitions AS p SET source_relid = NEW.source_relid WHERE p.source_relid = OLD.source_relid;
    END IF;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.follow_reference() IS
    'Does what a foreign key of the catalog would do, in a session whose session_replication_role is replica.';

CREATE OR REPLACE TRIGGER follow_reference AFTER DELETE
    ON pgtrickle.pgt_stream_tables FOR EACH ROW EXECUTE FUNCTION pgtrickle_private.follow_reference();
ALTER TABLE pgtrickle.pgt_stream_tables ENABLE REPLICA TRIGGER follow_reference;
CREATE OR REPLACE TRIGGER follow_reference AFTER DELETE
    ON pgtrickle.pgt_watermark_groups FOR EACH ROW EXECUTE FUNCTION pgtrickle_private.follow_reference();
ALTER TABLE pgtrickle.pgt_watermark_groups ENABLE REPLICA TRIGGER follow_reference;
CREATE OR REPLACE TRIGGER follow_reference AFTER DELETE OR UPDATE OF source_relid
    ON pgtrickle.pgt_partitioned_sources FOR EACH ROW EXECUTE FUNCTION pgtrickle_private.follow_reference();
ALTER TABLE pgtrickle.pgt_partitioned_sources ENABLE REPLICA TRIGGER follow_reference;
