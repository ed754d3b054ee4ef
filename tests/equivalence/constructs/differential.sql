-- using
SELECT k, a.t FROM a JOIN keyless USING (k);

-- using_of_two_types
SELECT k, count(*) FROM a JOIN b USING (k) GROUP BY k;

-- using_chain
SELECT a.k, b.v FROM a JOIN b USING (k) JOIN keyless USING (k);

-- natural
SELECT a.t, keyless.c FROM a NATURAL JOIN keyless;

-- comma
SELECT a.t, b.v FROM a, b, keyless WHERE a.k = b.k AND keyless.k = a.k;

-- condition_reversed
SELECT a.t FROM a JOIN b ON b.k = a.k;

-- theta
SELECT a.id, b.id AS other FROM a JOIN b ON a.v < b.v;

-- null_safe
SELECT a.id FROM a JOIN b ON a.k IS NOT DISTINCT FROM b.k;

-- self_join
SELECT x.id, y.id AS other FROM a x JOIN a y ON x.k = y.k AND x.id < y.id;

-- right_nested
SELECT a.id FROM a JOIN (b JOIN keyless ON b.k = keyless.k) ON a.k = b.k;

-- five_joins
SELECT count(*) FROM a JOIN b ON a.k = b.k JOIN keyless c ON c.k = a.k JOIN a d ON d.k = b.k JOIN b e ON e.k = d.k;

-- view
SELECT id, v FROM simple WHERE k > 0;

-- view_twice
SELECT x.id, y.v FROM simple x JOIN simple y ON x.k = y.k;

-- cte_twice
WITH c AS (SELECT k, v FROM a) SELECT x.v, y.v AS w FROM c x JOIN c y USING (k);

-- cte_unused
WITH c AS (SELECT k FROM b) SELECT t FROM a;

-- cte_unused_scalar
WITH c AS (SELECT k FROM b) SELECT count(*) FROM a;

-- cte_of_cte
WITH c AS (SELECT k, v FROM a), d AS (SELECT k FROM c WHERE v > 0) SELECT k, count(*) FROM d GROUP BY k;

-- no_from_column
SELECT 1 AS one FROM keyless;

-- constant_key
SELECT 'x'::text AS x, count(*) FROM a GROUP BY 'x'::text;

-- expression_key
SELECT k % 2 AS parity, sum(v) FROM a GROUP BY k % 2;

-- key_not_shown
SELECT sum(b) FROM a GROUP BY k;

-- dependent_column
SELECT a.id, a.t, upper(a.t) AS up, count(*) FROM a JOIN b ON a.k = b.k GROUP BY a.id;

-- aggregate_expression
SELECT k, 100 * sum(w) / NULLIF(sum(b), 0) AS share FROM a GROUP BY k;

-- sums
SELECT sum(id) c1, sum(s) c2, sum(b) c3, sum(v) c4, sum(w) c5, avg(id) c6, avg(s) c7, avg(b) c8, avg(v) c9,
    avg(w) c10 FROM a;

-- sums_by_key
SELECT k, sum(v) c1, avg(v) c2, sum(w * 2) c3, avg(w) c4, sum(v + w) c5, sum(-v) c6 FROM a GROUP BY k;

-- sum_over_join
SELECT a.k, sum(a.v * b.v), avg(a.w + b.v) FROM a JOIN b ON a.k = b.k GROUP BY a.k;

-- sum_of_intervals
SELECT k, sum(i), avg(i), count(i) FROM b GROUP BY k;

-- expression_over_an_average_of_intervals
SELECT id, extract(epoch FROM avg(i)) AS seconds, avg(i)::text AS shown FROM b GROUP BY id;

-- extrema
SELECT k, min("select") c1, max("select") c2, min(t) c3, max(v) c4, min(b) c5 FROM a GROUP BY k;

-- extrema_alone
SELECT min(t), max(id) FROM a;

-- count_of_expression
SELECT count(v) c1, count(*) c2, count(v + w) c3, count(1) c4, count(NULLIF(id, 3)) c5 FROM a;

-- filters
SELECT k, count(*) FILTER (WHERE v > 0), sum(v) FILTER (WHERE t IS NOT NULL), max(v) FILTER (WHERE flag) FROM
    a JOIN keyless USING (k) GROUP BY k;

-- case_in_sum
SELECT sum(CASE WHEN v > 1 THEN w ELSE 0 END) FROM a;

-- having
SELECT k FROM a GROUP BY k HAVING count(*) > 1 AND max(v) > 0;

-- having_without_group
SELECT count(*) FROM a HAVING count(*) > 3;

-- having_alone
SELECT 1 AS one FROM a HAVING sum(id) > 10;

-- group_without_aggregate
SELECT k FROM a GROUP BY k;

-- distinct
SELECT DISTINCT k, v FROM a;

-- distinct_join
SELECT DISTINCT b.i FROM a JOIN b ON a.k = b.k;

-- union
SELECT k FROM a UNION SELECT k FROM b;

-- union_all
SELECT id, v FROM a UNION ALL SELECT k, w FROM a UNION ALL SELECT 1, 2.50;

-- union_all_then_union
SELECT k FROM a UNION ALL SELECT k FROM keyless UNION SELECT 7;

-- union_in_from
SELECT u.k, count(*), sum(u.v) FROM (SELECT k, v FROM a UNION ALL SELECT k, v FROM b) u GROUP BY u.k;

