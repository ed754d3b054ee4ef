-- LIMIT at the top shows the first of the rows that are kept below it.
SELECT id, v FROM l ORDER BY v DESC LIMIT 2;
-- = Δl
INSERT INTO l VALUES (4, 2, 25);
-- + (4,25)
-- - (2,20)
