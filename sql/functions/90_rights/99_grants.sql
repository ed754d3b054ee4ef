-- Who may call what: loaders advance, anybody looks, the rest belongs to the owner of the catalog. What somebody else
-- was granted, by default privileges of whoever installs or since, is taken back.
CREATE OR REPLACE FUNCTION pgtrickle_private.public_functions() RETURNS SETOF regprocedure
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT unnest(ARRAY[
        'pgtrickle.advance_watermark(regclass, timestamptz)',
        'pgtrickle.advance_watermark(text, timestamptz, text)',
        'pgtrickle.advance_watermark(regclass, timestamp)',
        'pgtrickle.advance_watermark(text, timestamp, text)',
        'pgtrickle.advance_watermark(regclass, date)',
        'pgtrickle.advance_watermark(text, date, text)',
        'pgtrickle.reset_watermark(regclass, timestamptz)',
        'pgtrickle.reset_watermark(text, timestamptz, text)',
        'pgtrickle.reset_batch(regclass, bigint)', 'pgtrickle.reset_batch(text, bigint, text)',
        'pgtrickle.set_watermark_checks(regclass, interval, text)',
        'pgtrickle.set_watermark_checks(text, interval, text, text)',
        'pgtrickle.withdrawn_watermarks()',
        'pgtrickle.advance_batch(regclass, bigint)', 'pgtrickle.advance_batch(text, bigint, text)',
        'pgtrickle.advance_partitions(regclass, jsonb, interval, text[], timestamptz)',
        'pgtrickle.forget_partition(regclass, text)', 'pgtrickle.partitions(regclass)',
        'pgtrickle.watermarks()',
        'pgtrickle.watermark_history(regclass)', 'pgtrickle.watermark_history(text, text)',
        'pgtrickle.watermark_groups()', 'pgtrickle.watermark_status()',
        'pgtrickle.pgt_status()',
        'pgtrickle.refresh_groups()',
        'pgtrickle.refresh_history(text, integer, text)',
        'pgtrickle.get_refresh_history(text, integer, text)',
        'pgtrickle.refresh_timeline(integer)',
        'pgtrickle.dependencies()',
        'pgtrickle.dependency_tree()',
        'pgtrickle.dag()',
        'pgtrickle.wait_for(text, timestamptz, interval, text)',
        'pgtrickle.wait_for(text, bigint, interval, text)',
        'pgtrickle.wait_for(text, text, interval, text)',
        'pgtrickle.assert_fresh(text, interval, text)',
        'pgtrickle.gate_source(regclass, text)',
        'pgtrickle.gate_source(text, text, text)',
        'pgtrickle.ungate_source(regclass)',
        'pgtrickle.ungate_source(text, text)',
        'pgtrickle.mark_idle(regclass)',
        'pgtrickle.mark_idle(text, text)',
        'pgtrickle.create_sink_staging(regclass, text, text[], text)',
        'pgtrickle.drop_sink_staging(regclass, text)',
        'pgtrickle.drop_sink(regclass, text)',
        'pgtrickle.staged_rows(text)',
        'pgtrickle.staged_event_time(regclass, text)',
        'pgtrickle.watermark_of(regclass)',
        'pgtrickle.watermark_of(text, text)',
        'pgtrickle.claim_sink_batch(regclass, text, text, bigint, bigint, numeric)',
        'pgtrickle.source_gates()',
        'pgtrickle.event_times()',
        'pgtrickle.late_rows(regclass, text, integer)',
        'pgtrickle.replay_late_rows(regclass, bigint[], boolean, text)',
        'pgtrickle.discard_late_rows(regclass, bigint[])',
        'pgtrickle.watermark_metrics()',
        'pgtrickle.bootstrap_gate_status()',
        'pgtrickle.bootstrap_status()',
        'pgtrickle.alerts(integer)',
        'pgtrickle.alert_limits()', 'pgtrickle.source_limits(regclass)', 'pgtrickle.source_limits(text, text)',
        'pgtrickle.late_changes(text, integer, text)',
        'pgtrickle.windows()',
        'pgtrickle.adopt_source(regclass)',
        'pgtrickle.adopt_source(text, text)',
        'pgtrickle.is_drained()',
        'pgtrickle.grant_loader(regclass, name)',
        'pgtrickle.grant_loader(text, text, text)',
        'pgtrickle.revoke_loader(regclass, name)',
        'pgtrickle.revoke_loader(text, text, text)',
        'pgtrickle.st_refresh_stats()',
        'pgtrickle.pgtrickle_refresh_stats()',
        'pgtrickle.refresh_efficiency()',
        'pgtrickle.commit_latency_stats()',
        'pgtrickle.metrics_summary()',
        'pgtrickle.explain_refresh_mode(text, text)',
        'pgtrickle.list_sources(text, text)',
        'pgtrickle.change_buffer_sizes()',
        'pgtrickle.trigger_inventory()',
        'pgtrickle.check_cdc_health()',
        'pgtrickle.cdc_pause_status()',
        'pgtrickle.shared_buffer_stats()',
        'pgtrickle.slot_health()',
        'pgtrickle.list_auxiliary_columns(text, text)',
        'pgtrickle.get_staleness(text, text)',
        'pgtrickle.fuse_status()',
        'pgtrickle.pgt_scc_status()',
        'pgtrickle.diagnose_errors(text, text)',
        'pgtrickle.freshness()',
        'pgtrickle.integration_capabilities()',
        'pgtrickle.view_evolution_status()',
        'pgtrickle.health_check()',
        'pgtrickle.health_summary()',
        'pgtrickle.version()',
        'pgtrickle.version_check()',
        'pgtrickle.parse_duration_seconds(text)',
        'pgtrickle.explain_dag(text)',
        'pgtrickle.diamond_groups()',
        'pgtrickle.explain_st(text, boolean, text)',
        'pgtrickle.explain(text, text)',
        'pgtrickle.explain_json(text, text)',
        'pgtrickle.explain_stream_table(text, text)',
        'pgtrickle.sla_summary()',
        'pgtrickle.stream_table_spec(text, text)',
        'pgtrickle.stream_table_spec(oid)',
        'pgtrickle.export_definition(text, text)',
        'pgtrickle.stream_table_definition(text, text)',
        'pgtrickle.versions(regclass)',
        'pgtrickle.feeds()',
        'pgtrickle.advance_feed(text, bigint)',
        'pgtrickle.changes(anyelement, timestamptz, timestamptz, text, boolean)',
        'pgtrickle.changes_of_versions(anyelement, bigint, bigint, text, boolean)',
        'pgtrickle.as_of_version(anyelement, bigint, integer, integer)',
        'pgtrickle.covers(pgtrickle.cut, xid8, bigint)',
        -- What these call with the rights of their caller: it tells nothing that is not told to everybody.
        'pgtrickle_private.catalog_owner()',
        'pgtrickle_private.is_copied()',
        'pgtrickle_private.qualified_name(regclass)',
        'pgtrickle_private.readable_text(text)', 'pgtrickle_private.readable_texts(text[])',
        'pgtrickle.problems()',
        'pgtrickle.running()',
        'pgtrickle_private.pairs_of(text)',
        'pgtrickle_private.did_you_mean(text, text[])',
        'pgtrickle_private.known_stream_tables(boolean)',
        'pgtrickle_private.known_groups()', 'pgtrickle_private.refuse_unknown_group(text)',
        'pgtrickle_private.known_tables(boolean)',
        'pgtrickle_private.relation_named(text, text)',
        'pgtrickle_private.source_named(text, text)', 'pgtrickle_private.check_there(regclass)',
        'pgtrickle_private.known_stream_table(regclass, text)',
        'pgtrickle_private.stream_table_id(text, text)',
        'pgtrickle_private.stream_table_relation(bigint)',
        'pgtrickle_private.refuse_value(text, text, text)',
        'pgtrickle_private.check_choice(text, text, text[])', 'pgtrickle_private.checked_format(text)',
        'pgtrickle_private.late_limit(integer)',
        'pgtrickle_private.reads_all(name, regclass)',
        'pgtrickle_private.partition_state(timestamptz, timestamptz, interval, timestamptz)',
        'pgtrickle_private.check_reads_all(name, regclass, text)',
        'pgtrickle_private.distance(timestamptz, timestamptz)',
        'pgtrickle_private.readable_stream_table(text, text)',
        'pgtrickle_private.check_wait(pgtrickle.progress, interval)',
        'pgtrickle_private.reach(bigint, text, pgtrickle.progress, interval)',
        'pgtrickle_private.await_progress(text, pgtrickle.progress, interval, text)',
        'pgtrickle_private.check_span(text, interval)',
        'pgtrickle_private.read_moment(text, text)',
        'pgtrickle_private.row_limit(integer)',
        'pgtrickle_private.refuse_stale(bigint, interval, interval)',
        'pgtrickle_private.filled_at(bigint)', 'pgtrickle_private.incomplete_since(bigint)',
        'pgtrickle_private.verdicts()',
        'pgtrickle_private.period_of(text)',
        'pgtrickle_private.refresher_runs()',
        'pgtrickle_private.direct_sources()',
        'pgtrickle_private.dag_edges()',
        'pgtrickle_private.refresh_timing(bigint)',
        'pgtrickle_private.definition_text(bigint)',
        'pgtrickle_private.definition_json(bigint)',
        'pgtrickle_private.without_values(text, text)',
        'pgtrickle_private.check_version(regclass, bigint)',
        'pgtrickle_private.check_same_buffer(regclass)',
        'pgtrickle_private.newest_version(regclass)',
        'pgtrickle_private.version_at(regclass, pgtrickle.progress)',
        'pgtrickle_private.version_ranges(regclass, bigint, bigint)',
        'pgtrickle_private.typed_changes_query(regclass, text, boolean)',
        'pgtrickle_private.as_of_query(regclass)',
        'pgtrickle_private.cut_of_version(regclass, bigint)',
        'pgtrickle_private.check_group_at(regclass, text, pgtrickle.progress)',
        'pgtrickle_private.check_not_rewritten(regclass)'
    ]::regprocedure[])
