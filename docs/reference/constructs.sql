-- What scripts/support_table.py asks the planner about. "-- ## section", then "-- construct" above each query.

CREATE TABLE orders (id int PRIMARY KEY, customer int, amount numeric(10, 2), note text, placed date, express boolean);
CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, region text, parent int);
CREATE TABLE returns (id int, customer int, amount numeric(10, 2));
CREATE TABLE readings (sensor int, value double precision, tags text[], data jsonb);
CREATE SEQUENCE numbers;
CREATE INDEX ON orders (customer);
CREATE VIEW named_orders AS SELECT o.id, c.name, o.amount FROM orders o JOIN customers c ON c.id = o.customer;
CREATE VIEW totals AS SELECT customer, sum(amount) AS total FROM orders GROUP BY customer;
CREATE MATERIALIZED VIEW snapshot AS SELECT id, amount FROM orders;
CREATE TEMPORARY TABLE scratch (id int);
CREATE UNLOGGED TABLE cache (id int);
CREATE FOREIGN DATA WRAPPER elsewhere;
CREATE SERVER elsewhere FOREIGN DATA WRAPPER elsewhere;
CREATE FOREIGN TABLE remote (id int) SERVER elsewhere;
CREATE FUNCTION vat(numeric) RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT $1 * 0.19';
CREATE AGGREGATE joined(text) (sfunc = textcat, stype = text, initcond = '');
CREATE AGGREGATE "Joined Texts"(text) (sfunc = textcat, stype = text, initcond = '');
CREATE FUNCTION rate(int) RETURNS numeric LANGUAGE sql STABLE AS 'SELECT max(amount) FROM public.orders WHERE id = $1';

-- ## Rows
-- filter and projection
SELECT id, upper(note) AS note FROM orders WHERE amount > 10 AND note LIKE 'a%';
-- CASE, COALESCE, casts
SELECT id, CASE WHEN express THEN 'fast' ELSE coalesce(note, 'none') END AS kind, amount::int AS whole FROM orders;
-- IS DISTINCT FROM
SELECT id FROM orders WHERE customer IS DISTINCT FROM 7;
-- row comparison
SELECT id FROM orders WHERE (customer, amount) > (1, 10);
-- row equality
SELECT id FROM orders WHERE (customer, note) = (1, 'a');
-- IN with a list
SELECT id FROM orders WHERE customer IN (1, 2, NULL);
-- = ANY of an array
SELECT id FROM orders WHERE customer = ANY (ARRAY[1, 2]);
-- arrays and jsonb
SELECT sensor, tags[1] AS tag, data ->> 'unit' AS unit FROM readings;
-- your own IMMUTABLE function
SELECT id, vat(amount) AS vat FROM orders;
-- ordinary view
SELECT id, name FROM named_orders WHERE amount > 10;
-- ORDER BY
SELECT id, amount FROM orders ORDER BY amount DESC;
-- VALUES
VALUES (1, 'a'), (2, 'b');
-- no table at all
SELECT 1 AS one;
-- whole-row reference
SELECT o::text AS line FROM orders o;
-- whole row of an outer join
SELECT c.id, count(o) AS n, max(row_to_json(o) ->> 'note') AS note FROM customers c LEFT JOIN orders o ON o.customer = c.id GROUP BY c.id;
-- whole row of a function
SELECT r.sensor, row_to_json(e)::text AS line FROM readings r, jsonb_each(r.data) AS e;
-- column aliases on a table
SELECT o.number, o.buyer FROM orders AS o (number, buyer);
-- condition that is never true
SELECT id FROM orders WHERE false UNION ALL SELECT id FROM customers;
-- LIKE … ESCAPE, SIMILAR TO, regular expressions
SELECT id FROM orders WHERE note LIKE 'a!%' ESCAPE '!' OR note SIMILAR TO '(a|n)%' OR note ~ '^a' OR note !~* 'X';
-- substring by an SQL pattern, normalize()
SELECT id, substring(note SIMILAR '%#"[0-9]#"%' ESCAPE '#') AS digit, note IS NFC NORMALIZED AS normal, normalize(note, NFKC) AS text FROM orders;
-- operators before their operand
SELECT id, @ customer AS distance, |/ customer::double precision AS root FROM orders;
-- inet and geometric operators
SELECT id FROM orders WHERE ('10.0.0.' || id)::inet <<= '10.0.0.0/28'::cidr AND point(id, 1) ~= point(id, 1);
-- TABLE
TABLE returns;
-- VALUES beside a SELECT
VALUES (0, 'none'::text) UNION ALL SELECT id, note FROM orders;

