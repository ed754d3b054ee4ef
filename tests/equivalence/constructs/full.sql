-- recursive: RECURSIVE
WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT n FROM r, a;

-- set_returning: set-returning
SELECT id, generate_series(1, k) AS n FROM a;

-- whole_row: a
SELECT a::text AS r FROM a;

-- now: CURRENT_DATE
SELECT id FROM a WHERE "select" < current_date;

-- float_sum: depend on the order of rows
SELECT sum(f) FROM keyless;

-- key_in_expression: an expression over a group key of type numeric
SELECT v::text AS shown, count(*) AS n FROM a GROUP BY v;