$$;
COMMENT ON FUNCTION pgtrickle_private.public_functions() IS 'The functions that every role may call.';

CREATE OR REPLACE FUNCTION pgtrickle_private.public_relations() RETURNS SETOF regclass
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT unnest(ARRAY[
        -- Whoever calls functions through the Python client has the versions compared first.
        'pgtrickle.pgt_schema_version',
        'pgtrickle.pgt_readable_late_rows',
        'pgtrickle.pgt_readable_partitions',
        'pgtrickle.pgt_readable_late_changes',
        'pgtrickle.pgt_readable_errors',
        'pgtrickle.pgt_readable_history',
        'pgtrickle.stream_tables_info',
        'pgtrickle.refresh_history_info',
        'pgtrickle.pgt_refresh_summary',
        'pgtrickle.pgt_cost_model_summary',
        'pgtrickle.pg_stat_stream_tables',
        'pgtrickle.quick_health',
        'pgtrickle.pgt_cdc_status',
        'pgtrickle.pg_stat_pgtrickle',
        'pgtrickle.pg_stat_progress_pgtrickle'
    ]::regclass[])
    UNION
    SELECT c.oid FROM pgt_feeds AS f JOIN pg_class AS c ON c.oid = to_regclass(feed_view(f.source_relid))
$$;
COMMENT ON FUNCTION pgtrickle_private.public_relations() IS 'The tables and views that every role may read.';

