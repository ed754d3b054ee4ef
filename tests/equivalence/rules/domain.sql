-- A correlated subquery that no equality ties is computed for the values of the rows around it.
SELECT id, (SELECT count(*) FROM r WHERE r.v < l.v - 5) AS n FROM l;
-- = Δaggregate(new domain(new l), new r) ⋈ new l
-- = old aggregate(new domain(new l), new r) ⋈ Δl
-- = Δl
-- = − Δaggregate(new domain(new l), new r) ⋈ new l
-- = − old aggregate(new domain(new l), new r) ⋈ Δl
INSERT INTO l VALUES (4, 2, 12);
UPDATE r SET v = 20 WHERE id = 1;
-- + (2,1)
-- + (4,0)
-- - (2,2)
