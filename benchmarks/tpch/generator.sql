-- Functions that draw rows in the specification's distribution (4.2.3). Comments are cut from one text; order keys are
-- dense. The schema is dropped with everything else when the server ends.
CREATE SCHEMA generator;

CREATE FUNCTION generator.one_of(choices text[]) RETURNS text LANGUAGE sql VOLATILE
AS $$ SELECT choices[1 + floor(random() * cardinality(choices))::integer] $$;

CREATE FUNCTION generator.comment(longest integer) RETURNS text LANGUAGE sql VOLATILE
AS $$
SELECT substr(
    'carefully final packages sleep above the ironic deposits; furiously even accounts haggle blithely after the bold '
    'theodolites: quickly silent pinto beans nag along the slyly regular instructions. unusual foxes cajole against '
    'the pending platelets and express asymptotes wake among the dogged ideas, fluffily stealthy dependencies boost',
    1 + floor(random() * 200)::integer, (longest * (0.4 + 0.6 * random()))::integer
)
$$;

CREATE FUNCTION generator.money(lowest integer, highest integer) RETURNS numeric LANGUAGE sql VOLATILE
AS $$ SELECT round((lowest + random() * (highest - lowest))::numeric, 2) $$;

CREATE FUNCTION generator.phone(nation integer) RETURNS text LANGUAGE sql VOLATILE
AS $$ SELECT (nation + 10) || to_char(floor(random() * 1e10), 'FM"-"000"-"000"-"0000') $$;

CREATE FUNCTION generator.retail_price(part integer) RETURNS numeric LANGUAGE sql IMMUTABLE
AS $$ SELECT (90000 + (part / 10) % 20001 + 100 * (part % 1000)) / 100.00 $$;

-- The four suppliers of a part, numbered from 0.
CREATE FUNCTION generator.supplier_of(part integer, nth integer) RETURNS integer LANGUAGE sql IMMUTABLE
AS $$ SELECT (part + nth * ({suppliers} / 4) + (part - 1) / {suppliers}) % {suppliers} + 1 $$;

-- Two thirds of the customers have orders.
CREATE FUNCTION generator.buyer() RETURNS integer LANGUAGE sql VOLATILE
AS $$ SELECT 3 * floor(random() * ({customers} / 3))::integer + 1 + floor(random() * 2)::integer $$;

CREATE FUNCTION generator.suppliers(first integer, last integer) RETURNS SETOF supplier LANGUAGE sql VOLATILE
AS $$
SELECT
    key, 'Supplier#' || to_char(key, 'FM000000000'), generator.comment(40), nation, generator.phone(nation),
    generator.money(-999, 9999),
    CASE WHEN key % 2000 = 7 THEN 'Customer of late Complaints' ELSE generator.comment(100) END
FROM (SELECT key, floor(random() * 25)::integer AS nation FROM generate_series(first, last) AS key) AS drawn
$$;

CREATE FUNCTION generator.customers(first integer, last integer) RETURNS SETOF customer LANGUAGE sql VOLATILE
AS $$
SELECT
    key, 'Customer#' || to_char(key, 'FM000000000'), generator.comment(40), nation, generator.phone(nation),
    generator.money(-999, 9999),
    generator.one_of('{{AUTOMOBILE,BUILDING,FURNITURE,MACHINERY,HOUSEHOLD}}'), generator.comment(116)
FROM (SELECT key, floor(random() * 25)::integer AS nation FROM generate_series(first, last) AS key) AS drawn
$$;

CREATE FUNCTION generator.colour() RETURNS text LANGUAGE sql VOLATILE
AS $$
SELECT generator.one_of(
    '{{almond,antique,aquamarine,azure,beige,bisque,black,blanched,blue,blush,brown,burlywood,burnished,chartreuse,
    chiffon,chocolate,coral,cornflower,cornsilk,cream,cyan,dark,deep,dim,dodger,drab,firebrick,floral,forest,frosted,
    gainsboro,ghost,goldenrod,green,grey,honeydew,hot,indian,ivory,khaki,lace,lavender,lawn,lemon,light,lime,linen,
    magenta,maroon,medium,metallic,midnight,mint,misty,moccasin,navajo,navy,olive,orange,orchid,pale,papaya,peach,
    peru,pink,plum,powder,puff,purple,red,rose,rosy,royal,saddle,salmon,sandy,seashell,sienna,sky,slate,smoke,snow,
    spring,steel,tan,thistle,tomato,turquoise,violet,wheat,white,yellow}}'
)
$$;

