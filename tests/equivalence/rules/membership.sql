-- IN has a partner or not.
SELECT id FROM l WHERE k IN (SELECT k FROM r);
-- = Δexists(new r) ⋈ new l
INSERT INTO r VALUES (3, 2, 9);
-- + (3)

-- NOT IN has three values: a NULL on the right lets no row through.
SELECT id FROM l WHERE id NOT IN (SELECT k FROM r);
-- = Δrows(…)
INSERT INTO r VALUES (3, NULL, 9);
-- - (2)
