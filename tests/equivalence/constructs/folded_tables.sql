-- Keys whose equality ignores case.
CREATE EXTENSION citext;
CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE TABLE folded (k text COLLATE nocase, n int);
CREATE TABLE ci (k citext, n int);
CREATE INDEX ON ci (k);
