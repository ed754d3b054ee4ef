-- What the queries beside this file read.
CREATE TABLE a (id int PRIMARY KEY, k int, v numeric, t text, "select" date, w numeric(8,2), s smallint, b bigint);
CREATE TABLE b (id int, k bigint, v numeric, "wei""rd" text, d timestamptz, i interval);
CREATE TABLE keyless (k int, c char(4), f float8, flag boolean, u uuid);
CREATE TABLE parent (k int, region text) PARTITION BY LIST (region);
CREATE TABLE parent_x PARTITION OF parent FOR VALUES IN ('x');
CREATE TABLE parent_rest PARTITION OF parent DEFAULT;
CREATE INDEX ON a (k);
CREATE INDEX ON b (k);
CREATE VIEW simple AS SELECT a.id, a.k, b.v FROM a JOIN b ON a.k = b.k WHERE a.v IS NOT NULL;
CREATE VIEW nested AS SELECT s.k, count(*) AS n FROM simple AS s GROUP BY s.k;
CREATE AGGREGATE joined(text) (sfunc = textcat, stype = text, initcond = '');
CREATE VIEW joined_texts AS SELECT k, joined(t ORDER BY id) AS c FROM a GROUP BY k;
CREATE FUNCTION id_and_key(a) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1.id + $1.k';
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE DOMAIN chosen AS mood;
CREATE DOMAIN chosen_again AS chosen;
CREATE DOMAIN span AS int4range;
CREATE TABLE chosen_ones (id int, m chosen_again, s span, l chosen[]);
