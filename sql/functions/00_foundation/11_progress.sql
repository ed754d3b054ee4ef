-- How far sources and stream tables are complete, by event time or by batch number. What compares watermarks does so
-- here, once for both kinds: a kind that is missing on one side is NULL there, and decides nothing.

CREATE OR REPLACE FUNCTION pgtrickle_private.is_before(a pgtrickle.progress, b pgtrickle.progress) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN COALESCE((a).watermark < (b).watermark OR (a).batch < (b).batch, false);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.is_before(pgtrickle.progress, pgtrickle.progress) IS
    'Whether a is less far than b, in a kind that both have.';

CREATE OR REPLACE FUNCTION pgtrickle_private.reaches(a pgtrickle.progress, b pgtrickle.progress) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN COALESCE((a).watermark >= (b).watermark OR (a).batch >= (b).batch, false);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.reaches(pgtrickle.progress, pgtrickle.progress) IS
    'Whether a is as far as b or farther, in a kind that both have.';

-- After the greatest of all numbers there is no batch, so it says what infinity says of event times.
CREATE OR REPLACE FUNCTION pgtrickle_private.is_final(a pgtrickle.progress) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN COALESCE((a).watermark = 'infinity' OR (a).batch = 9223372036854775807, false);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.is_final(pgtrickle.progress) IS
    'Whether nothing can come after it: the source is exhausted.';

CREATE OR REPLACE FUNCTION pgtrickle_private.beyond(a pgtrickle.progress, tolerance pgtrickle.distance)
    RETURNS pgtrickle.progress
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp SET TimeZone = 'UTC'
AS $$
BEGIN
    RETURN ROW(CASE WHEN (a).watermark > timestamptz '294276-12-31 23:59:59.999999+00'
            - least((tolerance).span, interval '20000 years')
        THEN 'infinity' ELSE (a).watermark + least((tolerance).span, interval '20000 years') END,
               CASE WHEN (a).batch IS NOT NULL THEN least((a).batch + (tolerance).batches, 9223372036854775807)
                   END)::progress;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.beyond(pgtrickle.progress, pgtrickle.distance) IS
    'The farthest that is within the tolerance of a; at most the greatest number there is.';

CREATE OR REPLACE FUNCTION pgtrickle_private.distance_between(a pgtrickle.progress, b pgtrickle.progress)
    RETURNS pgtrickle.distance
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN CASE WHEN NOT (is_final(a) OR is_final(b))
                THEN ROW((b).watermark - (a).watermark, (b).batch::numeric - (a).batch)::distance END;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.distance_between(pgtrickle.progress, pgtrickle.progress) IS
    'How far b is ahead of a; NULL where one of them is final: that is no distance from anything.';

CREATE OR REPLACE FUNCTION pgtrickle_private.lesser(a pgtrickle.progress, b pgtrickle.progress)
    RETURNS pgtrickle.progress
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN ROW(least((a).watermark, (b).watermark), least((a).batch, (b).batch))::progress;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.lesser(pgtrickle.progress, pgtrickle.progress) IS
    'The less far of the two in each kind; a kind that only one of them has is taken from that one.';

CREATE OR REPLACE FUNCTION pgtrickle_private.progress_text(a pgtrickle.progress) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN NULLIF(concat_ws(' and ', (a).watermark, 'batch ' || (a).batch), '');
END
$$;
COMMENT ON FUNCTION pgtrickle_private.progress_text(pgtrickle.progress) IS
    'How far something is, as part of a sentence; NULL if it has no kind.';

-- As pytrickle.durations writes them, but whole: sentences compare one with another.
CREATE OR REPLACE FUNCTION pgtrickle_private.written_interval(length interval) RETURNS text
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT CASE
        WHEN whole.length = interval '0' THEN '0 s'
        WHEN whole.length < interval '0' THEN '-' || written_interval(-whole.length)
        WHEN whole.length < interval '1 second' THEN trim_scale(1000 * extract(second FROM whole.length)) || ' ms'
        ELSE (
            SELECT string_agg(format('%s %s', trim_scale(part.number), part.unit), ' ' ORDER BY part.place)
            FROM (VALUES (1, extract(year FROM whole.length), 'y'), (2, extract(month FROM whole.length), 'mo'),
                (3, extract(day FROM whole.length), 'd'), (4, extract(hour FROM whole.length), 'h'),
                (5, extract(minute FROM whole.length), 'min'), (6, extract(second FROM whole.length), 's'))
                AS part (place, number, unit)
            WHERE part.number <> 0) END
    FROM justify_hours(length) AS whole (length)
$$;
COMMENT ON FUNCTION pgtrickle_private.written_interval(interval) IS 'An interval in a sentence, such as 1 h 30 min.';

CREATE OR REPLACE FUNCTION pgtrickle_private.distance_text(a pgtrickle.distance) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN COALESCE(written_interval((a).span),
        (a).batches || CASE (a).batches WHEN 1 THEN ' batch' ELSE ' batches' END);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.distance_text(pgtrickle.distance) IS
    'A distance, as part of a sentence.';
