-- What may fail, as this subquery does when it has two rows, is one leaf with all that it reads: d(R + S) = dR + dS.
SELECT id, (SELECT r.v FROM r WHERE r.k = l.k) AS found FROM l;
-- = − Δscalar(new r) ⋈ new l
-- = Δrows(new l, new scalar(new r))
DELETE FROM r WHERE id = 1;
-- + (1,)
-- + (2,)
-- - (1,5)
-- - (2,5)
