-- A scalar subquery is the one row of each key.
SELECT id, (SELECT r.v FROM r WHERE r.k = l.k) AS found FROM l;
-- = − Δscalar(new r) ⋈ new l
-- = Δrows(new l, new scalar(new r))
UPDATE r SET k = 2 WHERE id = 1;
-- + (1,)
-- + (2,)
-- + (3,5)
-- - (1,5)
-- - (2,5)
-- - (3,)
