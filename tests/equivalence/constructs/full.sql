-- left_join: LEFT JOIN
SELECT a.id, b.v FROM a LEFT JOIN b ON a.k = b.k;

-- full_join: FULL JOIN
SELECT a.id, b.v FROM a FULL JOIN b ON a.k = b.k;

-- window: window function
SELECT id, row_number() OVER (ORDER BY id) AS n FROM a;

-- limit: LIMIT
SELECT id FROM a ORDER BY id LIMIT 2;

-- offset: OFFSET
SELECT id FROM a ORDER BY id OFFSET 2;

-- exists: subquery
SELECT id FROM a WHERE EXISTS (SELECT FROM b WHERE b.k = a.k);

-- in_subquery: subquery
SELECT id FROM a WHERE k IN (SELECT k FROM b);

-- scalar_subquery: subquery
SELECT id, (SELECT max(v) FROM b) AS m FROM a;

-- except: EXCEPT
SELECT id FROM a EXCEPT SELECT k FROM b;

-- intersect: INTERSECT
SELECT k FROM a INTERSECT ALL SELECT k FROM b;

-- distinct_on: DISTINCT ON
SELECT DISTINCT ON (k) k, id FROM a ORDER BY k, id;

-- distinct_aggregate: DISTINCT
SELECT count(DISTINCT k) FROM a;

-- ordered_aggregate: string_agg
SELECT string_agg(t, ',' ORDER BY id) FROM a;

-- group_of_nothing: ROLLUP
SELECT count(*) FROM a GROUP BY ();

-- rollup: ROLLUP
SELECT k, count(*) FROM a GROUP BY ROLLUP (k);

-- aggregate_below: below the top
SELECT max(n) FROM (SELECT k, count(*) AS n FROM a GROUP BY k) g;

-- aggregate_view: below the top
SELECT n FROM nested;

-- distinct_below: below the top
SELECT count(*) FROM (SELECT DISTINCT k FROM a) g;

-- recursive: RECURSIVE
WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT n FROM r, a;

-- lateral: LATERAL
SELECT a.id, l.v FROM a, LATERAL (SELECT v FROM b WHERE b.k = a.k) l;

-- set_returning: set-returning
SELECT id, generate_series(1, k) AS n FROM a;

-- values: in FROM
SELECT a.id FROM a JOIN (VALUES (1), (2)) v(k) ON v.k = a.k;

-- whole_row: a
SELECT a::text AS r FROM a;

-- now: CURRENT_DATE
SELECT id FROM a WHERE "select" < current_date;

-- float_sum: depend on the order of rows
SELECT sum(f) FROM keyless;

-- key_in_expression: an expression over a group key of type numeric
SELECT v::text AS shown, count(*) AS n FROM a GROUP BY v;
