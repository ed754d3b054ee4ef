-- What capturing a source takes: its relations, mode, columns, trigger functions and triggers.

CREATE OR REPLACE FUNCTION pgtrickle_private.capture_relations(source regclass) RETURNS oid[]
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN (
        WITH RECURSIVE relations(relid) AS (
            SELECT source::oid UNION
            SELECT c.oid FROM relations JOIN pg_inherits ON inhparent = relid JOIN pg_class AS c ON c.oid = inhrelid
            -- Of a partition that is about to be detached nobody reads anything: that keeps the source from capture.
            WHERE c.relpersistence <> 't' AND NOT inhdetachpending)
        SELECT array_agg(relid ORDER BY relid) FROM relations);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.capture_relations(regclass) IS
    'The source and all its partitions or children, sorted; without temporary children, of which only the session that '
    'created them sees rows.';

-- A statement trigger sees only statements that name its own relation: DML through a parent passes by, also through
-- another parent of a child. The logical replication worker fires row triggers only.
CREATE OR REPLACE FUNCTION pgtrickle_private.capture_mode(source regclass) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    WITH captured(relids) AS MATERIALIZED (SELECT capture_relations(source))
    SELECT CASE
        WHEN EXISTS (SELECT FROM pg_inherits AS i WHERE i.inhrelid = ANY (relids) AND i.inhparent <> ALL (relids))
            OR EXISTS (SELECT FROM pg_subscription_rel AS s WHERE s.srrelid = ANY (relids)) THEN 'row'
        ELSE 'statement'
    END
    FROM captured
$$;
COMMENT ON FUNCTION pgtrickle_private.capture_mode(regclass) IS
    'row for a partition, an inheritance child, a table of which a child has another parent, and a subscribed table; '
    'otherwise statement.';

CREATE OR REPLACE FUNCTION pgtrickle_private.capture_obstacle(source regclass) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN (
        SELECT CASE
            WHEN n.nspname IN ('pg_catalog', 'information_schema', 'pgtrickle', 'pgtrickle_changes',
                'pgtrickle_private', 'pgtrickle_sinks', 'pgtrickle_state')
                THEN 'is a system table'
            WHEN c.relkind = 'm' THEN 'is a materialized view'
            WHEN c.relkind = 'f' THEN 'is a foreign table'
            WHEN c.relkind NOT IN ('r', 'p') THEN 'is not a table'
            WHEN c.relpersistence = 'u' THEN 'is unlogged, a crash would empty it unnoticed'
            WHEN parts.unlogged IS NOT NULL THEN format(
                'has the unlogged partition or child %s, a crash would empty that unnoticed', parts.unlogged)
            -- PostgreSQL refuses every write through a parent with transition tables and a foreign partition.
            WHEN parts.distant THEN 'has a foreign table among its partitions or children'
            -- Whoever writes at REPEATABLE READ still writes to it through the table, which no longer shows it.
            WHEN parts.leaving IS NOT NULL THEN format('has the partition %s that is being detached', parts.leaving)
            -- In the change buffer that would be another table.
            WHEN located.attname IS NOT NULL THEN format('computes the column %I from tableoid', located.attname)
        END
        FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace CROSS JOIN LATERAL (
            SELECT min(qualified_name(p.oid)) FILTER (WHERE p.relpersistence = 'u'), bool_or(p.relkind = 'f'),
                (SELECT min(qualified_name(i.inhrelid)) FROM pg_inherits AS i
                    WHERE i.inhparent = ANY (array_agg(p.oid)) AND i.inhdetachpending)
            FROM pg_class AS p WHERE p.oid = ANY (capture_relations(source))) AS parts(unlogged, distant, leaving)
        LEFT JOIN LATERAL (
            SELECT a.attname
            FROM pg_attribute AS a JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
            WHERE a.attrelid = c.oid AND a.attgenerated = 'v' AND position(' :varattno -6 ' IN d.adbin::text) > 0
            ORDER BY a.attnum LIMIT 1) AS located ON true
        WHERE c.oid = source);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.capture_obstacle(regclass) IS
    'Why changes of the relation cannot be captured, or NULL.';

CREATE OR REPLACE FUNCTION pgtrickle_private.capture_functions(source regclass, buffer text, columns text[])
    RETURNS TABLE (function_name text, body text)
    LANGUAGE plpgsql STABLE ROWS 10 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET quote_all_identifiers = off
AS $$
DECLARE
    lists record := capture_columns(source, columns);
    -- A standby has none at the moment; what it shows was written where there is one.
    lsn CONSTANT text := CASE WHEN current_lsn() IS NULL AND NOT pg_is_in_recovery() THEN 'NULL'
        ELSE 'pg_current_wal_insert_lsn()' END;
    head CONSTANT text := format('INSERT INTO %s (pgt_weight, pgt_xid, pgt_pos, pgt_lsn%s)', buffer, lists.targets);
    item CONSTANT text := format('pg_current_xact_id(), pgt.pos, pgt.lsn%s', lists.expressions);
    guard CONSTANT text := capture_guard(source, buffer, columns);
    temporary CONSTANT text := temporary_guard(source);
    new_part CONSTANT text := new_part_guard(source);
    truncated CONSTANT text := truncated_guard(source);
    moves CONSTANT boolean := may_move_rows(source, capture_mode(source));
    template CONSTANT text := $template$
#variable_conflict use_column%6$s
<<pgt>>
DECLARE
    pos CONSTANT bigint := nextval('pgtrickle.change_pos');
    lsn CONSTANT pg_lsn := %1$s;
