-- The partitions that the change touches are computed before and after.
SELECT id, rank() OVER (PARTITION BY k ORDER BY v DESC) AS place FROM l;
-- = Δwindow(new l)
INSERT INTO l VALUES (4, 1, 15);
-- + (1,3)
-- + (4,2)
-- - (1,2)
