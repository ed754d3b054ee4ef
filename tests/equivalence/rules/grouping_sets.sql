-- Every grouping set is a grouping of its own, and their groups are added.
SELECT k, count(*) AS n FROM l GROUP BY ROLLUP (k);
-- = Δaggregate(new l)
-- = Δaggregate(new l)
DELETE FROM l WHERE id = 3;
-- + (,2)
-- - (,3)
-- - (2,1)