CREATE FUNCTION generator.container() RETURNS text LANGUAGE sql VOLATILE
AS $$
SELECT generator.one_of('{{SM,LG,MED,JUMBO,WRAP}}') || ' '
    || generator.one_of('{{CASE,BOX,BAG,JAR,PKG,PACK,CAN,DRUM}}')
$$;

CREATE FUNCTION generator.parts(first integer, last integer) RETURNS SETOF part LANGUAGE sql VOLATILE
AS $$
SELECT
    key,
    concat_ws(
        ' ', generator.colour(), generator.colour(), generator.colour(), generator.colour(), generator.colour()
    )::varchar(55),
    'Manufacturer#' || maker, 'Brand#' || maker || 1 + floor(random() * 5)::integer,
    generator.one_of('{{STANDARD,SMALL,MEDIUM,LARGE,ECONOMY,PROMO}}') || ' '
    || generator.one_of('{{ANODIZED,BURNISHED,PLATED,POLISHED,BRUSHED}}') || ' '
    || generator.one_of('{{TIN,NICKEL,BRASS,STEEL,COPPER}}'),
    1 + floor(random() * 50)::integer, generator.container(), generator.retail_price(key), generator.comment(22)
FROM (SELECT key, 1 + floor(random() * 5)::integer AS maker FROM generate_series(first, last) AS key) AS drawn
$$;

-- What the four suppliers of each part ask for it.
CREATE FUNCTION generator.offers(first integer, last integer) RETURNS SETOF partsupp LANGUAGE sql VOLATILE
AS $$
SELECT
    part, generator.supplier_of(part, nth), 1 + floor(random() * 9999)::integer, generator.money(1, 1000),
    generator.comment(198)
FROM generate_series(first, last) AS part CROSS JOIN generate_series(0, 3) AS nth
$$;

CREATE TEMPORARY TABLE placed (orderkey bigint, custkey integer, orderdate date, lines integer);

-- Adds orders and their line items.
CREATE FUNCTION generator.place_orders(first bigint, last bigint) RETURNS void LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    TRUNCATE placed;
    INSERT INTO placed
    SELECT
        key, generator.buyer(), date '1992-01-01' + floor(random() * 2406)::integer, 1 + floor(random() * 7)::integer
    FROM generate_series(first, last) AS key;
    ANALYZE placed;

    INSERT INTO lineitem
    SELECT
        orderkey, partkey, generator.supplier_of(partkey, supplier), line, quantity,
        quantity * generator.retail_price(partkey), discount, tax,
        CASE WHEN receiptdate > '1995-06-17' THEN 'N' WHEN random() < 0.5 THEN 'R' ELSE 'A' END,
        CASE WHEN shipdate > '1995-06-17' THEN 'O' ELSE 'F' END,
        shipdate, commitdate, receiptdate,
        generator.one_of('{{DELIVER IN PERSON,COLLECT COD,NONE,TAKE BACK RETURN}}'),
        generator.one_of('{{REG AIR,AIR,RAIL,SHIP,TRUCK,MAIL,FOB}}'), generator.comment(43)
    FROM (
        SELECT *, shipdate + 1 + floor(random() * 30)::integer AS receiptdate
        FROM (
            SELECT
                orderkey, line,
                1 + floor(random() * {parts})::integer AS partkey,
                floor(random() * 4)::integer AS supplier,
                1 + floor(random() * 50)::integer AS quantity,
                floor(random() * 11)::numeric / 100 AS discount,
                floor(random() * 9)::numeric / 100 AS tax,
                orderdate + 1 + floor(random() * 121)::integer AS shipdate,
                orderdate + 30 + floor(random() * 61)::integer AS commitdate
            FROM placed CROSS JOIN LATERAL generate_series(1, lines) AS line
        ) AS shipped
    ) AS received;

    INSERT INTO orders
    SELECT
        orderkey, custkey, CASE WHEN open = 0 THEN 'F' WHEN open = lines THEN 'O' ELSE 'P' END, total, orderdate,
        generator.one_of('{{1-URGENT,2-HIGH,3-MEDIUM,4-NOT SPECIFIED,5-LOW}}'),
        'Clerk#' || to_char(floor(random() * 1000), 'FM000000000'), 0,
        CASE WHEN random() < 0.01 THEN 'special deposits and requests' ELSE generator.comment(78) END
    FROM placed
    JOIN (
        SELECT
            l_orderkey,
            count(*) FILTER (WHERE l_linestatus = 'O') AS open,
            round(sum(l_extendedprice * (1 + l_tax) * (1 - l_discount)), 2) AS total
        FROM lineitem
        WHERE l_orderkey >= first
        GROUP BY l_orderkey
    ) AS sums ON l_orderkey = orderkey;
END
$$;
