-- Cron expressions: which there are, and what they stand for. The refresher works out their moments.

-- An interval never looks like that: its first three words are not all numbers.
CREATE OR REPLACE FUNCTION pgtrickle_private.cron_expression(schedule text) RETURNS text
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET standard_conforming_strings = on
AS $$
    SELECT CASE lower(btrim(schedule) COLLATE "C")
        WHEN '@hourly' THEN '0 * * * *'
        WHEN '@daily' THEN '0 0 * * *'
        WHEN '@weekly' THEN '0 0 * * 0'
        WHEN '@monthly' THEN '0 0 1 * *'
        WHEN '@yearly' THEN '0 0 1 1 *'
        ELSE substring(schedule COLLATE "C" FROM '^\s*((?:[0-9*,/-]+\s+){3,4}[0-9A-Za-z*,/-]+\s+[0-9A-Za-z*,/-]+)\s*$')
            END
$$;
COMMENT ON FUNCTION pgtrickle_private.cron_expression(text) IS
    'The five fields of a schedule that is written like a cron expression, or six that begin with the seconds; NULL '
    'for '
    'any other.';

CREATE OR REPLACE FUNCTION pgtrickle_private.cron_value(word text, first integer, last integer, names text[])
    RETURNS integer
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT v FROM (SELECT COALESCE(array_position(names, word) - 1 + first,
        substring(word FROM '^0*([0-9]{1,2})$')::integer)) AS value (v)
    WHERE v BETWEEN first AND last
$$;
COMMENT ON FUNCTION pgtrickle_private.cron_value(text, integer, integer, text[]) IS
    'The number that a number or a name in a cron expression means; NULL outside of the bounds.';

CREATE OR REPLACE FUNCTION pgtrickle_private.cron_values(field text, first integer, last integer,
    names text[] DEFAULT '{}') RETURNS integer[]
    LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET standard_conforming_strings = on
AS $$
DECLARE
    item text;
    parts text[];
    start integer;
    stop integer;
    found integer[] := '{}';
BEGIN
    FOREACH item IN ARRAY string_to_array(upper(field COLLATE "C"), ',') LOOP
        parts := regexp_match(item, '^(?:(\*)|([A-Z0-9]+)(?:-([A-Z0-9]+))?)(?:/([0-9]+))?$');
        start := CASE WHEN parts[1] IS NULL THEN cron_value(parts[2], first, last, names) ELSE first END;
        stop := CASE WHEN parts[1] IS NOT NULL THEN last WHEN parts[3] IS NULL THEN start
            ELSE cron_value(parts[3], first, last, names) END;
        IF (start <= stop) IS NOT TRUE OR parts[4]::numeric = 0 THEN
            RETURN NULL;
        END IF;
        -- A single value with a step begins there and goes on to the end, as 5/10 in the minutes.
        stop := CASE WHEN parts[4] IS NOT NULL AND start = stop THEN last ELSE stop END;
        found := found || ARRAY(SELECT generate_series(start, stop,
            least(COALESCE(parts[4]::numeric, 1), 60)::integer));
    END LOOP;
    RETURN ARRAY(SELECT DISTINCT v FROM unnest(found) AS v ORDER BY v);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.cron_values(text, integer, integer, text[]) IS
    'The values that one field of a cron expression stands for; NULL if it is not valid.';

CREATE OR REPLACE FUNCTION pgtrickle_private.cron_fields(
        schedule text, OUT seconds integer[], OUT minutes integer[], OUT hours integer[], OUT days integer[],
            OUT months integer[],
            OUT weekdays integer[], OUT both_days boolean)
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET standard_conforming_strings = on
AS $$
    SELECT cron_values(f[1], 0, 59), cron_values(f[2], 0, 59), cron_values(f[3], 0, 23), cron_values(f[4], 1, 31),
           cron_values(f[5], 1, 12, '{JAN,FEB,MAR,APR,MAY,JUN,JUL,AUG,SEP,OCT,NOV,DEC}'),
           cron_values(f[6], 0, 7, '{SUN,MON,TUE,WED,THU,FRI,SAT}'),
           -- As in cron: a day must match both fields if one begins with a star, else either.
           f[4] LIKE '*%' OR f[6] LIKE '*%'
    FROM regexp_split_to_array(cron_expression(schedule), '\s+') AS w
    CROSS JOIN LATERAL (SELECT CASE cardinality(w) WHEN 5 THEN text '0' || w ELSE w END AS f) AS six
$$;
COMMENT ON FUNCTION pgtrickle_private.cron_fields(text) IS
    'What the fields of a cron expression stand for, NULL for one that is not valid; both_days: days of the month and '
    'of the week must both match.';

CREATE OR REPLACE FUNCTION pgtrickle_private.cron_dates(schedule text) RETURNS numeric
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT CASE WHEN both_days THEN by_month * by_week ELSE by_month + by_week - by_month * by_week END * length
    FROM (
        SELECT c.both_days, sum(m.length) AS length,
            (SELECT count(DISTINCT w % 7) FROM unnest(c.weekdays) AS w) / 7.0 AS by_week,
               sum((SELECT count(*) FROM unnest(c.days) AS d WHERE d <= m.length))::numeric / sum(m.length) AS by_month
        FROM cron_fields(schedule) AS c
        JOIN unnest('{31,29,31,30,31,30,31,31,30,31,30,31}'::integer[]) WITH ORDINALITY AS m (length, month)
            ON m.month = ANY (c.months)
        GROUP BY c.both_days, c.weekdays) AS matching
$$;
COMMENT ON FUNCTION pgtrickle_private.cron_dates(text) IS
    'On how many days of a leap year a cron expression fires, on average over the weekdays.';

CREATE OR REPLACE FUNCTION pgtrickle_private.check_cron(schedule text, schedule_timezone text) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    fields CONSTANT record := cron_fields(schedule);
BEGIN
    IF num_nulls(fields.seconds, fields.minutes, fields.hours, fields.days, fields.months, fields.weekdays) > 0 THEN
        PERFORM refuse_value('schedule', schedule,
            'The fields of a cron expression are second 0-59 where there are six, minute 0-59, hour 0-23, day 1-31, '
            'month 1-12 or jan-dec, and weekday '
            '0-7 or sun-sat; '
            'each is *, a value, a range 1-5 or a list 1,3, with a step as in */10.');
    ELSIF cron_dates(schedule) = 0 THEN
        RAISE EXCEPTION '% never fires: none of its months has that day', quote_literal(schedule)
            USING ERRCODE = '22023', CONSTRAINT = 'invalid_argument',
                HINT = 'Name a day that exists, such as 28 for a day near the end of each month.';
    ELSIF NOT EXISTS (SELECT FROM pg_timezone_names AS z WHERE z.name = schedule_timezone)
        OR schedule_timezone ~ '^(posix/|right/|localtime$|posixrules$|Factory$)' THEN
        -- The refresher works out the moments, and it knows zones by these names only.
        PERFORM refuse_value('schedule_timezone of a cron expression', schedule_timezone,
            'Use a name that pg_timezone_names lists, such as ''Europe/Berlin''; fixed offsets are named like '
            '''Etc/GMT-2'' (east of Greenwich).');
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.check_cron(text, text) IS
    'Error 22023 unless a cron expression is valid, fires at some time, and has a named time zone.';
