-- At the top of a query the delta of the rows becomes increments of what each group keeps.
SELECT k, count(*) AS n, sum(v) AS total FROM l GROUP BY k;
-- = Δl
INSERT INTO l VALUES (4, 1, 40);
DELETE FROM l WHERE id = 3;
-- + (1,3,70)
-- - (1,2,30)
-- - (2,1,30)

-- Without GROUP BY there is one row, even over no rows.
SELECT sum(v) AS total FROM l;
-- = Δl
DELETE FROM l;
-- + ()
-- - (60)