-- union_joined
SELECT u.k, b.v FROM (SELECT k FROM a UNION ALL SELECT k FROM keyless) u JOIN b ON b.k = u.k;

-- union_of_literals
SELECT k, 'x' AS src FROM a UNION ALL SELECT k, NULL FROM keyless;

-- order_by
SELECT id, t FROM a ORDER BY t DESC NULLS LAST, id;

-- cross
SELECT a.id, keyless.c FROM a CROSS JOIN keyless;

-- char_key
SELECT c, count(*) FROM keyless GROUP BY c;

-- float_key
SELECT f, count(*), min(f), max(f) FROM keyless GROUP BY f;

-- bool_and_uuid_keys
SELECT flag, u, count(*) FROM keyless GROUP BY flag, u;

-- is_not_true
SELECT k FROM keyless WHERE flag IS NOT TRUE OR flag IS FALSE;

-- is_unknown
SELECT a.id, flag IS UNKNOWN AS u, (a.v > b.v) IS NOT UNKNOWN AS c
FROM a LEFT JOIN b ON b.k = a.k AND (b.v > 1) IS NOT UNKNOWN
    LEFT JOIN keyless ON keyless.k = a.k AND flag IS NOT UNKNOWN
WHERE (b.v > a.v) IS UNKNOWN OR (a.k IN (SELECT k FROM b)) IS UNKNOWN;

-- case_and_in
SELECT CASE k WHEN 1 THEN 'one' ELSE 'other' END AS word, t LIKE 'a%' AS a, k IN (1, 2) AS small FROM a;

-- extract
SELECT EXTRACT(year FROM "select") AS y, date_trunc('month', "select") AS m FROM a;

-- precedence
SELECT id, w * (1 - w) - (w - (w - 1)) AS x, -(-k) AS y, NOT (k = 1 OR v > 1) AS z FROM a;

-- partitioned
SELECT region, count(*), sum(k) FROM parent GROUP BY region;

-- partitioned_join
SELECT p.region, a.t FROM parent p JOIN a ON a.k = p.k;

-- view_in_union
SELECT k, v FROM simple UNION ALL SELECT k, v FROM b;

-- left_join
SELECT a.id, b.v FROM a LEFT JOIN b ON a.k = b.k;

-- five_left_joins
SELECT a.id, c1.v, c2.id AS c2, c3.c, c4.t, c5.region FROM a LEFT JOIN b c1 ON c1.k = a.k AND c1.id < 9
    LEFT JOIN b c2 ON c2.id = a.id
    LEFT JOIN keyless c3 ON c3.k = a.s LEFT JOIN a c4 ON c4.id = c2.k LEFT JOIN parent c5 ON c5.k = c4.k
    AND c5.region = a.t;

-- three_scalar_subqueries
SELECT id, (SELECT sum(v) FROM b WHERE b.k = a.k) AS c1, (SELECT count(*) FROM keyless x WHERE x.k = a.k) AS c2,
    (SELECT min(t) FROM a y WHERE y.k = a.id) AS c3 FROM a;

-- full_join
SELECT a.id, b.v FROM a FULL JOIN b ON a.k = b.k;

-- window
SELECT id, row_number() OVER (ORDER BY id) AS n FROM a;

-- frame_without_between
SELECT id, sum(b) OVER (PARTITION BY k ORDER BY id ROWS UNBOUNDED PRECEDING) AS c1,
    count(*) OVER (ORDER BY id RANGE 3 PRECEDING) AS c2,
    max(id) OVER (ORDER BY id GROUPS 2 PRECEDING EXCLUDE CURRENT ROW) AS c3,
    min(id) OVER (PARTITION BY k ORDER BY id ROWS CURRENT ROW) AS c4 FROM a;

-- windows_that_extend_others
SELECT id, count(*) OVER (w ORDER BY id ROWS 1 PRECEDING) AS c1, count(*) OVER w2 AS c2, count(*) OVER w3 AS c3,
    sum(id) OVER (w2 ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING) AS c4
FROM a WINDOW w AS (PARTITION BY k), w2 AS (w ORDER BY id DESC), w3 AS (w2 ROWS 1 PRECEDING);

-- limit
SELECT id FROM a ORDER BY id LIMIT 2;

-- offset
SELECT id FROM a ORDER BY id OFFSET 2;

-- limit_by_what_is_not_shown
SELECT a.t, b.v FROM a JOIN b USING (k) ORDER BY a."select" DESC NULLS LAST, a.id + b.id, a.id, b.v, b.i OFFSET 1 LIMIT 4;

-- limit_of_groups_by_what_is_not_shown
WITH x AS (SELECT k, v FROM a) SELECT k FROM x GROUP BY k HAVING count(*) > 1 ORDER BY sum(v) DESC, min(v), k LIMIT 2;

-- limit_of_groups_by_hidden_keys
SELECT count(*) AS n, 1 AS one FROM a GROUP BY k, s ORDER BY k, s LIMIT 3;

-- limit_by_a_hidden_text
SELECT id FROM a ORDER BY lower(t) COLLATE "C" DESC, t COLLATE "C", id LIMIT 3;

-- limit_by_a_hidden_window_and_subquery
SELECT t FROM a ORDER BY row_number() OVER (PARTITION BY k ORDER BY id), (SELECT max(b.id) FROM b WHERE b.k = a.k), id
LIMIT 3;

