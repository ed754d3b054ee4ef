-- The cluster in which cuts were taken is known without stream tables, too. Run once and never edited afterwards.

CREATE TABLE pgtrickle.pgt_clusters (
    system_identifier bigint PRIMARY KEY
);
COMMENT ON TABLE pgtrickle.pgt_clusters IS
    'The cluster in which the cuts of watermarks are valid. Restored from a dump, the row is that of another one.';
COMMENT ON COLUMN pgtrickle.pgt_clusters.system_identifier IS 'As pg_control_system() has it.';
INSERT INTO pgtrickle.pgt_clusters (system_identifier)
SELECT c.system_identifier FROM pg_catalog.pg_control_system() AS c;