-- ## Joins
-- inner join
SELECT o.id, c.name FROM orders o JOIN customers c ON c.id = o.customer;
-- inner join on an inequality
SELECT o.id, r.id AS other FROM orders o JOIN returns r ON r.amount > o.amount;
-- comma and WHERE
SELECT o.id, c.name FROM orders o, customers c WHERE c.id = o.customer;
-- self join
SELECT a.id, b.id AS other FROM orders a JOIN orders b ON a.customer = b.customer AND a.id < b.id;
-- USING
SELECT customer, o.amount, r.amount AS returned FROM orders o JOIN returns r USING (customer);
-- USING with an alias
SELECT x.customer, o.amount, r.amount AS returned FROM orders o JOIN returns r USING (customer) AS x;
-- alias of joins in parentheses
SELECT j.customer, c.name FROM (orders o JOIN returns r USING (customer)) AS j JOIN customers c ON c.id = j.customer;
-- NATURAL
SELECT customer FROM orders NATURAL JOIN returns;
-- IS NOT DISTINCT FROM as the condition
SELECT o.id FROM orders o JOIN returns r ON r.customer IS NOT DISTINCT FROM o.customer;
-- CROSS JOIN
SELECT o.id, c.name FROM orders o CROSS JOIN customers c;
-- LEFT JOIN
SELECT o.id, c.name FROM orders o LEFT JOIN customers c ON c.id = o.customer;
-- LEFT JOIN with a further condition
SELECT o.id, c.name FROM orders o LEFT JOIN customers c ON c.id = o.customer AND o.amount > 10 AND c.region = 'x';
-- RIGHT JOIN
SELECT o.id, c.name FROM orders o RIGHT JOIN customers c ON c.id = o.customer AND o.express;
-- FULL JOIN
SELECT o.id, r.id AS returned FROM orders o FULL JOIN returns r ON r.customer = o.customer;
-- LEFT JOIN with a subquery in ON
SELECT c.id, count(o.id) AS n FROM customers c LEFT JOIN orders o ON o.customer = c.id AND NOT EXISTS (SELECT FROM returns r WHERE r.id = o.id) GROUP BY c.id;
-- LEFT JOIN with a subquery over the kept side in ON
SELECT c.id, o.id AS ordered FROM customers c LEFT JOIN orders o ON o.customer = c.id AND c.id IN (SELECT r.customer FROM returns r);
-- LEFT JOIN with the newest row
SELECT c.id, o.id AS newest FROM customers c LEFT JOIN orders o ON o.customer = c.id AND o.placed = (SELECT max(p.placed) FROM orders p WHERE p.customer = c.id);
-- LEFT JOIN with a subquery over both sides in ON
SELECT c.id, o.id AS ordered FROM customers c LEFT JOIN orders o ON o.customer = c.id AND EXISTS (SELECT FROM returns r WHERE r.id = o.id AND r.amount > c.id);
-- LEFT JOIN without equality
SELECT o.id, r.id AS other FROM orders o LEFT JOIN returns r ON r.amount > o.amount;
-- five LEFT JOINs
SELECT o.id FROM orders o LEFT JOIN customers c1 ON c1.id = o.customer LEFT JOIN customers c2 ON c2.id = c1.parent LEFT JOIN customers c3 ON c3.id = c2.parent LEFT JOIN returns r ON r.id = o.id LEFT JOIN readings s ON s.sensor = o.id;
-- six LEFT JOINs
SELECT o.id FROM orders o LEFT JOIN customers c1 ON c1.id = o.customer LEFT JOIN customers c2 ON c2.id = c1.parent LEFT JOIN customers c3 ON c3.id = c2.parent LEFT JOIN customers c4 ON c4.id = c3.parent LEFT JOIN returns r ON r.id = o.id LEFT JOIN readings s ON s.sensor = o.id;
-- nested outer joins
SELECT c.id, o.id AS o, r.id AS r FROM customers c LEFT JOIN (orders o JOIN returns r USING (customer)) ON customer = c.id;

