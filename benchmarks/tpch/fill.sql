SELECT setseed(0.5);
INSERT INTO region
SELECT key - 1, name, 'comment'
FROM unnest('{{AFRICA,AMERICA,ASIA,EUROPE,MIDDLE EAST}}'::text[]) WITH ORDINALITY AS known (name, key);
INSERT INTO nation
SELECT key - 1, name, region, 'comment'
FROM unnest(
    '{{ALGERIA,ARGENTINA,BRAZIL,CANADA,EGYPT,ETHIOPIA,FRANCE,GERMANY,INDIA,INDONESIA,IRAN,IRAQ,JAPAN,JORDAN,KENYA,
    MOROCCO,MOZAMBIQUE,PERU,CHINA,ROMANIA,SAUDI ARABIA,VIETNAM,RUSSIA,UNITED KINGDOM,UNITED STATES}}'::text[],
    '{{0,1,1,1,4,0,3,3,2,2,4,4,2,4,0,0,0,1,2,3,4,2,3,3,1}}'::integer[]
) WITH ORDINALITY AS known (name, region, key);
INSERT INTO supplier SELECT * FROM generator.suppliers(1, {suppliers});
INSERT INTO customer SELECT * FROM generator.customers(1, {customers});
INSERT INTO part SELECT * FROM generator.parts(1, {parts});
INSERT INTO partsupp SELECT * FROM generator.offers(1, {parts});
SELECT generator.place_orders(1, {orders});
