-- Changes about {percent} percent of the rows of every table but region. Of orders, parts and customers half of what
-- changes is updated, a quarter deleted and a quarter inserted; line items and part suppliers come and go with their
-- orders and parts, and some are updated. At least one supplier is updated, and one nation moves to another region.
-- Customers that are deleted have no orders; a deleted part leaves its line items behind.
CREATE TEMPORARY TABLE picked_orders ON COMMIT DROP AS
SELECT o_orderkey AS key, row_number() OVER () % 3 = 0 AS goes FROM orders TABLESAMPLE BERNOULLI (0.75 * {percent});
CREATE TEMPORARY TABLE picked_parts ON COMMIT DROP AS
SELECT p_partkey AS key, row_number() OVER () % 3 = 0 AS goes FROM part TABLESAMPLE BERNOULLI (0.75 * {percent});
CREATE TEMPORARY TABLE picked_lines ON COMMIT DROP AS
SELECT l_orderkey AS key, l_linenumber AS line FROM lineitem TABLESAMPLE BERNOULLI (0.5 * {percent});
CREATE TEMPORARY TABLE picked_offers ON COMMIT DROP AS
SELECT ps_partkey AS key, ps_suppkey AS supplier FROM partsupp TABLESAMPLE BERNOULLI (0.5 * {percent});
CREATE TEMPORARY TABLE picked_customers ON COMMIT DROP AS
SELECT c_custkey AS key FROM customer TABLESAMPLE BERNOULLI (0.5 * {percent});
CREATE TEMPORARY TABLE idle_customers ON COMMIT DROP AS
SELECT c_custkey AS key
FROM customer TABLESAMPLE BERNOULLI (0.75 * {percent})
WHERE NOT EXISTS (SELECT FROM orders WHERE o_custkey = c_custkey);
ANALYZE picked_orders, picked_parts, picked_lines, picked_offers, picked_customers, idle_customers;

UPDATE nation
SET n_regionkey = (n_regionkey + 1 + floor(random() * 4)::integer) % 5
WHERE n_nationkey = (SELECT floor(random() * 25)::integer);
UPDATE supplier
SET s_nationkey = floor(random() * 25)::integer,
    s_acctbal = generator.money(-999, 9999),
    s_comment = generator.comment(100)
WHERE s_suppkey IN (
    SELECT s_suppkey FROM supplier ORDER BY random() LIMIT (
        SELECT greatest(1, round(count(*) * {percent} / 100)) FROM supplier
    )
);
UPDATE orders
SET o_orderdate = o_orderdate + floor(random() * 7)::integer - 3,
    o_orderpriority = generator.one_of('{{1-URGENT,2-HIGH,3-MEDIUM,4-NOT SPECIFIED,5-LOW}}'),
    o_totalprice = o_totalprice + 1,
    o_comment = CASE WHEN random() < 0.01 THEN 'special deposits and requests' ELSE generator.comment(78) END
FROM picked_orders WHERE o_orderkey = key AND NOT goes;
UPDATE lineitem
SET l_quantity = drawn.quantity,
    l_extendedprice = drawn.quantity * generator.retail_price(l_partkey),
    l_discount = floor(random() * 11)::numeric / 100,
    l_commitdate = l_commitdate + floor(random() * 7)::integer - 3,
    l_shipmode = generator.one_of('{{REG AIR,AIR,RAIL,SHIP,TRUCK,MAIL,FOB}}')
FROM (SELECT *, 1 + floor(random() * 50)::integer AS quantity FROM picked_lines) AS drawn
WHERE l_orderkey = key AND l_linenumber = line;
UPDATE customer
SET c_acctbal = generator.money(-999, 9999),
    c_mktsegment = generator.one_of('{{AUTOMOBILE,BUILDING,FURNITURE,MACHINERY,HOUSEHOLD}}'),
    c_comment = generator.comment(116)
FROM picked_customers WHERE c_custkey = key;
UPDATE part
SET p_retailprice = p_retailprice + 1,
    p_size = 1 + floor(random() * 50)::integer,
    p_container = generator.container()
FROM picked_parts WHERE p_partkey = key AND NOT goes;
UPDATE partsupp
SET ps_availqty = 1 + floor(random() * 9999)::integer, ps_supplycost = generator.money(1, 1000)
FROM picked_offers WHERE ps_partkey = key AND ps_suppkey = supplier;

DELETE FROM lineitem USING picked_orders WHERE l_orderkey = key AND goes;
DELETE FROM orders USING picked_orders WHERE o_orderkey = key AND goes;
DELETE FROM customer USING idle_customers WHERE c_custkey = key;
DELETE FROM partsupp USING picked_parts WHERE ps_partkey = key AND goes;
DELETE FROM part USING picked_parts WHERE p_partkey = key AND goes;

INSERT INTO customer
SELECT added.*
FROM (SELECT max(c_custkey) AS last FROM customer) AS newest,
    generator.customers(last + 1, last + (SELECT count(*) FROM idle_customers)::integer) AS added;
INSERT INTO part
SELECT added.*
FROM (SELECT max(p_partkey) AS last FROM part) AS newest,
    generator.parts(last + 1, last + (SELECT count(*) FROM picked_parts WHERE goes)::integer) AS added;
INSERT INTO partsupp
SELECT added.*
FROM (
    SELECT p_partkey - (SELECT count(*) FROM picked_parts WHERE goes)::integer + 1 AS first, p_partkey AS last
    FROM part ORDER BY p_partkey DESC LIMIT 1
) AS newest, generator.offers(first, last) AS added;
SELECT generator.place_orders(
    (SELECT max(o_orderkey) + 1 FROM orders),
    (SELECT max(o_orderkey) + (SELECT count(*) FROM picked_orders WHERE goes) FROM orders)
);