-- ## EXISTS and IN
-- EXISTS
SELECT id FROM customers c WHERE EXISTS (SELECT FROM orders o WHERE o.customer = c.id);
-- NOT EXISTS
SELECT id FROM customers c WHERE NOT EXISTS (SELECT FROM orders o WHERE o.customer = c.id);
-- EXISTS with a further condition
SELECT id FROM customers c WHERE EXISTS (SELECT FROM orders o WHERE o.customer = c.id AND o.note <> c.name);
-- EXISTS of an uncorrelated query
SELECT id FROM customers WHERE EXISTS (SELECT FROM returns WHERE amount > 100);
-- IN
SELECT id FROM customers WHERE id IN (SELECT customer FROM orders);
-- IN, correlated
SELECT id FROM customers c WHERE name IN (SELECT note FROM orders o WHERE o.customer = c.id);
-- IN, correlated, of DISTINCT
SELECT id FROM customers c WHERE name IN (SELECT DISTINCT note FROM orders o WHERE o.customer < c.id);
-- IN, correlated, of a set operation
SELECT id FROM customers c WHERE id IN (SELECT id FROM orders o WHERE o.customer = c.id EXCEPT SELECT id FROM returns r WHERE r.customer = c.id);
-- IN, several columns
SELECT id FROM orders WHERE (customer, amount) IN (SELECT customer, amount FROM returns);
-- NOT IN, with NULLs
SELECT id FROM customers WHERE id NOT IN (SELECT customer FROM orders);
-- NOT IN, several columns
SELECT id FROM orders WHERE (customer, amount) NOT IN (SELECT customer, amount FROM returns);
-- <, ANY and ALL, several columns
SELECT id FROM orders WHERE (customer, amount) < ANY (SELECT customer, amount FROM returns) AND (customer, amount) >= ALL (SELECT customer, amount FROM returns WHERE id < 9);
-- LIKE and other operators, ANY and ALL
SELECT id FROM orders WHERE note LIKE ANY (SELECT name FROM customers) OR note !~ ALL (SELECT region FROM customers);
-- EXISTS under AND
SELECT id FROM customers c WHERE region = 'x' AND EXISTS (SELECT FROM orders o WHERE o.customer = c.id);
-- several IN under OR, with NULLs
SELECT id FROM orders WHERE customer IN (SELECT customer FROM returns) OR amount IN (SELECT amount FROM returns);
-- several IN in CASE, with NULLs
SELECT id, CASE WHEN customer IN (SELECT customer FROM returns) THEN 1 WHEN amount IN (SELECT amount FROM returns) THEN 2 END FROM orders;
-- EXISTS under OR
SELECT id FROM customers c WHERE region = 'x' OR EXISTS (SELECT FROM orders o WHERE o.customer = c.id);
-- nested EXISTS
SELECT id FROM customers c WHERE EXISTS
    (SELECT FROM orders o WHERE o.customer = c.id AND NOT EXISTS (SELECT FROM returns r WHERE r.customer = o.customer));
-- EXISTS in the select list
SELECT id, EXISTS (SELECT FROM orders o WHERE o.customer = c.id) AS buys FROM customers c;
-- > ALL
SELECT id FROM orders WHERE amount > ALL (SELECT amount FROM returns);

-- IN of a value that a subquery decides
SELECT id FROM orders WHERE (CASE WHEN customer IN (SELECT id FROM customers) THEN id END) IN (SELECT id FROM returns);
-- WITH inside of EXISTS
SELECT id FROM customers c WHERE EXISTS (WITH o AS (SELECT amount FROM orders WHERE customer = c.id) SELECT FROM o WHERE amount > 9);
-- expressions that may fail for rows that NOT EXISTS leaves out
SELECT id, 100 / amount AS share FROM orders o WHERE NOT EXISTS (SELECT FROM orders z WHERE z.id = o.id AND z.amount = 0);