CREATE OR REPLACE FUNCTION pgtrickle.settle_grants() RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    callable regprocedure;
    readable regclass;
BEGIN
    PERFORM hand_over_everything();
    PERFORM add_change_clocks();
    PERFORM guard_kept_tables();
    PERFORM keep_all_copies_out();
    PERFORM drop_idle_copies();
    PERFORM never_analyze(c.oid) FROM pg_class AS c
        WHERE c.relnamespace = 'pgtrickle_sinks'::regnamespace AND c.relkind = 'r' AND pg_has_role(c.relowner, 'USAGE');
    PERFORM name_query_view(t) FROM pgt_stream_tables AS t JOIN pg_class AS c ON c.oid = t.view_relid
    WHERE pg_has_role(c.relowner, 'USAGE');
    PERFORM guard_relation(c.oid) FROM pgt_stream_tables AS t JOIN pg_class AS c ON c.oid = t.pgt_relid
    WHERE pg_has_role(c.relowner, 'USAGE')
        AND NOT EXISTS (SELECT FROM pg_trigger AS g WHERE g.tgrelid = c.oid AND g.tgname = 'pgtrickle_guard_rows');
    FOR callable IN SELECT public_functions() LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO PUBLIC', callable);
    END LOOP;
    GRANT USAGE ON SCHEMA pgtrickle, pgtrickle_private, pgtrickle_sinks TO PUBLIC;
    FOR readable IN SELECT public_relations() LOOP
        EXECUTE format('GRANT SELECT ON %s TO PUBLIC', readable);
    END LOOP;
    GRANT INSERT (call, source, arguments), SELECT (result) ON pgtrickle.pgt_calls TO PUBLIC;
    PERFORM grant_to_groups();
    PERFORM admit_partition_makers();
END
$$;
COMMENT ON FUNCTION pgtrickle.settle_grants() IS
    'Grants to everybody what is for everybody, to the group roles what they may do, to the owners of partitioned '
    'sources what making partitions takes, and nothing else to anybody but the owner of the catalog.';

