-- key
SELECT k, count(*), sum(n) FROM folded GROUP BY k;

-- join
SELECT x.n, y.n AS m FROM folded x JOIN folded y ON x.k = y.k;

-- distinct
SELECT DISTINCT k FROM folded;

-- extrema
SELECT max(k), min(k) AS least, count(*) FROM folded;

-- ci_key
SELECT k, count(*), max(n) FROM ci GROUP BY k;

-- ci_join
SELECT x.n, y.n AS m FROM ci x JOIN ci y USING (k);

-- ci_filter
SELECT n FROM ci WHERE k = 'A' OR k LIKE 'X%';

-- ci_distinct
SELECT DISTINCT k FROM ci;