-- ## Scalar subqueries
-- uncorrelated, in the select list
SELECT id, amount - (SELECT avg(amount) FROM orders) AS above FROM orders;
-- uncorrelated, in WHERE
SELECT id FROM orders WHERE amount = (SELECT max(amount) FROM orders);
-- correlated aggregate
SELECT id, (SELECT count(*) FROM orders o WHERE o.customer = c.id) AS orders FROM customers c;
-- correlated aggregate of columns of both queries
SELECT c.id, (SELECT sum(o.amount * length(c.name)) FROM orders o WHERE o.customer = c.id) AS amount FROM customers c;
-- correlated aggregate with a subquery for the outermost rows
SELECT c.id, (SELECT max(o.placed) FROM orders o WHERE o.customer = c.id AND o.placed < (SELECT max(p.placed) FROM orders p WHERE p.customer = c.id)) AS placed FROM customers c;
-- correlated single row
SELECT id, (SELECT name FROM customers c WHERE c.id = o.customer) AS name FROM orders o;
-- correlated aggregate in WHERE
SELECT id FROM orders o WHERE amount > (SELECT avg(amount) FROM orders i WHERE i.customer = o.customer);
-- several columns compared with the row of a subquery
SELECT id, (customer, amount) < (SELECT max(customer), max(amount) FROM returns) AS less FROM orders o WHERE (customer, amount) = (SELECT max(customer), max(amount) FROM returns r WHERE r.id = o.id);
-- ARRAY(subquery)
SELECT id, ARRAY(SELECT o.id FROM orders o WHERE o.customer = c.id ORDER BY 1) AS orders FROM customers c;
-- = ANY (ARRAY(subquery)), <> ALL of rows
SELECT id FROM orders WHERE note = ANY (ARRAY(SELECT name FROM customers)) AND amount <> ALL (SELECT amount FROM returns);
-- ARRAY(subquery) whose order is not seen
SELECT sensor FROM readings WHERE tags && ARRAY(SELECT name FROM customers) OR cardinality(ARRAY(SELECT id FROM orders)) > 30;
-- ARRAY(subquery) without ORDER BY
SELECT id, ARRAY(SELECT o.id FROM orders o WHERE o.customer = c.id) AS orders FROM customers c;
-- the first rows of another table, as JSON
SELECT c.id, (SELECT jsonb_agg(q) FROM (SELECT o.id, o.amount FROM orders o WHERE o.customer = c.id ORDER BY o.amount DESC, o.id LIMIT 3) q) AS largest FROM customers c;
-- over the elements of an array
SELECT sensor, (SELECT string_agg(t.x, ', ' ORDER BY t.x) FROM unnest(r.tags) AS t (x)) AS tags FROM readings r;

-- ## Derived tables and WITH
-- derived table
SELECT d.id FROM (SELECT id, amount * 2 AS twice FROM orders) d WHERE d.twice > 10;
-- CTE, read once
WITH big AS (SELECT id, customer FROM orders WHERE amount > 10) SELECT b.id, c.name FROM big b JOIN customers c ON c.id = b.customer;
-- CTE, read twice
WITH big AS (SELECT id, customer FROM orders WHERE amount > 10) SELECT a.id, b.id AS other FROM big a JOIN big b USING (customer);
-- CTE with column names
WITH big (a, b) AS (SELECT id, customer FROM orders) SELECT a FROM big;
-- MATERIALIZED CTE
WITH big AS MATERIALIZED (SELECT id FROM orders WHERE amount > 10) SELECT id FROM big;
-- recursive CTE
WITH RECURSIVE below AS (SELECT id FROM customers WHERE parent IS NULL UNION ALL SELECT c.id FROM customers c JOIN below b ON c.parent = b.id) SELECT id FROM below;
-- aggregate in a derived table
SELECT c.name, t.n FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) t JOIN customers c ON c.id = t.customer;
-- view with an aggregate
SELECT customer FROM totals WHERE total > 100;
-- DISTINCT in a derived table
SELECT count(*) AS n FROM (SELECT DISTINCT customer FROM orders) d;