-- As after REASSIGN OWNED: its members would have the rights of a role that has nothing to do with the catalog now.
CREATE OR REPLACE FUNCTION pgtrickle_private.outgrown_membership() RETURNS SETOF text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT format('the rights of %I, who does not own the catalog any more, to %I', o.rolname, g.rolname)
    FROM pg_roles AS g JOIN pg_auth_members AS m ON m.member = g.oid JOIN pg_roles AS o ON o.oid = m.roleid
    WHERE g.rolname = group_role('owner') AND NOT EXISTS (
        SELECT FROM pg_auth_members AS k JOIN pg_roles AS c ON c.oid = k.roleid
        WHERE k.member = g.oid AND c.rolname = catalog_owner())
$$;
COMMENT ON FUNCTION pgtrickle_private.outgrown_membership() IS
    'Whose rights the group of owners has where those are no longer the rights of the owner of the catalog.';

CREATE OR REPLACE FUNCTION pgtrickle_private.foreign_grants() RETURNS SETOF text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET standard_conforming_strings = on
AS $$
    WITH ours AS (
        SELECT n.oid, n.nspname, n.nspowner, n.nspacl FROM pg_namespace AS n
        WHERE n.nspname IN ('pgtrickle', 'pgtrickle_changes', 'pgtrickle_private', 'pgtrickle_sinks', 'pgtrickle_state')
    ), granted(object, owner, acl, known) AS (
        SELECT 'SCHEMA ' || nspname, nspowner, nspacl, CASE
            WHEN nspname IN ('pgtrickle', 'pgtrickle_private', 'pgtrickle_sinks') THEN '{USAGE}'::text[] ELSE '{}' END
            FROM ours
        UNION ALL
        SELECT c.oid::regclass::text, c.relowner, c.relacl,
               CASE WHEN c.oid::regclass IN (SELECT public_relations()) THEN '{SELECT}'::text[] ELSE '{}' END
        FROM ours AS o JOIN pg_class AS c ON c.relnamespace = o.oid
            WHERE NOT (o.nspname = 'pgtrickle_sinks' AND c.relname LIKE 'sink\_%')
        UNION ALL
        SELECT format('%s (%I)', c.oid::regclass, a.attname), c.relowner, a.attacl, CASE WHEN c.relname = 'pgt_calls'
            THEN '{INSERT,SELECT}'::text[] ELSE '{}' END
        FROM ours AS o JOIN pg_class AS c ON c.relnamespace = o.oid JOIN pg_attribute AS a ON a.attrelid = c.oid
            AND a.attacl IS NOT NULL
        UNION ALL
        SELECT p.oid::regprocedure::text, p.proowner, COALESCE(p.proacl, acldefault('f', p.proowner)),
               CASE WHEN p.oid::regprocedure IN (SELECT public_functions()) THEN '{EXECUTE}'::text[] ELSE '{}' END
        FROM ours AS o JOIN pg_proc AS p ON p.pronamespace = o.oid
        UNION ALL
        SELECT 'TYPE ' || t.oid::regtype, t.typowner, COALESCE(t.typacl, acldefault('T', t.typowner)), '{}'
        FROM ours AS o JOIN pg_type AS t ON t.typnamespace = o.oid AND o.nspname = 'pgtrickle' AND t.typtype <> 'p'
            AND t.typelem = 0)
    SELECT format('%s on %s to %s', string_agg(a.privilege_type, ', ' ORDER BY a.privilege_type), g.object,
                  CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END)
    FROM granted AS g CROSS JOIN LATERAL aclexplode(g.acl) AS a
    WHERE a.grantee <> g.owner AND NOT (a.grantee = 0 AND a.privilege_type = ANY (g.known))
        AND (g.object, pg_get_userbyid(a.grantee), a.privilege_type) NOT IN (
            SELECT k.object, k.role_name, k.privilege FROM group_grants() AS k WHERE k.role_name IS NOT NULL)
    GROUP BY g.object, a.grantee
    UNION ALL SELECT outgrown_membership()
    ORDER BY 1
$$;
COMMENT ON FUNCTION pgtrickle_private.foreign_grants() IS
    'What somebody was granted on the catalog that settle_grants() would take back.';

-- A catalog that is upgraded remembers from now on.
SELECT pgtrickle_private.stamp_capture(t.source_relid)
    FROM pgtrickle.pgt_change_tracking AS t CROSS JOIN LATERAL (SELECT regexp_replace(
        pgtrickle_private.capture_stamp(t.source_relid, t.capture_mode), '^([^ /]*)/[^ ]*', '\1')) AS c(former)
    WHERE COALESCE(t.trigger_stamp IN (c.former, split_part(c.former, ' ', 1)), true);
SELECT pgtrickle_private.renew_capture_functions();

SELECT pgtrickle.settle_grants();