-- ties_by_what_is_not_shown
SELECT id, t FROM a ORDER BY k FETCH FIRST 2 ROWS WITH TIES;

-- exists
SELECT id FROM a WHERE EXISTS (SELECT FROM b WHERE b.k = a.k);

-- in_subquery
SELECT id FROM a WHERE k IN (SELECT k FROM b);

-- scalar_subquery
SELECT id, (SELECT max(v) FROM b) AS m FROM a;

-- except
SELECT id FROM a EXCEPT SELECT k FROM b;

-- intersect
SELECT k FROM a INTERSECT ALL SELECT k FROM b;

-- distinct_on
SELECT DISTINCT ON (k) k, id FROM a ORDER BY k, id;

-- distinct_aggregate
SELECT count(DISTINCT k) FROM a;

-- ordered_aggregate
SELECT string_agg(t, ',' ORDER BY id) FROM a;

-- distinct_ordered_aggregates
SELECT k, string_agg(DISTINCT t, ',') AS c1, string_agg(DISTINCT t, '|' ORDER BY t DESC) AS c2,
    string_agg(DISTINCT t, t) AS c3, array_agg(DISTINCT id % 3) AS c4, jsonb_agg(DISTINCT t) AS c5,
    jsonb_object_agg(DISTINCT id, t) AS c6, string_agg(DISTINCT t, ',') FILTER (WHERE v > 0) AS c7 FROM a GROUP BY k;

-- group_of_nothing
SELECT count(*) FROM a GROUP BY ();

-- rollup
SELECT k, count(*) FROM a GROUP BY ROLLUP (k);

-- aggregate_below
SELECT max(n) FROM (SELECT k, count(*) AS n FROM a GROUP BY k) g;

-- groups_with_partners
SELECT g.k, g.n, b.v FROM (SELECT k, count(*) AS n FROM a GROUP BY k) g JOIN b ON b.k = g.k;

-- groups_with_groups
SELECT g.k, g.n, h.s
FROM (SELECT k, count(*) AS n FROM a GROUP BY k) g LEFT JOIN (SELECT k, sum(v) AS s FROM b GROUP BY k) h ON h.k = g.k;

-- aggregate_view
SELECT n FROM nested;

-- distinct_below
SELECT count(*) FROM (SELECT DISTINCT k FROM a) g;

-- lateral
SELECT a.id, l.v FROM a, LATERAL (SELECT v FROM b WHERE b.k = a.k) l;

-- unrolled
SELECT id, generate_series(1, k) AS n, unnest(ARRAY[t, 'z']) AS u, v FROM a;

-- unrolled_expressions
SELECT k, upper(unnest(string_to_array(t, NULL))) AS u, generate_series(k, 2)::text AS g FROM a WHERE v > 0;

-- unrolled_distinct
SELECT DISTINCT generate_series(1, k) AS n, flag FROM keyless;

-- unrolled_keys
SELECT generate_series(1, k) AS n, generate_series(1, 2) AS m, count(*), sum(v)
FROM a GROUP BY 1, 2;

-- unrolled_groups
SELECT k, unnest(array_agg(id ORDER BY id)) AS id, count(*) AS n FROM a GROUP BY k HAVING count(*) > 1;

-- unrolled_below
SELECT s.n, b.v FROM (SELECT generate_series(1, k) AS n, t FROM a) s JOIN b ON b.k = s.n WHERE s.t IS NOT NULL;

-- unrolled_windows
SELECT id, generate_series(1, row_number() OVER (PARTITION BY k ORDER BY id)) AS n FROM a;

-- array
SELECT id, ARRAY(SELECT b.v FROM b WHERE b.k = a.k ORDER BY b.v DESC NULLS LAST, b.id) AS vs FROM a;

-- array_of_first
SELECT id, ARRAY(SELECT b.id FROM b WHERE b.k = a.k ORDER BY b.v, b.id LIMIT 2) AS ids FROM a;

-- array_of_distinct
SELECT k, cardinality(ARRAY(SELECT DISTINCT b.id FROM b WHERE b.k = a.k ORDER BY b.id)) AS n FROM a
WHERE 1 = ANY (ARRAY(SELECT keyless.k FROM keyless WHERE keyless.k >= a.k ORDER BY 1));

-- array_of_all
SELECT ARRAY(SELECT id FROM a UNION SELECT id FROM b ORDER BY 1) AS ids,
    ARRAY(SELECT k FROM a GROUP BY k ORDER BY k) AS ks;

-- left_join_function
SELECT a.id, g.n, u.x FROM a LEFT JOIN LATERAL generate_series(1, a.k) AS g (n) ON g.n <> 2
    LEFT JOIN LATERAL unnest(ARRAY[a.t, NULL, 'x']) WITH ORDINALITY AS u (x, o) ON u.o = g.n;

-- joins_that_begin_with_a_function
SELECT a.id, g.n, b.v FROM a, generate_series(1, a.k) AS g (n) LEFT JOIN b ON b.k = g.n;

-- joins_that_begin_with_a_function_grouped
SELECT g.n, count(*) AS c, sum(b.v) AS s FROM a, generate_series(1, a.k) AS g (n)
    JOIN b ON b.k = g.n AND b.v > 0 LEFT JOIN keyless AS q ON q.k = g.n AND q.flag GROUP BY g.n;