BEGIN
    %7$s%8$s%10$s%9$s
    IF TG_OP = 'INSERT' THEN
        %2$s SELECT 1, %3$s FROM %5$s AS n;
    ELSIF TG_OP = 'DELETE' THEN
        %2$s SELECT -1, %3$s FROM %4$s AS n;
    ELSE
        %2$s SELECT -1, %3$s FROM %4$s AS n UNION ALL SELECT 1, %3$s FROM %5$s AS n;
    END IF;
    RETURN NULL;
END
$template$;
BEGIN
    function_name := format('capture_%s', source::oid);
    body := format(template, lsn, head, item, 'pgt_old', 'pgt_new', lists.note,
        CASE WHEN moves THEN moved_guard(source) ELSE '' END || guard, temporary, truncated, new_part);
    RETURN NEXT;
    function_name := format('capture_row_%s', source::oid);
    body := format(template, lsn, head, item, '(SELECT OLD.*)', '(SELECT NEW.*)', lists.note, guard, '', truncated,
        new_part);
    RETURN NEXT;
    function_name := format('capture_truncate_%s', source::oid);
    body := format($template$
BEGIN
    IF row_security_active(TG_RELID) OR NOT %s THEN
        PERFORM pgtrickle_private.note_capture_gap(%s, TG_RELID, 'was truncated after its columns or policies changed');
        RETURN NULL;
    END IF;
    BEGIN
        EXECUTE format(%L, TG_RELID::regclass) USING nextval('pgtrickle.change_pos'), %s;
    EXCEPTION WHEN insufficient_privilege THEN
        PERFORM pgtrickle_private.note_capture_gap(%s, TG_RELID, 'was truncated while its rows could not be read');
        RETURN NULL;
    END;
    PERFORM set_config('pgtrickle.truncated_%s', extract(epoch FROM statement_timestamp())::text, true);
    -- TRUNCATE removes rows that an older snapshot does not see.
    IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
        PERFORM pgtrickle_private.note_capture_gap(%s, TG_RELID, 'was truncated under an older snapshot');
    END IF;
    RETURN NULL;
END
$template$,
        capture_fits_call('TG_RELID', buffer, columns, NULL), source::oid,
        replace(head, '%', '%%')
            || replace(format(' SELECT -1, pg_current_xact_id(), $1, $2%s FROM ONLY ', lists.expressions), '%', '%%')
            || '%s AS n',
        lsn, source::oid, source::oid, source::oid);
    RETURN NEXT;
    IF moves THEN
        function_name := format('capture_moved_%s', source::oid);
        body := moved_function(source);
        RETURN NEXT;
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.capture_functions(regclass, text, text[]) IS
    'Names and bodies of the trigger functions that log changes of these columns into the buffer.';

-- Row triggers of a partitioned table are cloned onto its partitions by PostgreSQL itself. Whoever applies what is
-- replicated does so in sessions of the role "replica", and mostly fires row triggers only: subscriptions, which may be
-- gone before anybody looks, and extensions. So in such sessions, and in no others, rows are captured one by one.
DROP FUNCTION IF EXISTS pgtrickle_private.capture_triggers(regclass, text);
CREATE OR REPLACE FUNCTION pgtrickle_private.capture_triggers(source regclass, mode text)
    RETURNS TABLE (relation oid, trigger_name text, definition text, function_name text, cloned boolean,
        fires "char")
    LANGUAGE plpgsql STABLE ROWS 10 SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN QUERY
    SELECT c.oid, format('pgtrickle_%s_%s', t.event, source::oid), t.definition, t.function_name || source::oid,
           t.event IN ('row', 'stored', 'in', 'out') AND c.oid <> source AND c.relispartition, t.fires::"char"
    FROM pg_class AS c CROSS JOIN (VALUES
        ('statement', 'insert', 'AFTER INSERT', 'REFERENCING NEW TABLE AS pgt_new FOR EACH STATEMENT', 'capture_', 'O'),
        ('statement', 'update', 'AFTER UPDATE',
            'REFERENCING OLD TABLE AS pgt_old NEW TABLE AS pgt_new FOR EACH STATEMENT', 'capture_', 'O'),
        ('statement', 'delete', 'AFTER DELETE', 'REFERENCING OLD TABLE AS pgt_old FOR EACH STATEMENT', 'capture_',
            'O'),
        ('statement', 'row', 'AFTER INSERT OR UPDATE OR DELETE', 'FOR EACH ROW', 'capture_row_', 'R'),
        ('row', 'row', 'AFTER INSERT OR UPDATE OR DELETE', 'FOR EACH ROW', 'capture_row_', 'A'),
        (capture_triggers.mode, 'truncate', 'BEFORE TRUNCATE', 'FOR EACH STATEMENT', 'capture_truncate_', 'A')
        UNION ALL SELECT capture_triggers.mode, m.event, m.timing, m.clause, 'capture_moved_', 'O'
        FROM moving_triggers(source) AS m WHERE may_move_rows(source, capture_triggers.mode)
    ) AS e(mode, event, timing, clause, function_name, fires)
    CROSS JOIN LATERAL (
        SELECT e.event, e.function_name, e.fires, format('%s ON %s %s', e.timing, c.oid::regclass, e.clause)
    ) AS t(event, function_name, fires, definition)
    WHERE c.oid = ANY (capture_relations(source)) AND e.mode = capture_triggers.mode
        AND (e.event <> 'truncate' OR c.relkind <> 'p')
        AND (e.event NOT IN ('inserting', 'moving') OR c.relkind = 'p');
END
$$;
COMMENT ON FUNCTION pgtrickle_private.capture_triggers(regclass, text) IS
    'Triggers that capture needs, one row per relation and trigger; fires as tgenabled has it.';
