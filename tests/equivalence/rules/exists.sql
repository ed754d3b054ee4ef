-- A key that gains its first row lets rows in, one that loses its last takes them away.
SELECT id FROM l WHERE EXISTS (SELECT FROM r WHERE r.k = l.k);
-- = Δexists(new r) ⋈ new l
UPDATE r SET k = 2 WHERE id = 1;
-- + (3)
-- - (1)
-- - (2)

-- NOT EXISTS shows all rows less those that have a partner.
SELECT id FROM l WHERE NOT EXISTS (SELECT FROM r WHERE r.k = l.k);
-- = − Δexists(new r) ⋈ new l
INSERT INTO r VALUES (3, 2, 9);
DELETE FROM r WHERE id = 1;
-- + (1)
-- + (2)
-- - (3)
