-- Watermarks that are probably typos: a warning tells how to be sure, or an error does where the source wants it so.

CREATE OR REPLACE FUNCTION pgtrickle_private.check_owner(caller name, source regclass, action text) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    owner CONSTANT oid := (SELECT relowner FROM pg_class WHERE oid = source AND relkind IN ('r', 'p', 'f')
        AND relpersistence <> 't' AND oid NOT IN (SELECT pgt_relid FROM pgt_stream_tables));
BEGIN
    PERFORM check_there(source);
    IF owner IS NULL THEN
        RAISE EXCEPTION '% is not a table that a loader fills', COALESCE(source::text, 'NULL')
            USING ERRCODE = '42809', CONSTRAINT = 'invalid_argument', HINT = 'Name an ordinary table.';
    ELSIF NOT (pg_has_role(caller, owner, 'USAGE') OR pg_has_role(caller, catalog_owner(), 'USAGE')) THEN
        RAISE EXCEPTION 'permission denied to % %', action, source
            USING ERRCODE = '42501', CONSTRAINT = 'insufficient_privilege',
                  HINT = format('Only %I, which owns it, and %I, which owns the catalog, may.', pg_get_userbyid(owner),
                      catalog_owner());
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_owner(name, regclass, text) IS
    'Refuses what only the owner of a source, or of the catalog, may do.';

CREATE OR REPLACE FUNCTION pgtrickle_private.store_checks(caller name, source regclass, max_ahead interval,
    on_doubt text) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM check_owner(caller, source, 'say what is doubtful of');
    PERFORM check_choice('on_doubt', on_doubt, 'warn', 'error');
    IF NOT max_ahead BETWEEN interval '0' AND interval '1000 years' THEN
        PERFORM refuse_value('max_ahead', max_ahead::text,
            'Use an interval of zero to 1000 years, or NULL for no limit.');
    END IF;
    DELETE FROM pgt_watermark_checks AS c WHERE c.source_relid = source;
    INSERT INTO pgt_watermark_checks (source_relid, source_name, max_ahead, on_doubt)
        VALUES (source, qualified_name(source), max_ahead, on_doubt);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.store_checks(name, regclass, interval, text) IS
    'Stores what makes a watermark of a source doubtful, for its caller.';

CREATE OR REPLACE FUNCTION pgtrickle.set_watermark_checks(
        source regclass, max_ahead interval DEFAULT '1 day', on_doubt text DEFAULT 'warn') RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    INSERT INTO pgt_calls (call, source, arguments) VALUES ('set_watermark_checks', source,
        jsonb_build_object('max_ahead', max_ahead, 'on_doubt', on_doubt));
END
$$;
COMMENT ON FUNCTION pgtrickle.set_watermark_checks(regclass, interval, text) IS
    'Says which new watermarks of a source are doubtful, that is, probably typos: those further in the future than '
    'max_ahead (NULL: none is too far), and those given without a time zone. They are taken with a warning '
    '(on_doubt ''warn''), or refused (''error''). Without a call it is one day and a warning. For the owner of the '
    'source or of the catalog.';

CREATE OR REPLACE FUNCTION pgtrickle.set_watermark_checks(
        source text, max_ahead interval DEFAULT '1 day', on_doubt text DEFAULT 'warn',
        search_path text DEFAULT current_setting('search_path')) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM set_watermark_checks(source_named(source, search_path), max_ahead, on_doubt);
END
$$;
COMMENT ON FUNCTION pgtrickle.set_watermark_checks(text, interval, text, text) IS
    'The same for a source that comes by its name, as text.';

-- A literal has become a timestamptz before any function sees it, so the text of the statement is looked at, if it is
-- short. A literal counts only if it is the very watermark that came.
CREATE OR REPLACE FUNCTION pgtrickle_private.written_without_zone(statement text, watermark timestamptz) RETURNS boolean
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET standard_conforming_strings = on
AS $$
DECLARE
    call CONSTANT text := 'advance_watermark\s*\(\s*(?:source\s*=>\s*)?''[^'']*''(?:::[a-z_.]+)?\s*,'
        '\s*(?:watermark\s*=>\s*)?(?:timestamptz\s+)?'
        '''\s*(\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)?)\s*''';
BEGIN
    RETURN length(statement) <= 10000 AND EXISTS (
        SELECT FROM regexp_matches(statement, call, 'gi') AS m
        WHERE to_char(watermark, 'YYYY-MM-DD HH24:MI:SS.US')
            = translate(m[1], 'Tt', '  ') || substr('0000-00-00 00:00:00.000000', length(m[1]) + 1));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.written_without_zone(text, timestamptz) IS
    'Whether a statement gives this watermark to advance_watermark() as a literal without a time zone.';

