-- Source gates: while one is shut, nothing that is made of the source is refreshed by a tick.

CREATE OR REPLACE FUNCTION pgtrickle_private.shut_gate(caller name, source regclass, reason text) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM check_loader(caller, source, 'gate');
    PERFORM check_length('reason', reason);
    INSERT INTO pgt_source_gates AS g (source_relid, source_name, gated_at, gated_by, reason)
    VALUES (source, qualified_name(source), clock_timestamp(), caller, shut_gate.reason)
    ON CONFLICT (source_relid) DO UPDATE
    SET source_name = EXCLUDED.source_name, ungated_at = NULL,
        gated_at = CASE WHEN g.ungated_at IS NULL THEN g.gated_at ELSE EXCLUDED.gated_at END,
        gated_by = CASE WHEN g.ungated_at IS NULL THEN g.gated_by ELSE EXCLUDED.gated_by END,
        reason = CASE WHEN g.ungated_at IS NULL THEN COALESCE(EXCLUDED.reason, g.reason) ELSE EXCLUDED.reason END;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.shut_gate(name, regclass, text) IS 'Shuts the gate of a source, for its caller.';

CREATE OR REPLACE FUNCTION pgtrickle.gate_source(source regclass, reason text DEFAULT NULL) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    INSERT INTO pgt_calls (call, source, arguments)
        VALUES ('gate_source', source, jsonb_build_object('reason', reason));
END
$$;
COMMENT ON FUNCTION pgtrickle.gate_source(regclass, text) IS
    'From the caller''s commit on, no tick refreshes a stream table that is made of this source, at any depth and '
    'whatever its watermark_gating, '
    'until ungate_source(). Needs INSERT on the source. Gating it again changes nothing but the reason.';

CREATE OR REPLACE FUNCTION pgtrickle.gate_source(
        source text, reason text DEFAULT NULL, search_path text DEFAULT current_setting('search_path')) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM gate_source(source_named(source, search_path), reason);
END
$$;
COMMENT ON FUNCTION pgtrickle.gate_source(text, text, text) IS
    'The same for a source that comes by its name, as text.';

-- The row stays: the time under the gate must not count as silence of the loader, nor towards a gate_deadline.
CREATE OR REPLACE FUNCTION pgtrickle_private.open_gate(caller name, source regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM check_loader(caller, source, 'ungate');
    UPDATE pgt_source_gates AS g SET ungated_at = clock_timestamp() WHERE g.source_relid = source
        AND g.ungated_at IS NULL;
    IF FOUND THEN
        PERFORM tell('pgtrickle_watermark', jsonb_build_object('source', qualified_name(source), 'ungated', true));
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.open_gate(name, regclass) IS 'Opens the gate of a source, for its caller.';

CREATE OR REPLACE FUNCTION pgtrickle.ungate_source(source regclass) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    INSERT INTO pgt_calls (call, source) VALUES ('ungate_source', source);
END
$$;
COMMENT ON FUNCTION pgtrickle.ungate_source(regclass) IS
    'Opens the gate of a source as of the caller''s commit, and wakes the refresher, unless pgtrickle.notify is off, '
    'as a transaction that is to be prepared needs it. Needs INSERT on the source. Harmless where there is no gate.';

CREATE OR REPLACE FUNCTION pgtrickle.ungate_source(
        source text, search_path text DEFAULT current_setting('search_path')) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM ungate_source(source_named(source, search_path));
END
$$;
COMMENT ON FUNCTION pgtrickle.ungate_source(text, text) IS
    'The same for a source that comes by its name, as text.';

CREATE OR REPLACE FUNCTION pgtrickle_private.held_sources(sources regclass[])
    RETURNS TABLE (source regclass, sentence text)
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN QUERY
    SELECT g.source_relid,
        format('%s is gated by %s since %s', g.source_relid, g.gated_by, date_trunc('second', g.gated_at))
        || COALESCE(': ' || g.reason, '')
    FROM pgt_source_gates AS g WHERE g.ungated_at IS NULL
        AND g.source_relid = ANY (sources) ORDER BY g.source_relid::text;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.held_sources(regclass[]) IS
    'Which of these sources are under a source gate, and the sentence that says so.';
