-- The gating decision: the only one, for the refresher, the status functions and explain.

CREATE OR REPLACE FUNCTION pgtrickle_private.gate_group(
        p_pgt_id bigint, p_group_id integer,
        OUT decision text, OUT reason text, OUT waiting_for text, OUT effective pgtrickle.progress, OUT caps jsonb,
            OUT let_through pgtrickle.progress)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    alignment record;
    stream_table CONSTANT pgt_stream_tables := (SELECT t FROM pgt_stream_tables AS t WHERE t.pgt_id = p_pgt_id);
BEGIN
    SELECT * INTO alignment FROM group_alignment(p_group_id, stream_table);
    decision := 'run';
    caps := '{}';
    IF alignment.aligned IS NULL THEN
        waiting_for := last_names(alignment.never_advanced);
        reason := format('%s never advanced', waiting_for);
        IF stream_table.require_watermark THEN
            decision := 'waiting';
        -- Who groups a source alone wants it loaded first: nothing else could come of such a group.
        ELSIF cardinality(alignment.sources) = 1 THEN
            decision := 'gated';
        END IF;
        RETURN;
    END IF;
    effective := alignment.complete_through;
    reason := format('aligned at %s', progress_text(alignment.low))
        || COALESCE(', without ' || last_names(alignment.idle) || ' (idle)', '');
    IF alignment.aligned THEN
        let_through := effective;
    ELSE
        decision := 'gated';
        waiting_for := last_name(alignment.slowest);
        reason := format('%s is %s behind %s, tolerance %s',
                         waiting_for, distance_text(alignment.lag), last_name(alignment.fastest),
                             distance_text(alignment.tolerance));
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.gate_group(bigint, integer) IS
    'What one group asks of a gated stream table: whether it may refresh, and with let_through through which '
    'watermark it is aligned now.';

