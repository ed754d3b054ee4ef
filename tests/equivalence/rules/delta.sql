-- A source's delta is its change.
SELECT id, v FROM l;
-- = Δl
INSERT INTO l VALUES (4, 2, 40);
DELETE FROM l WHERE id = 1;
-- + (4,40)
-- - (1,10)

-- A filter and a projection are linear: they apply to the delta.
SELECT id, v * 2 AS twice FROM l WHERE v > 15;
-- = Δl
UPDATE l SET v = v + 5;
-- + (2,50)
-- + (3,70)
-- - (2,40)
-- - (3,60)

-- A join is bilinear: dL * NEW(R) + OLD(L) * dR.
SELECT l.id, r.id AS other FROM l JOIN r ON l.k = r.k;
-- = Δl ⋈ new r
-- = old l ⋈ Δr
INSERT INTO l VALUES (4, 3, 40);
UPDATE r SET k = 2 WHERE id = 1;
-- + (3,1)
-- + (4,2)
-- - (1,1)
-- - (2,1)

-- The terms of a sum are the sum of the terms.
SELECT k FROM l UNION ALL SELECT k FROM r;
-- = Δl
-- = Δr
DELETE FROM l WHERE id = 3;
INSERT INTO r VALUES (3, 1, 9);
-- + (1)
-- - (2)