-- joins_that_begin_with_a_function_by_name
SELECT a.id, g.k, b.v FROM a, generate_series(1, a.k + 1) AS g (k) LEFT JOIN b USING (k) WHERE g.k IS NOT NULL;

-- joins_that_begin_with_a_subquery
SELECT a.id, l.m, b.id AS other, u.x FROM a, LATERAL (SELECT count(*) AS m, a.k + 1 AS k FROM b WHERE b.k = a.k) l
    LEFT JOIN b ON b.k = l.k LEFT JOIN LATERAL unnest(ARRAY[l.m, b.k]) AS u (x) ON u.x > 1;

-- left_join_rows
SELECT a.id, l.x, l.y FROM a
    LEFT JOIN LATERAL (SELECT g.n AS x, coalesce(g.n, -1) AS y FROM generate_series(1, a.k) AS g (n)
    WHERE g.n > 1) l ON l.x < a.id LEFT JOIN (VALUES (1, 'one'), (2, 'two')) AS v (k, t) ON v.k = a.k;

-- left_join_lateral_expression
SELECT a.id, l.s FROM a LEFT JOIN LATERAL (SELECT b.v + a.id AS s FROM b WHERE b.k = a.k) l ON true;

-- exists_beside_function
SELECT id FROM a WHERE EXISTS (SELECT FROM b, generate_series(1, a.k) AS g (n) WHERE b.k = g.n);

-- subqueries_without_tables
SELECT id, (SELECT max(g.n * a.id) FROM generate_series(1, a.k) AS g (n)) AS m,
    ARRAY(SELECT g.n FROM generate_series(1, a.k) AS g (n)) AS ns,
    (SELECT string_agg(u.x, ',' ORDER BY u.x) FROM unnest(ARRAY[a.t, 'b']) AS u (x)) AS s
FROM a WHERE id IN (SELECT generate_series(1, 20))
    OR EXISTS (SELECT FROM unnest(ARRAY[a.k, a.s]) AS u (x) WHERE u.x = 2);

-- lateral_without_tables
SELECT a.id, l.n, l.m FROM a, LATERAL (SELECT count(*) AS n, max(g.x) AS m FROM generate_series(1, a.k) AS g (x)) l;

-- values
SELECT a.id FROM a JOIN (VALUES (1), (2)) v(k) ON v.k = a.k;

-- subquery_above_groups
SELECT a.k, (SELECT count(*) FROM b WHERE b.k = a.k) AS n FROM a GROUP BY a.k;

-- array_above_groups
SELECT a.k, ARRAY(SELECT b.id FROM b WHERE b.k = a.k ORDER BY b.id) AS ids FROM a GROUP BY a.k;

-- having_above_subquery
SELECT k, sum(id) AS s FROM a GROUP BY k HAVING sum(id) > (SELECT min(b.id) FROM b WHERE b.k = a.k);

-- having_partners
SELECT k, count(*) AS n FROM a GROUP BY k HAVING EXISTS (SELECT 1 FROM keyless AS c WHERE c.k = a.k);

-- column_aliases
SELECT x.p, y.q, y.r FROM a AS x (p, q) JOIN b AS y (p, q, r) USING (p);

-- column_aliases_of_a_view
SELECT x.n, z.m FROM simple AS x (n) JOIN simple AS z (m) ON x.n = z.m;

-- whole_row
SELECT a::text AS r FROM a;

-- whole_row_of_keyless
SELECT DISTINCT x::text AS r FROM keyless x;

-- whole_row_of_partitions
SELECT p FROM parent p WHERE p IS NOT NULL;

-- whole_row_counted
SELECT a.k, count(b) AS n FROM a LEFT JOIN b ON a.k = b.k GROUP BY a.k;

-- whole_row_is_null
SELECT a.id FROM a LEFT JOIN b ON a.k = b.k AND b.v > 1 WHERE b IS NULL;

-- whole_row_of_a_subquery
SELECT a.id, row_to_json(x)::text AS j FROM a LEFT JOIN (SELECT k, v AS w FROM b) x ON a.k = x.k;

-- whole_row_of_a_lateral
SELECT a.id, row_to_json(x)::text AS j FROM a
    LEFT JOIN LATERAL (SELECT a.k, a.v AS "the value" WHERE a.k > 1) x ON true;

-- whole_row_of_a_view
SELECT row_to_json(s)::text AS j FROM simple s;

-- whole_row_of_cte
WITH c AS (SELECT k, v FROM a) SELECT row_to_json(c)::text AS j FROM c;

-- whole_rows_compared
SELECT x.id FROM a x JOIN a y ON x = y;

-- whole_row_in_a_subquery
SELECT id, (SELECT count(z) FROM b z WHERE z.k = a.k) AS n, (SELECT row_to_json(a) ->> 'k') AS k,
    (SELECT row_to_json(u) ->> 'z' FROM (SELECT a.k AS z) u) AS z FROM a;

-- whole_row_sorted
SELECT k, (array_agg(x ORDER BY id))[1]::text AS f, count(DISTINCT x) AS n FROM a x GROUP BY k;

-- whole_row_by_field
SELECT (x).id, (x).k FROM a x;

-- never_true
SELECT id, row_number() OVER (ORDER BY id) AS n FROM a WHERE false UNION ALL SELECT id, 0 FROM b;

