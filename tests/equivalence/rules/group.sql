-- Below a join, the groups that the change touches are computed before and after.
SELECT r.id, g.total FROM r JOIN (SELECT k, sum(v) AS total FROM l GROUP BY k) AS g ON g.k = r.k;
-- = Δaggregate(new l) ⋈ new r
INSERT INTO l VALUES (4, 1, 40), (5, 3, 50);
-- + (1,70)
-- + (2,50)
-- - (1,30)