CREATE OR REPLACE FUNCTION pgtrickle_private.graver(a text, b text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    -- A gate can be passed by hand and by a deadline, a wait by nobody.
    RETURN CASE WHEN 'waiting' IN (a, b) THEN 'waiting' WHEN 'gated' IN (a, b) THEN 'gated' ELSE 'run' END;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.graver(text, text) IS
    'Of two decisions the one that keeps more refreshes from running.';

CREATE OR REPLACE FUNCTION pgtrickle_private.kinds_without(p_pgt_id bigint, p_group_id integer) RETURNS text[]
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    -- A closed window is never opened again, and a frozen row never changed, so neither may be on the word of some
    -- groups only.
    RETURN (SELECT group_kind(g) FROM pgt_watermark_groups AS g WHERE g.group_id = p_group_id)
        || CASE WHEN (SELECT t.output_mode = 'append' OR t.frozen_after IS NOT NULL FROM pgt_stream_tables AS t
                   WHERE t.pgt_id = p_pgt_id)
            THEN '{event time}'::text[] END;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.kinds_without(bigint, integer) IS
    'The kinds of effective watermark that a stream table has none of while this group vouches for nothing.';

CREATE OR REPLACE FUNCTION pgtrickle_private.of_other_kinds(a pgtrickle.progress, kinds text[])
    RETURNS pgtrickle.progress
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN ROW(CASE WHEN NOT 'event time' = ANY (kinds) THEN (a).watermark END,
               CASE WHEN NOT 'batch numbers' = ANY (kinds) THEN (a).batch END)::progress;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.of_other_kinds(pgtrickle.progress, text[]) IS
    'What is left of a without these kinds.';

CREATE OR REPLACE FUNCTION pgtrickle_private.held_below(
        p_upstream bigint[], OUT watermark timestamptz, OUT batch bigint, OUT kinds_without text[])
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    SELECT min(b.watermark), min(b.batch), COALESCE(array_agg(k.kind) FILTER (WHERE k.kind IS NOT NULL), '{}')
    INTO watermark, batch, kinds_without
    FROM pgt_stream_tables AS u CROSS JOIN LATERAL gating_scope(u.pgt_id) AS s
    CROSS JOIN LATERAL groups_decision(u.pgt_id, s.gating, s.groups, s.upstream) AS d
    CROSS JOIN LATERAL (SELECT greatest(u.effective_watermark, (d.effective).watermark) AS watermark,
                               greatest(u.effective_batch, (d.effective).batch) AS batch) AS b
    LEFT JOIN LATERAL (
        SELECT group_kind(g) AS kind FROM pgt_watermark_groups AS g
        WHERE g.group_id = ANY (s.groups) AND CASE group_kind(g) WHEN 'event time' THEN b.watermark IS NULL
            ELSE b.batch IS NULL END) AS k ON true
    WHERE u.pgt_id = ANY (p_upstream) AND u.watermark_gating = 'hold_back';
END
$$;
COMMENT ON FUNCTION pgtrickle_private.held_below(bigint[]) IS
    'How far the stream tables among these that hold back are complete, and the kinds in which one of them has '
    'groups, but no effective watermark.';

CREATE OR REPLACE FUNCTION pgtrickle_private.without_groups(gating text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN CASE gating WHEN 'none' THEN 'not gated' WHEN 'hold_back' THEN 'uncapped: no group'
        ELSE 'no watermark group concerns it' END;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.without_groups(text) IS
    'What is said of a stream table that no watermark group concerns.';

CREATE OR REPLACE FUNCTION pgtrickle_private.free_decision(
        watermark_gating text,
        OUT gating text, OUT decision text, OUT reason text, OUT waiting_for text, OUT effective_watermark timestamptz,
            OUT caps jsonb, OUT deadline_passed boolean, OUT effective_batch bigint, OUT let_through jsonb)
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    gating := CASE watermark_gating WHEN 'auto' THEN 'none' ELSE watermark_gating END;
    decision := 'run';
    reason := without_groups(gating);
    caps := '{}';
    deadline_passed := false;
    let_through := '{}';
END
$$;
COMMENT ON FUNCTION pgtrickle_private.free_decision(text) IS
    'The gating decision of a stream table whose sources no watermark group, limit or gate concerns, and which has no '
    'frozen rows.';

CREATE OR REPLACE FUNCTION pgtrickle_private.groups_decision(
        p_pgt_id bigint, gating text, groups integer[], upstream bigint[],
        OUT decision text, OUT reason text, OUT waiting_for text, OUT effective pgtrickle.progress, OUT caps jsonb,
            OUT let_through jsonb)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    -- While nothing comes, all that came is read, and the clock says which windows are over.
    closing CONSTANT timestamptz := closing_by_clock(p_pgt_id, gating, groups, upstream);
    verdict record;
    next_group integer;
    dropped text;
    unknown text[] := '{}';
BEGIN
    decision := 'run';
    caps := '{}';
    let_through := '{}';
    FOREACH next_group IN ARRAY CASE gating WHEN 'none' THEN '{}' ELSE groups END LOOP
        IF gating = 'hold_back' AND closing IS NULL THEN
            verdict := hold_back_group(p_pgt_id, next_group, upstream);
        ELSE
            verdict := gate_group(p_pgt_id, next_group);
            IF closing IS NOT NULL AND NOT verdict.effective IS NULL THEN
                verdict.decision := 'run';
                verdict.waiting_for := NULL;
            END IF;
        END IF;
        dropped := dropped_from(next_group);
        decision := graver(graver(decision, verdict.decision),
            CASE WHEN dropped IS NOT NULL AND gating = 'gate' THEN 'gated' ELSE 'run' END);
        reason := concat_ws('; ', reason, dropped, (SELECT g.group_name FROM pgt_watermark_groups AS g
            WHERE g.group_id = next_group) || ': ' || verdict.reason);
        waiting_for := concat_ws(', ', NULLIF(waiting_for, ''), verdict.waiting_for);
        IF NOT verdict.let_through IS NULL THEN
            let_through := let_through || jsonb_build_object(next_group, to_jsonb(verdict.let_through));
        END IF;
        effective := lesser(effective, verdict.effective);
        IF verdict.effective IS NULL THEN
            unknown := unknown || kinds_without(p_pgt_id, next_group);
        END IF;
        caps := CASE WHEN caps = '{}' THEN verdict.caps ELSE lower_caps(caps, verdict.caps) END;
    END LOOP;
    reason := COALESCE(reason, without_groups(gating));
    IF closing > (effective).watermark THEN
        effective := ROW(closing, (effective).batch)::progress;
        reason := format('%s; nothing came since %s, so windows close through %s', reason,
            date_trunc('second', silent_since(groups, upstream)), closing);
    END IF;
    IF gating = 'gate' AND NOT effective IS NULL AND cardinality(upstream) > 1 THEN
        -- What it reads through a stream table that holds back is no further than that one.
        verdict := held_below(upstream);
        effective := ROW(CASE WHEN (effective).watermark IS NOT NULL
            THEN least((effective).watermark, verdict.watermark) END,
                         CASE WHEN (effective).batch IS NOT NULL THEN least((effective).batch, verdict.batch)
                             END)::progress;
        unknown := unknown || verdict.kinds_without;
    END IF;
    IF unknown <> '{}' THEN
        effective := of_other_kinds(effective, unknown);
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.groups_decision(bigint, text, integer[], bigint[]) IS
    'What all watermark groups together ask of a stream table.';

CREATE OR REPLACE FUNCTION pgtrickle_private.stale_hold(stream_table pgtrickle.pgt_stream_tables, groups integer[],
    sources regclass[], OUT source text, OUT sentence text)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF EXISTS (SELECT FROM pgt_source_limits WHERE on_stale = 'hold')
        OR EXISTS (SELECT FROM pgt_watermark_groups WHERE on_stale = 'hold') THEN
        SELECT string_agg(f.source::text, ', ' ORDER BY f.place),
               string_agg(COALESCE(f.group_name || ': ', '') || format('%s is stale: not seen since %s, limit %s',
                                                                        f.source, date_trunc('second', f.seen_at),
                                                                written_interval(f.stale_after)), '; ' ORDER BY f.place)
        INTO source, sentence
            FROM stale_sources() WITH ORDINALITY AS f(source, group_id, group_name, seen_at, stale_after, holds, place)
        WHERE f.holds AND stream_table.watermark_gating <> 'none'
            AND CASE WHEN f.group_id IS NULL THEN f.source = ANY (sources) ELSE f.group_id = ANY (groups) END;
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.stale_hold(pgtrickle.pgt_stream_tables, integer[], regclass[]) IS
    'The stale sources that hold a stream table, and the sentence that says so; NULL if none does.';

CREATE OR REPLACE FUNCTION pgtrickle_private.gate_deadline_passed(stream_table pgtrickle.pgt_stream_tables,
    sources regclass[]) RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    -- Time under a source gate was not spent waiting for watermarks.
    RETURN COALESCE(now() - greatest(stream_table.gated_since, (
        SELECT max(g.ungated_at) FROM pgt_source_gates AS g WHERE stream_table.gated_since IS NOT NULL
            AND g.source_relid = ANY (sources)))
        >= stream_table.gate_deadline AND stream_table.gated_since IS NOT NULL, false);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.gate_deadline_passed(pgtrickle.pgt_stream_tables, regclass[]) IS
    'Whether a stream table has waited behind a shut gate for as long as it may.';

CREATE OR REPLACE FUNCTION pgtrickle.gating_decision(
        p_pgt_id bigint,
        OUT gating text, OUT decision text, OUT reason text, OUT waiting_for text, OUT effective_watermark timestamptz,
            OUT caps jsonb,
        OUT deadline_passed boolean, OUT effective_batch bigint, OUT let_through jsonb)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
    SET TimeZone = 'UTC' SET DateStyle = 'ISO' SET IntervalStyle = 'postgres'
AS $$
DECLARE
    stream_table CONSTANT pgt_stream_tables := (SELECT t FROM pgt_stream_tables AS t WHERE t.pgt_id = p_pgt_id);
    scope record;
    found record;
BEGIN
    IF stream_table.pgt_id IS NOT NULL AND stream_table.frozen_after IS NULL AND NOT anything_gates() THEN
        SELECT d.* INTO gating, decision, reason, waiting_for, effective_watermark, caps, deadline_passed,
            effective_batch, let_through
        FROM free_decision(stream_table.watermark_gating) AS d;
        RETURN;
    END IF;
    scope := gating_scope(p_pgt_id);
    IF scope.gating IS NULL THEN
        RAISE EXCEPTION 'there is no stream table number %', p_pgt_id
            USING ERRCODE = '42704', CONSTRAINT = 'unknown_stream_table', HINT = 'It may have been dropped meanwhile.';
    END IF;
    gating := scope.gating;
    SELECT d.decision, d.reason, d.waiting_for, (d.effective).watermark, d.caps, (d.effective).batch, d.let_through
    INTO decision, reason, waiting_for, effective_watermark, caps, effective_batch, let_through
    FROM groups_decision(p_pgt_id, scope.gating, scope.groups, scope.upstream) AS d;
    IF scope.gating = 'none' OR scope.groups = '{}' THEN
        effective_watermark := ungated_watermark(p_pgt_id, scope.upstream);
    END IF;
    found := stale_hold(stream_table, scope.groups, scope.sources);
    IF found.sentence IS NOT NULL THEN
        decision := graver(decision, 'gated');
        reason := concat_ws('; ', found.sentence, reason);
        waiting_for := found.source;
    END IF;
    deadline_passed := decision = 'gated' AND gate_deadline_passed(stream_table, scope.sources);
    SELECT string_agg(h.source::text, ', ') AS source, string_agg(h.sentence, '; ') AS sentence INTO found
        FROM held_sources(scope.sources) AS h;
    IF found.sentence IS NOT NULL THEN
        decision := graver(decision, 'gated');
        deadline_passed := false;
        reason := concat_ws('; ', found.sentence, NULLIF(reason, 'not gated'));
        waiting_for := found.source;
    ELSIF deadline_passed THEN
        decision := 'run';
        reason := format('gate deadline of %s passed: %s', stream_table.gate_deadline, reason);
    END IF;
    waiting_for := NULLIF(waiting_for, '');
    let_through := CASE WHEN decision = 'run'
        AND NOT deadline_passed THEN farther_only(stream_table.let_through, let_through) ELSE '{}' END;
END
$$;
COMMENT ON FUNCTION pgtrickle.gating_decision(bigint) IS
    'Whether a stream table may refresh now (run, gated or waiting), why, the event time and the batch it will be '
    'complete through, '
    'and the cut at which each capped direct source must be read; sources not in caps are read at the snapshot. '
    'deadline_passed: it may run only because it has been behind a gate for its gate_deadline. let_through: by group, '
    'the watermark at which it lets the '
    'stream table through, where that is farther than before.';