-- never_true_counted
SELECT count(*) AS n, max(id) AS m FROM a WHERE NULL;

-- never_true_join
SELECT a.id FROM a JOIN b ON false JOIN keyless ON true UNION ALL SELECT count(*) FROM a JOIN b ON false;

-- never_true_beside
SELECT a.id, x.v, y.k FROM a LEFT JOIN (SELECT v, k FROM b WHERE NULL) x ON x.k = a.k LEFT JOIN b y ON false;

-- never_true_group
SELECT k, count(*) AS n FROM a GROUP BY k HAVING false UNION ALL SELECT x.n, x.n FROM (SELECT count(*) AS n FROM b) x;

-- set_operation_with_constants
SELECT k FROM a UNION (SELECT 7 INTERSECT SELECT k FROM b) EXCEPT SELECT 2;

-- keys_with_subqueries
SELECT k, id IN (SELECT b.id FROM b WHERE b.k = a.k) AS i, v > ALL (SELECT b.v FROM b WHERE b.k = a.k) AS l,
    count(*) AS n FROM a GROUP BY 1, 2, 3;

-- key_that_is_a_subquery
SELECT EXISTS (SELECT FROM b WHERE b.k = a.k) AS e, sum(v) AS s FROM a GROUP BY 1
HAVING EXISTS (SELECT FROM b WHERE b.k = a.k) OR count(*) > 2;

-- key_within_an_expression
SELECT CASE WHEN id IN (SELECT id FROM b) THEN 'both' ELSE 'one' END AS w, (SELECT max(b.v) FROM b WHERE b.k = a.k) AS m,
    count(*) AS n FROM a GROUP BY id IN (SELECT id FROM b), (SELECT max(b.v) FROM b WHERE b.k = a.k);

-- never_true_subquery
SELECT id, (SELECT max(k) FROM b WHERE false) AS m, id IN (SELECT k FROM b WHERE false) AS i,
    EXISTS (SELECT k FROM b WHERE false) AS e, id > ALL (SELECT max(k) FROM b WHERE false GROUP BY v) AS l FROM a;

-- offset_of_nothing
SELECT x.id FROM (SELECT id, k FROM a OFFSET 0) x JOIN (SELECT k FROM b ORDER BY id LIMIT ALL) y ON y.k = x.k;

-- limit_of_equal_rows
SELECT a.id, x.one FROM a, LATERAL (SELECT a.k AS one FROM b WHERE b.k = a.k LIMIT 1) x
WHERE 1 = (SELECT 1 FROM keyless c WHERE c.k = a.k LIMIT 1);

-- limit_of_distinct
SELECT x.k FROM (SELECT DISTINCT k FROM a ORDER BY k LIMIT 2) x;

-- limit_of_distinct_on
SELECT x.k, x.id FROM (SELECT DISTINCT ON (k) k, id FROM a ORDER BY k, id DESC OFFSET 1 LIMIT 2) x;

-- limit_of_union
SELECT x.k FROM (SELECT k FROM a UNION SELECT k FROM b ORDER BY k LIMIT 2) x;

-- limit_of_union_all
SELECT x.k FROM (SELECT k, id FROM a UNION ALL SELECT k, id FROM b ORDER BY 2 DESC NULLS LAST, 1 OFFSET 1 LIMIT 3) x;

-- ties_of_a_limit
SELECT x.id, x.k FROM (SELECT id, k FROM a ORDER BY k FETCH FIRST 2 ROWS WITH TIES) x;

-- ties_of_a_limit_for_each_row
SELECT a.id, x.v FROM a CROSS JOIN LATERAL
    (SELECT b.v FROM b WHERE b.k = a.k ORDER BY b.v DESC OFFSET 1 FETCH NEXT ROW WITH TIES) x;

-- presence_of_ties
SELECT id FROM a WHERE EXISTS (SELECT FROM b WHERE b.k = a.k ORDER BY b.v OFFSET 1 FETCH FIRST 1 ROW WITH TIES);

-- limit_by_a_subquery
SELECT x.id FROM (SELECT id FROM a ORDER BY (SELECT max(b.k) FROM b WHERE b.id = a.id), id LIMIT 4) x;

-- values_beside_select
VALUES (1, 'x'::text) UNION ALL SELECT id, t FROM a;

-- values_as_cte
WITH c (x) AS (VALUES (2), (3)) SELECT id FROM a WHERE k IN (SELECT x FROM c);

-- values_over_tables
SELECT a.id, v.x FROM a, (VALUES ((SELECT max(k) FROM b)), (2)) AS v (x);

-- column_definitions
SELECT id, r.x, r.y FROM a, jsonb_to_record(jsonb_build_object('x', a.k, 'y', a.t)) AS r (x numeric(6, 1), y text);

-- column_definitions_outer
SELECT id, r.x FROM a
    LEFT JOIN jsonb_to_recordset(jsonb_build_array(jsonb_build_object('x', a.k))) AS r (x int) ON r.x > 1;

-- pattern_operators
SELECT id, t ~ '^a' AS a, t ~* '^A' AS b, t !~ 'x' AS c, t !~* 'X' AS d, t SIMILAR TO '(a|b)%' AS e,
    t NOT SIMILAR TO 'a%' ESCAPE '#' AS f,
    t LIKE 'a!%' ESCAPE '!' AS g, t NOT ILIKE 'A%' AS h, t ^@ 'a' AS i FROM a;

