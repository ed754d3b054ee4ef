-- LEFT JOIN: the matches, all rows of the left, less those that have a partner.
SELECT l.id, r.v FROM l LEFT JOIN r ON r.k = l.k;
-- = old l ⋈ Δr
-- = − Δexists(new r) ⋈ new l
UPDATE r SET k = 2 WHERE id = 1;
-- + (1,)
-- + (2,)
-- + (3,5)
-- - (1,5)
-- - (2,5)
-- - (3,)
