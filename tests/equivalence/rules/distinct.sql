-- Below a join, the rows that the change touches are told apart anew, before and after.
SELECT r.id FROM r JOIN (SELECT DISTINCT k FROM l) AS d ON d.k = r.k;
-- = Δdistinct(new l) ⋈ new r
DELETE FROM l WHERE id IN (1, 2);
INSERT INTO l VALUES (4, 3, 40), (5, 3, 50);
-- + (2)
-- - (1)
