-- LATERAL is computed for each row to its left.
SELECT l.id, e.n FROM l, LATERAL generate_series(1, l.k) AS e (n);
-- = Δl
UPDATE l SET k = 2 WHERE id = 1;
-- + (1,2)