-- network_operators
SELECT id FROM a WHERE ('10.0.0.' || id)::inet << '10.0.0.0/8'::inet AND ('10.0.0.' || id)::inet <<= '10.0.0.0/28'::cidr
    AND NOT ('10.0.0.' || id)::inet >>= '10.0.0.3'::inet;

-- geometric_operators
SELECT id, point(id, k) ~= point(1, 1) AS a, box(point(id, 1), point(1, id)) |>> box(point(0, 0), point(1, 0)) AS b,
    2 ^ k AS c FROM a;

-- bits
SELECT id, B'101' AS b, k::bit(4) & B'1100' AS c, X'1F' AS x FROM a;

-- strings_trimmed_and_cut
SELECT id, trim(LEADING 'a' FROM t) AS a, trim(BOTH FROM t) AS b, trim(TRAILING FROM t) AS c,
    substring(t FROM 1 FOR 1) AS d,
    substring(t, 1, 1) AS e, position('a' IN t) AS f, overlay(t PLACING 'z' FROM 1) AS g FROM a;

-- named_arguments
SELECT id, make_interval(days => k, hours => 2) AS i FROM a;

-- windows_over_grouping_sets
SELECT k, s, count(*) AS n, count(*) OVER () AS shown,
    rank() OVER (PARTITION BY k ORDER BY sum(id) NULLS FIRST) AS place,
    sum(grouping(k, s)) OVER (ORDER BY k RANGE UNBOUNDED PRECEDING) AS bits
FROM a GROUP BY GROUPING SETS ((k), (s), (k, s), ());

-- named_window_over_grouping_sets
SELECT k, sum(count(*)) OVER w AS n FROM a GROUP BY ROLLUP (k)
    WINDOW w AS (PARTITION BY grouping(k) ORDER BY count(*) RANGE UNBOUNDED PRECEDING);

-- distinct_over_grouping_sets
SELECT DISTINCT k, count(*) AS n FROM a GROUP BY GROUPING SETS ((k), (k), (s));

-- distinct_on_over_grouping_sets
SELECT DISTINCT ON (k) k, s, count(*) AS n FROM a GROUP BY CUBE (k, s) ORDER BY k, count(*) DESC, s, grouping(k, s);

-- first_rows_of_grouping_sets
SELECT x.k, x.n FROM (SELECT k, count(*) AS n FROM a GROUP BY ROLLUP (k) ORDER BY count(*) DESC, k LIMIT 2) x;

-- rows_of_functions_over_grouping_sets
SELECT k, generate_series(1, count(*)) AS n FROM a GROUP BY CUBE (k, s);

-- grouping_sets_without_aggregates
SELECT k FROM a GROUP BY ROLLUP (k, k);

-- nothing_but_totals
SELECT 'total' AS what FROM a GROUP BY GROUPING SETS ((), ());

-- having_alone
SELECT 'any' AS what FROM a HAVING count(*) > 4;

-- subquery_above_grouping_sets
SELECT k, (SELECT min(b.id) FROM b WHERE b.k IS NOT DISTINCT FROM a.k) AS first FROM a GROUP BY ROLLUP (k);

-- rows_of_functions_that_only_sort
SELECT id FROM a ORDER BY generate_series(1, k), id;

-- rows_of_functions_that_only_sort_groups
SELECT k, rank() OVER (ORDER BY count(*)) AS place FROM a GROUP BY ROLLUP (k) ORDER BY generate_series(1, count(*));

-- rows_of_functions_that_only_sort_below
SELECT b.id, l.id AS other FROM b JOIN (SELECT id, k FROM a ORDER BY unnest(ARRAY[k, s])) l ON l.k = b.k;

-- aggregate_that_only_sorts
SELECT 'one' AS x FROM a ORDER BY count(*);

-- only
SELECT x.id, b.k FROM ONLY a AS x JOIN ONLY b ON b.k = x.k WHERE EXISTS (SELECT FROM ONLY b AS y WHERE y.id = x.id);

-- own_aggregate
SELECT k, joined(t ORDER BY id) AS s, joined(DISTINCT t) FILTER (WHERE v > 1) AS d, sum(id) AS n FROM a GROUP BY k
HAVING joined(t ORDER BY t, id) <> 'x';

-- own_aggregate_of_sets
SELECT k, joined(t ORDER BY id DESC) || 'x' AS s FROM a GROUP BY ROLLUP (k);

-- own_aggregate_beside
SELECT a.id, n.c, (SELECT joined(t ORDER BY id) FROM a) AS s FROM a JOIN joined_texts n ON n.k = a.k;

-- own_aggregate_as_window
SELECT id, joined(t) OVER (PARTITION BY k ORDER BY id) AS s FROM a;

-- grouping_of_one_set
SELECT k, grouping(k) AS g FROM a GROUP BY k HAVING grouping(k) >= 0;

-- join_beginning_with_a_function
SELECT u.e, c.k FROM (unnest(ARRAY[1, 2]) AS u (e) LEFT JOIN LATERAL (SELECT k FROM a WHERE a.id = u.e) c ON true);

-- first_rows_of_functions_in_order
SELECT id, generate_series(1, k) AS n FROM a ORDER BY id, generate_series(1, k) LIMIT 3;