-- ## Aggregates
-- count, sum, avg, min, max
SELECT customer, count(*) AS n, sum(amount) AS s, avg(amount) AS a, min(placed) AS lo, max(placed) AS hi FROM orders GROUP BY customer;
-- without GROUP BY
SELECT count(*) AS n, sum(amount) AS s FROM orders;
-- GROUP BY an expression
SELECT date_trunc('month', placed) AS month, sum(amount) AS s FROM orders GROUP BY 1;
-- over a join
SELECT c.region, sum(o.amount) AS s FROM orders o JOIN customers c ON c.id = o.customer GROUP BY c.region;
-- GROUP BY a primary key
SELECT c.id, c.name, count(*) AS n FROM customers c JOIN orders o ON o.customer = c.id GROUP BY c.id;
-- HAVING
SELECT customer FROM orders GROUP BY customer HAVING count(*) > 3 AND sum(amount) > 10;
-- HAVING with a subquery
SELECT customer FROM orders GROUP BY customer HAVING sum(amount) > (SELECT avg(amount) FROM returns);
-- FILTER
SELECT customer, count(*) FILTER (WHERE express) AS fast, sum(amount) FILTER (WHERE note IS NULL) AS s FROM orders GROUP BY customer;
-- expression over aggregates
SELECT customer, sum(amount) / nullif(count(*), 0) AS mean FROM orders GROUP BY customer;
-- aggregate over an aggregate
SELECT max(n) AS most FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) t;
-- count(DISTINCT …)
SELECT customer, count(DISTINCT note) AS notes FROM orders GROUP BY customer;
-- sum(DISTINCT …)
SELECT sum(DISTINCT amount) AS s FROM orders;
-- sum(… ORDER BY …)
SELECT customer, sum(amount ORDER BY id) AS s FROM orders GROUP BY customer;
-- stddev, variance
SELECT customer, stddev(amount) AS d, var_pop(amount) AS v FROM orders GROUP BY customer;
-- corr, regr_slope
SELECT corr(amount, id) AS c, regr_slope(amount, id) AS r FROM orders;
-- bool_and, bool_or, every
SELECT customer, bool_and(express) AS a, bool_or(express) AS o, every(express) AS e FROM orders GROUP BY customer;
-- bit_and, bit_or
SELECT bit_and(id) AS a, bit_or(id) AS o FROM orders;
-- string_agg with ORDER BY
SELECT customer, string_agg(note, ', ' ORDER BY id) AS notes FROM orders GROUP BY customer;
-- a condition above groups that compares
SELECT q.value, q.n FROM (SELECT value, count(*) AS n FROM readings GROUP BY value) q WHERE q.value >= 0;
-- a condition above groups that sees whether 0 is -0, as it does whether 1 is 1.00
SELECT q.value, q.n FROM (SELECT value, count(*) AS n FROM readings GROUP BY value) q WHERE q.value::text = '0';
-- string_agg without ORDER BY
SELECT customer, string_agg(note, ', ') AS notes FROM orders GROUP BY customer;
-- string_agg(DISTINCT …)
SELECT customer, string_agg(DISTINCT note, ', ') AS notes FROM orders GROUP BY customer;
-- array_agg with ORDER BY
SELECT customer, array_agg(id ORDER BY id) AS ids FROM orders GROUP BY customer;
-- array_agg without ORDER BY
SELECT customer, array_agg(id) AS ids FROM orders GROUP BY customer;
-- array_agg(DISTINCT …)
SELECT customer, array_agg(DISTINCT note ORDER BY note DESC) AS notes FROM orders GROUP BY customer;
-- jsonb_agg with ORDER BY
SELECT customer, jsonb_agg(note ORDER BY id) AS notes FROM orders GROUP BY customer;
-- jsonb_agg without ORDER BY
SELECT customer, jsonb_agg(note) AS notes FROM orders GROUP BY customer;
-- array_agg without ORDER BY, over a subquery that sorts
SELECT array_agg(q.name) AS names FROM (SELECT name FROM customers ORDER BY id) q;
-- array_agg without ORDER BY, over rows that are joined
SELECT c.name, array_agg(o.id) AS ids FROM customers c LEFT JOIN orders o ON o.customer = c.id GROUP BY c.name;
-- array_agg without ORDER BY, over UNION ALL
SELECT array_agg(q.id) AS ids FROM (SELECT id FROM customers UNION ALL SELECT id FROM orders) q;
-- array_agg without ORDER BY, over the elements of an array
SELECT array_agg(t.x) AS tags FROM readings r, unnest(r.tags) AS t (x);
-- jsonb_object_agg whose keys differ
SELECT jsonb_object_agg(id, note) AS notes FROM orders;
-- jsonb_object_agg whose keys may be equal
SELECT jsonb_object_agg(note, id) AS notes FROM orders WHERE note IS NOT NULL;
-- jsonb_object_agg with ORDER BY
SELECT jsonb_object_agg(id, note ORDER BY id) AS notes FROM orders;
-- your own aggregate with ORDER BY or DISTINCT
SELECT customer, joined(note ORDER BY id) AS notes, joined(DISTINCT note) AS kinds FROM orders GROUP BY customer;
-- your own aggregate without ORDER BY
SELECT customer, joined(note) AS notes FROM orders GROUP BY customer;
-- your own aggregate with a name in quotes
SELECT customer, "Joined Texts"(note ORDER BY id) AS notes FROM orders GROUP BY customer;
-- percentile_cont, percentile_disc
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) AS c, percentile_disc(0.5) WITHIN GROUP (ORDER BY amount) AS d FROM orders;
-- mode
SELECT mode() WITHIN GROUP (ORDER BY note) AS common FROM orders;
-- rank of a hypothetical row
SELECT rank(10) WITHIN GROUP (ORDER BY amount) AS r FROM orders;
-- GROUPING SETS
SELECT customer, express, sum(amount) AS s FROM orders GROUP BY GROUPING SETS ((customer), (express), ());
-- ROLLUP
SELECT customer, express, sum(amount) AS s FROM orders GROUP BY ROLLUP (customer, express);
-- CUBE
SELECT customer, express, sum(amount) AS s, grouping(customer) AS g FROM orders GROUP BY CUBE (customer, express);
-- sum and avg of double precision
SELECT sensor, sum(value) AS s, avg(value) AS a FROM readings GROUP BY sensor;
-- min and max of double precision
SELECT sensor, min(value) AS lo, max(value) AS hi FROM readings GROUP BY sensor;

