-- recursive: RECURSIVE
WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT n FROM r, a;

-- limited_set: LIMIT over a set-returning function
SELECT id, generate_series(1, k) AS n FROM a ORDER BY id LIMIT 3;

-- array_without_order: ARRAY over a subquery without ORDER BY
SELECT id, ARRAY(SELECT b.id FROM b WHERE b.k = a.k) AS ids FROM a;

-- unsettled: depends on the order of rows
SELECT id, ARRAY(SELECT DISTINCT u.x FROM unnest(ARRAY[k, 1, 2]) AS u (x)) AS xs FROM a;

-- now: CURRENT_DATE
SELECT id FROM a WHERE "select" < current_date;

-- float_sum: depend on the order of rows
SELECT sum(f) FROM keyless;

-- key_in_expression: one of several equal values of type numeric
SELECT v::text AS shown, count(*) AS n FROM a GROUP BY v;

-- text_of_a_key_below: one of several equal values of type numeric
SELECT x.v, x.n FROM (SELECT v, count(*) AS n FROM a GROUP BY v) x WHERE x.v::text = '1';

-- average_of_distinct_values: avg() over one of several equal values
SELECT avg(x.v) AS mean FROM (SELECT DISTINCT v FROM a) x;

-- text_of_an_extremum: one of several equal values of type double precision
SELECT k, max(f)::text AS most FROM keyless GROUP BY k;

-- limit_without_order: LIMIT below the top of the query, without ORDER BY
SELECT count(*) AS n FROM (SELECT id FROM a LIMIT 3) x;

-- limit_by_what_distinct_hides: ORDER BY what it does not show
SELECT x.t FROM (SELECT DISTINCT ON (k) t FROM a ORDER BY k, id LIMIT 3) x;

-- limit_by_a_hidden_row: ORDER BY ... LIMIT by what the query does not show
SELECT t FROM a ORDER BY (k, id) LIMIT 3;

-- limit_by_hidden_rows_of_a_source: ORDER BY ... LIMIT by what the query does not show
SELECT t FROM a ORDER BY a LIMIT 3;

-- limit_beside_a_name_of_ours: ORDER BY ... LIMIT by what the query does not show
SELECT t AS pgt_order_0 FROM a ORDER BY id LIMIT 3;

-- constant_key_of_sets: a constant among the keys
SELECT 1 AS x, k, sum(id) AS s FROM a GROUP BY GROUPING SETS (1, 2);

-- window_over_sets_of_rows: a window over a set-returning function
SELECT id, count(*) OVER (PARTITION BY generate_series(1, 2)) AS n FROM a;

-- sorted_first_rows_of_functions: LIMIT over a set-returning function
SELECT id FROM a ORDER BY generate_series(1, 3), id LIMIT 4;

-- first_of_each_over_functions: DISTINCT ON over a set-returning function
SELECT DISTINCT ON (k) k, id FROM a ORDER BY k, id, generate_series(1, 3);

-- own_aggregate_in_any_order: joined() without ORDER BY
SELECT k, length(joined(t)) AS s FROM a GROUP BY k;

-- own_aggregate_over_nothing: anything over no rows
SELECT id, (SELECT joined(a.t ORDER BY a.id) FROM a WHERE a.k = b.k) AS s FROM b;

-- an_aggregate_has_a_row_whatever_exists: an aggregate without GROUP BY that is tied to the rows around it
SELECT x.id FROM a AS x WHERE EXISTS (SELECT count(*) FROM b WHERE EXISTS (SELECT FROM keyless AS c WHERE c.k = x.s));

-- all_tied_to_rows_on_two_levels: a subquery tied by more than equalities to rows around it, some two levels up
SELECT id FROM b WHERE NOT EXISTS (SELECT FROM a WHERE a.k = b.k AND a.id > ALL (SELECT c.k FROM keyless AS c WHERE c.k = b.k));

-- first_rows_of_a_window_function: LIMIT without ORDER BY over rows that something below sorts
SELECT count(*) OVER (ORDER BY k, id) AS n, k, id FROM a LIMIT 2;

-- frame_bounded_by_a_subquery: a window frame that a subquery bounds
SELECT id, sum(id) OVER (ORDER BY id ROWS (SELECT count(*) FROM b) PRECEDING) AS s FROM a;

-- keys_without_an_order: values of type xid, which have no order
SELECT x, count(*) AS n FROM (SELECT id::text::xid AS x FROM a) q GROUP BY GROUPING SETS ((x), (x));

-- key_of_a_domain_over_an_enumeration: a key of domain public.chosen_again
SELECT m, count(*) AS n FROM chosen_ones GROUP BY m;

-- partition_by_a_domain_over_an_enumeration: a key of domain public.chosen_again
SELECT id, row_number() OVER (PARTITION BY m ORDER BY id) AS n FROM chosen_ones;

-- joins_that_begin_with_a_function_from_the_right: RIGHT or FULL JOIN of a function of the row around it
SELECT a.id, g.n, b.v FROM a, generate_series(1, a.k) AS g (n) FULL JOIN (VALUES (2, 'x'), (4, 'y')) b (n, v) ON g.n = b.n;
