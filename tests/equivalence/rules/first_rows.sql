-- LIMIT below a join has no keys: any change has it computed before and after.
SELECT r.id, f.id AS first FROM r JOIN (SELECT id, k FROM l ORDER BY v LIMIT 1) AS f ON f.k = r.k;
-- = Δlimit(new l) ⋈ new r
INSERT INTO l VALUES (4, 3, 5);
-- + (2,4)
-- - (1,1)