-- whole_row_as_an_argument
SELECT b.id, id_and_key(a) AS s, count(a) AS n FROM b LEFT JOIN a ON a.k = b.k GROUP BY b.id, id_and_key(a);

-- aggregate_within_a_subquery
SELECT a.k, count(*) AS n FROM a GROUP BY a.k
    HAVING EXISTS (SELECT 1 FROM b WHERE b.id <= sum(DISTINCT a.s) FILTER (WHERE a.s > 0));
-- exists_within_exists_that_reads_rows_two_levels_up
SELECT x.id, y.id AS other FROM a AS x JOIN a AS y ON x.k = y.k
WHERE EXISTS (SELECT FROM b WHERE b.k = y.s AND NOT EXISTS (SELECT FROM keyless AS c WHERE c.k = x.s AND c.c = 'x'));

-- exists_within_exists_as_a_value
SELECT x.id,
    EXISTS (SELECT FROM b WHERE b.k = x.k AND (EXISTS (SELECT FROM keyless AS c WHERE c.k = x.s) OR x.s > 2)) AS found
FROM a AS x;

-- not_in_within_no_exists_as_a_value
SELECT x.id, NOT EXISTS (SELECT FROM b WHERE b.id = x.s AND x.k NOT IN (SELECT c.k FROM keyless AS c)) AS missing
    FROM a AS x;

-- grouping_sets_over_a_function_that_orders_too
SELECT t, generate_series(1, 2) AS g, count(*) AS n FROM a GROUP BY CUBE (t, g) ORDER BY g;

-- distinct_on_a_function_that_groups
SELECT DISTINCT ON (generate_series(1, 2)) generate_series(1, 2) AS g, count(*) AS n FROM a GROUP BY g ORDER BY g;

-- alias_of_what_using_unites
SELECT a.id, x.k AS key, b.v FROM a LEFT JOIN b USING (k) AS x WHERE x.k IS NOT NULL;

-- alias_of_joins
SELECT j.x, j.z, j.g FROM (keyless JOIN parent ON parent.k = keyless.k) AS j (x, c, f, g, u, y, z);

-- alias_of_joins_that_unite_columns
SELECT j.m, j.t, s.n FROM (a FULL JOIN b USING (k)) AS j (m, id, v, t, d, w, s, b, id2, v2, n2, e, i)
LEFT JOIN (SELECT k, count(*) AS n FROM keyless GROUP BY k) AS s ON s.k = j.m;

-- alias_of_joins_that_begin_with_a_subquery
SELECT j.y, j.region FROM ((SELECT k + 1 AS y FROM a) AS q JOIN parent ON parent.k = q.y) AS j;

-- subquery_on_the_left_of_in
SELECT id FROM a WHERE (CASE WHEN k IN (SELECT b.k FROM b) THEN k END) IN (SELECT c.k FROM keyless AS c);

-- subquery_on_the_left_of_in_as_a_value
SELECT id, (SELECT max(b.k) FROM b WHERE b.id = a.id) NOT IN (SELECT c.k FROM keyless AS c) AS missing FROM a;

-- subquery_on_the_left_of_all
SELECT id FROM a WHERE (SELECT max(b.id) FROM b WHERE b.k = a.k) > ALL (SELECT c.k FROM keyless AS c WHERE c.flag);

-- rows_from_several_functions
SELECT a.id, f.x, f.y, f.n FROM a,
    ROWS FROM (generate_series(1, a.k), unnest(ARRAY[a.s, 7])) WITH ORDINALITY AS f (x, y, n);

-- with_in_a_correlated_subquery
SELECT id, (WITH w AS (SELECT b.id FROM b WHERE b.k = a.k) SELECT max(x.id) + min(y.id) FROM w AS x, w AS y) AS v
    FROM a;

-- with_in_a_correlated_exists
SELECT id FROM a WHERE NOT EXISTS (WITH w AS (SELECT b.id FROM b WHERE b.k = a.k), z AS (SELECT id + 1 AS n FROM w)
SELECT FROM z WHERE z.n > 3);

-- like_any
SELECT id, t LIKE ANY (SELECT c || '%' FROM keyless) AS one FROM a;

-- like_all
SELECT id FROM a WHERE t !~~* ALL (SELECT c || '%' FROM keyless WHERE keyless.k = a.k);

-- unlike_any
SELECT id FROM a WHERE NOT t || 'x' ~~ ANY (SELECT "wei""rd" || '%' FROM b WHERE b.k = a.k) OR k = 2;

-- prefix_operators
SELECT @ k AS k, count(*) AS n, max(@ id) AS m FROM a WHERE ||/ id::float8 > 0 AND |/ (k::float8 * k) >= 0 GROUP BY @ k;

-- window_in_parentheses
SELECT id, count(*) OVER (w) AS c1, sum(id) OVER (w ROWS 1 PRECEDING) AS c2 FROM a WINDOW w AS (PARTITION BY k ORDER BY id);

-- distinct_of_each_row
SELECT a.id, x.v FROM a CROSS JOIN LATERAL (SELECT DISTINCT b.v FROM b WHERE b.k = a.k) AS x;

-- distinct_of_each_row_by_more
SELECT a.id, x.v, x.k FROM a, LATERAL (SELECT DISTINCT b.v, b.k FROM b WHERE b.k = a.k OR b.v > a.v) AS x;