CREATE OR REPLACE FUNCTION pgtrickle_private.doubt(on_doubt text, sentence text, remedy text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF on_doubt = 'error' THEN
        RAISE EXCEPTION '%', sentence USING ERRCODE = '22023', CONSTRAINT = 'doubtful_watermark', HINT = remedy;
    END IF;
    RAISE WARNING '%', sentence USING CONSTRAINT = 'doubtful_watermark', HINT = remedy;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.doubt(text, text, text) IS
    'A warning about a watermark that is probably a typo, or error 22023.';

CREATE OR REPLACE FUNCTION pgtrickle_private.last_good_text(source regclass) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT to_json(COALESCE((SELECT w.watermark FROM pgt_watermarks AS w
        WHERE w.source_relid = source AND isfinite(w.watermark)), date_trunc('second', now()))) #>> '{}'
$$;
COMMENT ON FUNCTION pgtrickle_private.last_good_text(regclass) IS
    'What to lower a source to that is about to get a wrong watermark: the one it has, or now; as text without spaces.';

CREATE OR REPLACE FUNCTION pgtrickle_private.check_doubt(source regclass, reached pgtrickle.progress, has_zone boolean)
    RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    found CONSTANT pgt_watermark_checks := (SELECT c FROM pgt_watermark_checks AS c WHERE c.source_relid = source);
    known CONSTANT boolean := found.source_relid IS NOT NULL;
    max_ahead CONSTANT interval := CASE WHEN known THEN found.max_ahead ELSE interval '1 day' END;
    on_doubt CONSTANT text := COALESCE(found.on_doubt, 'warn');
    name CONSTANT text := qualified_name(source);
BEGIN
    IF NOT isfinite((reached).watermark) OR (reached).watermark IS NULL THEN
        RETURN;
    END IF;
    IF (reached).watermark > clock_timestamp() + max_ahead THEN
        PERFORM doubt(on_doubt,
            format('the watermark %s of %s is in the future, by more than %s', progress_text(reached), name,
                written_interval(max_ahead)),
            CASE on_doubt WHEN 'warn' THEN format('If it is wrong, take it back: '
                'SELECT pgtrickle.reset_watermark(%L, %L). ', name, last_good_text(source)) ELSE 'Nothing was changed. '
                END
            || format('If such watermarks are right: SELECT pgtrickle.set_watermark_checks(%L, max_ahead => %L).', name,
                '30 days'));
    END IF;
    IF NOT has_zone OR written_without_zone(current_query(), (reached).watermark) THEN
        PERFORM doubt(on_doubt,
            format('the watermark of %s has no time zone, and means %s by TimeZone %s', name, progress_text(reached),
                current_setting('TimeZone')),
            format('Give it one: %L.', progress_text(reached)));
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_doubt(regclass, pgtrickle.progress, boolean) IS
    'Warns of a new watermark that is probably a typo, or refuses it, as pgtrickle.set_watermark_checks() says.';

-- Without these, PostgreSQL would turn what has no zone into a timestamptz by itself, and nobody would notice. A date
-- needs one of its own: PostgreSQL prefers timestamptz to timestamp for it.
CREATE OR REPLACE FUNCTION pgtrickle.advance_watermark(source regclass, watermark timestamp) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    INSERT INTO pgt_calls (call, source, arguments) VALUES ('advance_watermark', source,
        jsonb_build_object('watermark', watermark::timestamptz, 'has_zone', false));
END
$$;
COMMENT ON FUNCTION pgtrickle.advance_watermark(regclass, timestamp) IS
    'The same for a moment without a time zone, which is taken by the session''s TimeZone, and is doubtful.';

CREATE OR REPLACE FUNCTION pgtrickle.advance_watermark(
        source text, watermark timestamp, search_path text DEFAULT current_setting('search_path')) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM advance_watermark(source_named(source, search_path), watermark);
END
$$;
COMMENT ON FUNCTION pgtrickle.advance_watermark(text, timestamp, text) IS
    'The same for a moment without a time zone, and a source that comes by its name, as text.';

CREATE OR REPLACE FUNCTION pgtrickle.advance_watermark(source regclass, watermark date) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM advance_watermark(source, watermark::timestamp);
END
$$;
COMMENT ON FUNCTION pgtrickle.advance_watermark(regclass, date) IS
    'The same for the beginning of a day, which is taken by the session''s TimeZone, and is doubtful.';

CREATE OR REPLACE FUNCTION pgtrickle.advance_watermark(
        source text, watermark date, search_path text DEFAULT current_setting('search_path')) RETURNS void
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    PERFORM advance_watermark(source_named(source, search_path), watermark::timestamp);
END
$$;
COMMENT ON FUNCTION pgtrickle.advance_watermark(text, date, text) IS
    'The same for the beginning of a day, and a source that comes by its name, as text.';
