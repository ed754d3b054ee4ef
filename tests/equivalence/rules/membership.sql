-- IN has a partner or not.
SELECT id FROM l WHERE k IN (SELECT k FROM r);
-- = Δexists(new r) ⋈ new l
INSERT INTO r VALUES (3, 2, 9);
-- + (3)

-- NOT IN has three values: a NULL on the right lets no row through, but no row is taken away twice.
SELECT id FROM l WHERE id NOT IN (SELECT k FROM r);
-- = − Δexists(new r) ⋈ new l
-- = − Δexists(new r) ⋈ new l
-- = Δexists(new r) ⋈ new exists(new r) ⋈ new l
-- = old exists(new r) ⋈ Δexists(new r) ⋈ new l
INSERT INTO r VALUES (3, NULL, 9);
-- - (2)