-- distinct_of_each_row_or_none
SELECT a.id, x.v FROM a LEFT JOIN LATERAL (SELECT DISTINCT b.v FROM b WHERE b.k = a.k AND b.v <> a.v) AS x ON x.v > 0;

-- distinct_of_each_row_if
SELECT a.id, x.v FROM a CROSS JOIN LATERAL (SELECT DISTINCT b.v FROM b WHERE b.k = a.k AND a.v > 3) AS x;

-- among_distinct
SELECT a.id FROM a WHERE a.v IN (SELECT DISTINCT b.v FROM b WHERE b.k > a.k);

-- not_among_distinct
SELECT a.id FROM a WHERE a.id NOT IN (SELECT DISTINCT b.id FROM b WHERE b.k = a.k);

-- union_of_each_row
SELECT a.id, x.n FROM a CROSS JOIN LATERAL (SELECT b.v FROM b WHERE b.k = a.k UNION SELECT b.id FROM b WHERE b.k = a.k)
AS x (n);

-- union_of_each_row_by_more
SELECT a.id, x.n FROM a LEFT JOIN LATERAL (SELECT b.v FROM b WHERE b.k > a.k UNION SELECT b.id FROM b WHERE b.v = a.v)
AS x (n) ON x.n <> a.id;

-- intersection_of_each_row
SELECT a.id, x.k FROM a, LATERAL (SELECT b.k FROM b WHERE b.v >= a.v INTERSECT ALL SELECT c.k FROM b c WHERE c.k = a.k) AS x;

-- difference_of_each_row
SELECT a.id, x.v FROM a, LATERAL (SELECT b.v FROM b WHERE b.k = a.k EXCEPT SELECT c.v FROM b c WHERE c.id = a.id) AS x;

-- among_a_union
SELECT a.id FROM a WHERE a.v IN (SELECT b.v FROM b WHERE b.k = a.k UNION SELECT b.k FROM b WHERE b.v < a.v);

-- unless_a_difference
SELECT a.id FROM a WHERE NOT EXISTS (SELECT b.v FROM b WHERE b.k = a.k EXCEPT SELECT c.v FROM b c WHERE c.v = a.v);

-- first_of_each_row
SELECT a.id, x.k, x.v FROM a, LATERAL (SELECT DISTINCT ON (c.k) c.k, c.v FROM a c WHERE c.v > a.v ORDER BY c.k, c.id) AS x;

-- first_of_each_row_or_none
SELECT a.id, x.v FROM a LEFT JOIN LATERAL (
    SELECT DISTINCT ON (c.id % 3) c.v, c.t FROM a c WHERE c.k = a.k ORDER BY c.id % 3, c.id DESC) AS x ON true;

-- domains_over_an_enumeration_and_a_range
SELECT id, m, s FROM chosen_ones WHERE id > 0;

-- array_of_a_domain_over_an_enumeration
SELECT l, count(*) AS n FROM chosen_ones GROUP BY l;

-- domain_over_an_enumeration_cast_to_that
SELECT m::mood AS m, count(*) AS n FROM chosen_ones GROUP BY 1;

-- distinct_values_of_a_domain_over_a_range
SELECT DISTINCT s FROM chosen_ones;

-- any_of_listed_rows
SELECT id FROM a WHERE k = ANY (ARRAY(SELECT b.k FROM b)) OR t <> ALL (ARRAY(SELECT a2.t FROM a AS a2 WHERE a2.k = 1));

-- unequal_to_all
SELECT id, k <> ALL (SELECT b.k FROM b) AS apart FROM a;

-- array_in_any_order
SELECT id, cardinality(ARRAY(SELECT b.id FROM b WHERE b.k = a.k)) AS n FROM a
WHERE ARRAY[1, 2] && ARRAY(SELECT keyless.k FROM keyless);

-- looked_up
SELECT id, (SELECT c.v FROM a AS c WHERE c.id = a.k) * 2 AS v FROM a;

-- sum_of_what_is_looked_up
SELECT k, sum(v * (SELECT c.id FROM a AS c WHERE c.id = a.s)) AS s FROM a GROUP BY k;

-- direct_arguments_that_are_keys
SELECT k, s % 2 AS half, rank(k) WITHIN GROUP (ORDER BY id) AS r, percentile_disc(0.5) WITHIN GROUP (ORDER BY id) AS p,
    rank((s % 2) + 1) WITHIN GROUP (ORDER BY s) AS h
FROM a GROUP BY k, s % 2;

-- aggregate_of_the_query_around
SELECT k, (SELECT max(x.v) FROM (SELECT DISTINCT b.v FROM b WHERE b.k = min(a.id)) x) AS m FROM a GROUP BY k;

-- six_left_joins
SELECT o.id, c1.v FROM a o LEFT JOIN a c1 ON c1.id = o.id + 1 LEFT JOIN a c2 ON c2.id = o.k
    LEFT JOIN a c3 ON c3.id = o.s
    LEFT JOIN a c4 ON c4.id = o.id + 2 LEFT JOIN a c5 ON c5.id = o.k + 1 LEFT JOIN a c6 ON c6.id = o.s + 1;

-- distinct_of_both_rows
SELECT a.id, x.v FROM a CROSS JOIN LATERAL (SELECT DISTINCT b.v + a.v AS v FROM b WHERE b.k = a.k) AS x;
