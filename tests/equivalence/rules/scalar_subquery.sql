-- An aggregate without a row around it is one row, whatever it finds.
SELECT id FROM l WHERE v > (SELECT avg(v) FROM l);
-- = Δaggregate(new l) ⋈ new l
-- = old aggregate(new l) ⋈ Δl
INSERT INTO l VALUES (4, 2, 100);
-- + (4)
-- - (3)