-- ## Duplicates and sets
-- DISTINCT
SELECT DISTINCT customer, express FROM orders;
-- DISTINCT over an aggregate
SELECT DISTINCT sum(amount) AS s FROM orders GROUP BY customer;
-- DISTINCT ON
SELECT DISTINCT ON (customer) customer, id, amount FROM orders ORDER BY customer, amount DESC, id;
-- DISTINCT ON over window functions
SELECT DISTINCT ON (customer) customer, id, rank() OVER (ORDER BY amount) AS r FROM orders ORDER BY customer, placed, id;
-- UNION ALL
SELECT id, customer FROM orders UNION ALL SELECT id, customer FROM returns;
-- UNION
SELECT customer FROM orders UNION SELECT customer FROM returns;
-- UNION below the top
SELECT count(*) AS n FROM (SELECT customer FROM orders UNION SELECT customer FROM returns) u;
-- INTERSECT
SELECT customer FROM orders INTERSECT SELECT customer FROM returns;
-- INTERSECT ALL
SELECT customer FROM orders INTERSECT ALL SELECT customer FROM returns;
-- EXCEPT
SELECT customer FROM orders EXCEPT SELECT customer FROM returns;
-- EXCEPT ALL
SELECT customer FROM orders EXCEPT ALL SELECT customer FROM returns;
-- UNION ALL of aggregates
SELECT sum(amount) AS s FROM orders UNION ALL SELECT sum(amount) FROM returns;

