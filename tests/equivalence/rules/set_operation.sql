-- What EXCEPT shows of a row follows from how often each side has it.
SELECT k FROM l EXCEPT SELECT k FROM r;
-- = Δexcept(new l, new r)
DELETE FROM r WHERE id = 1;
INSERT INTO r VALUES (3, 2, 9);
-- + (1)
-- - (2)

-- INTERSECT ALL shows a row as often as the side that has it less often.
SELECT k FROM l INTERSECT ALL SELECT k FROM r;
-- = Δintersect all(new l, new r)
INSERT INTO r VALUES (3, 1, 9), (4, 1, 9);
-- + (1)
