-- Removes pytrickle. Dropping the trigger functions drops the triggers on users' tables with them. Stream tables stay
-- behind as plain tables with the rows they had; views of users that call functions of pytrickle go with those.
-- Group roles go where nothing else needs them: another database of the cluster, or a right that somebody gave them.
SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL client_min_messages = warning;
DO $$
DECLARE
    stream_table regclass;
    groups text[] := '{}';
    group_name text;
BEGIN
    IF to_regclass('pgtrickle.pgt_group_roles') IS NOT NULL THEN
        groups := ARRAY(SELECT pgtrickle_private.group_role(g.purpose) FROM pgtrickle.pgt_group_roles AS g
            WHERE pgtrickle_private.group_role(g.purpose) IS NOT NULL);
        FOR stream_table IN SELECT c.oid FROM pgtrickle.pgt_stream_tables AS t
            JOIN pg_class AS c ON c.oid = t.pgt_relid LOOP
            FOREACH group_name IN ARRAY groups LOOP
                EXECUTE format('REVOKE SELECT ON %s FROM %I', stream_table, group_name);
            END LOOP;
        END LOOP;
    END IF;
    IF EXISTS (SELECT FROM pg_event_trigger WHERE evtname = 'pgtrickle_drops') THEN
        DROP EVENT TRIGGER pgtrickle_drops;
    END IF;
    DROP SCHEMA IF EXISTS pgtrickle_state CASCADE;
    DROP SCHEMA IF EXISTS pgtrickle_changes CASCADE;
    DROP SCHEMA IF EXISTS pgtrickle_sinks CASCADE;
    DROP SCHEMA IF EXISTS pgtrickle CASCADE;
    DROP SCHEMA IF EXISTS pgtrickle_private CASCADE;
    FOREACH group_name IN ARRAY groups LOOP
        BEGIN
            EXECUTE format('DROP ROLE %I', group_name);
        EXCEPTION
            WHEN dependent_objects_still_exist OR insufficient_privilege THEN NULL;
        END;
    END LOOP;
END
$$;
