-- The first row of each key that the change touches is found before and after.
SELECT DISTINCT ON (k) k, id, v FROM l ORDER BY k, v DESC;
-- = Δdistinct on(new l)
INSERT INTO l VALUES (4, 1, 15), (5, 2, 35);
-- + (2,5,35)
-- - (2,3,30)