-- ## Windows
-- row_number, rank, dense_rank
SELECT id, row_number() OVER w AS n, rank() OVER w AS r, dense_rank() OVER w AS d FROM orders WINDOW w AS (PARTITION BY customer ORDER BY amount, id);
-- lag, lead
SELECT id, lag(amount) OVER w AS before, lead(amount) OVER w AS after FROM orders WINDOW w AS (PARTITION BY customer ORDER BY id);
-- running sum with a frame
SELECT id, sum(amount) OVER (PARTITION BY customer ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s FROM orders;
-- frame without BETWEEN
SELECT id, sum(amount) OVER (PARTITION BY customer ORDER BY id ROWS UNBOUNDED PRECEDING) AS s FROM orders;
-- window that extends another
SELECT id, sum(amount) OVER (w ROWS 2 PRECEDING) AS s FROM orders WINDOW v AS (PARTITION BY customer), w AS (v ORDER BY id);
-- several windows
SELECT id, rank() OVER (PARTITION BY customer ORDER BY id) AS r, sum(amount) OVER (PARTITION BY express) AS s FROM orders;
-- without PARTITION BY
SELECT id, rank() OVER (ORDER BY amount, id) AS r FROM orders;
-- over an aggregate
SELECT customer, rank() OVER (ORDER BY sum(amount)) AS r FROM orders GROUP BY customer;
-- the first rows of every partition
SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY customer ORDER BY amount, id) AS n FROM orders) q WHERE n <= 3;

-- ## Functions and LATERAL
-- LATERAL subquery
SELECT c.id, l.amount FROM customers c, LATERAL (SELECT amount FROM orders o WHERE o.customer = c.id) l;
-- function of each row, joined further
SELECT r.sensor, t.tag, c.name FROM readings r, unnest(r.tags) AS t (tag) LEFT JOIN customers c ON c.region = t.tag;
-- LATERAL with DISTINCT
SELECT c.id, l.note FROM customers c CROSS JOIN LATERAL (SELECT DISTINCT note FROM orders o WHERE o.customer = c.id) l;
-- LATERAL with DISTINCT ON
SELECT c.id, l.note FROM customers c CROSS JOIN LATERAL (SELECT DISTINCT ON (note) note, id FROM orders o WHERE o.customer = c.id ORDER BY note, id) l;
-- LATERAL with UNION
SELECT c.id, l.amount FROM customers c CROSS JOIN LATERAL (SELECT amount FROM orders o WHERE o.customer = c.id UNION SELECT amount FROM returns r WHERE r.customer = c.id) l;
-- LATERAL with LIMIT of equal rows
SELECT c.id, l.name FROM customers c CROSS JOIN LATERAL (SELECT c.name FROM orders o WHERE o.customer = c.id LIMIT 1) l;
-- LATERAL with LIMIT
SELECT c.id, l.amount FROM customers c CROSS JOIN LATERAL (SELECT amount FROM orders o WHERE o.customer = c.id ORDER BY amount DESC, id LIMIT 3) l;
-- LATERAL with a window
SELECT c.id, o.id AS o FROM customers c, LATERAL (SELECT id, row_number() OVER (ORDER BY placed, id) AS place FROM orders WHERE customer = c.id) o WHERE o.place <= 3;
-- LEFT JOIN LATERAL
SELECT c.id, l.n FROM customers c LEFT JOIN LATERAL (SELECT count(*) AS n FROM orders o WHERE o.customer = c.id) l ON true;
-- unnest in FROM
SELECT r.sensor, t.tag FROM readings r, unnest(r.tags) AS t (tag);
-- LEFT JOIN LATERAL function
SELECT r.sensor, t.tag FROM readings r LEFT JOIN LATERAL unnest(r.tags) AS t (tag) ON t.tag <> 'old';
-- XMLTABLE
SELECT r.sensor, x.n, x.name FROM readings r, XMLTABLE('//tag' PASSING ((r.data ->> 'tags')::xml) COLUMNS n int PATH '@n', name text PATH '.') AS x;
-- unnest in the select list
SELECT sensor, unnest(tags) AS tag FROM readings;
-- several set-returning functions in the select list
SELECT sensor, unnest(tags) AS tag, generate_series(1, 2) AS n FROM readings;
-- GROUP BY a set-returning function
SELECT unnest(tags) AS tag, count(*) AS n FROM readings GROUP BY 1;
-- GROUP BY a set-returning function that is shown twice
SELECT unnest(tags) AS tag, unnest(tags) AS again, count(*) AS n FROM readings GROUP BY unnest(tags);
-- set-returning function in the select list, with LIMIT
SELECT sensor, unnest(tags) AS tag FROM readings ORDER BY sensor LIMIT 10;
-- set-returning function in the select list, sorted by, with LIMIT
SELECT sensor, unnest(tags) AS tag FROM readings ORDER BY sensor, tag LIMIT 10;
-- function with a column definition list
SELECT r.sensor, x.unit FROM readings r, jsonb_to_record(r.data) AS x (unit text);
-- ROWS FROM
SELECT r.sensor, x.tag, x.n FROM readings r, ROWS FROM (unnest(r.tags), generate_series(1, 2)) AS x (tag, n);
-- jsonb_array_elements
SELECT r.sensor, e.value FROM readings r, jsonb_array_elements(r.data -> 'parts') e;
-- generate_series over a column
SELECT o.id, g.n FROM orders o, generate_series(1, o.customer) AS g (n);
-- generate_series of constants
SELECT o.id, g.n FROM orders o CROSS JOIN generate_series(1, 3) AS g (n);
-- join with VALUES
SELECT o.id, v.label FROM orders o JOIN (VALUES (1, 'one'), (2, 'two')) v (k, label) ON v.k = o.customer;
-- XMLELEMENT
SELECT id, xmlelement(name "order", xmlattributes(id AS number), note)::text AS written FROM orders;
-- XMLPARSE, XMLSERIALIZE, XMLROOT, XMLEXISTS, IS DOCUMENT
SELECT id, xmlserialize(CONTENT xmlroot(xmlparse(CONTENT note), VERSION '1.1') AS text) AS x FROM orders WHERE xmlexists('/order' PASSING xmlelement(name "order", note)) OR xmlparse(CONTENT note) IS NOT DOCUMENT;

