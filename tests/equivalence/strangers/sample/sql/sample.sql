-- Queries of every kind of outcome, and statements that are none; played by test_strangers.py.
\set ON_ERROR_STOP 0
BEGIN;
SELECT depot, sum(weight) FROM parcels GROUP BY depot; -- a semicolon; in a comment
SELECT 'a;b' AS text, * FROM parcels WHERE depot <> 'it''s';
COMMIT;
CREATE TEMP TABLE depots AS SELECT DISTINCT depot, $$x;y$$ AS note FROM parcels;
SELECT p.id, p.depot, d.depot FROM parcels p LEFT JOIN depots d ON d.depot = p.depot;
SELECT id, row_number() OVER (PARTITION BY depot) FROM parcels;
SELECT random() < 2 FROM parcels;
SELECT * FROM parcels WHERE missing = 1;
EXPLAIN SELECT 1;
INSERT INTO depots VALUES ('east', NULL) \; DROP TABLE nothing;
TABLE depots \gset