-- ## LIMIT
-- ORDER BY … LIMIT
SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 10;
-- ORDER BY … LIMIT … OFFSET
SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 10 OFFSET 5;
-- ORDER BY … LIMIT by what is not shown
SELECT note FROM orders ORDER BY amount DESC, id LIMIT 10;
-- ORDER BY … LIMIT by an aggregate that is not shown
SELECT customer FROM orders GROUP BY customer ORDER BY sum(amount) DESC, customer LIMIT 10;
-- FETCH FIRST … WITH TIES
SELECT id, amount FROM orders ORDER BY amount DESC FETCH FIRST 10 ROWS WITH TIES;
-- LIMIT of a subquery
SELECT x.id FROM (SELECT id FROM orders ORDER BY amount, id LIMIT 10) x;
-- LIMIT of a subquery with DISTINCT, or of a set operation
SELECT x.customer FROM (SELECT DISTINCT customer FROM orders ORDER BY customer LIMIT 3) x
UNION ALL SELECT x.customer FROM (SELECT customer FROM orders UNION SELECT customer FROM returns ORDER BY 1 LIMIT 3) x;
-- LIMIT of a subquery without ORDER BY
SELECT x.id FROM (SELECT id FROM orders LIMIT 10) x;
-- LIMIT without ORDER BY
SELECT id FROM orders LIMIT 10;

-- ## The clock, the session, chance
-- now()
SELECT id FROM orders WHERE placed > now() - interval '30 days';
-- current_date
SELECT id, current_date - placed AS age FROM orders;
-- current_user
SELECT id, current_user AS reader FROM orders;
-- your own STABLE function
SELECT id, rate(id) AS rate FROM orders;
-- random()
SELECT id, random() AS r FROM orders;
-- clock_timestamp()
SELECT id, clock_timestamp() AS at FROM orders;
-- nextval()
SELECT nextval('numbers') AS n FROM orders;
-- TABLESAMPLE
SELECT id FROM orders TABLESAMPLE BERNOULLI (10);
-- TABLESAMPLE … REPEATABLE
SELECT id FROM orders TABLESAMPLE BERNOULLI (10) REPEATABLE (1);

-- ## Sources
-- materialized view
SELECT id FROM snapshot;
-- foreign table
SELECT id FROM remote;
-- temporary table
SELECT id FROM scratch;
-- unlogged table
SELECT id FROM cache;
-- system catalog
SELECT relname FROM pg_class;
-- ONLY
SELECT id FROM ONLY orders;
-- system column
SELECT id, xmin AS x FROM orders;
-- FOR UPDATE
SELECT id FROM orders FOR UPDATE;
