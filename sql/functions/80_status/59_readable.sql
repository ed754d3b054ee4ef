-- What quotes rows is shown to those who may read them all. Views, as within one current_user is whoever reads it.

CREATE OR REPLACE VIEW pgtrickle.pgt_readable_late_changes WITH (security_barrier) AS
SELECT pg_catalog.format('%I.%I', t.pgt_schema, t.pgt_name) AS stream_table, l.*
FROM pgtrickle.pgt_late_changes AS l JOIN pgtrickle.pgt_stream_tables AS t USING (pgt_id)
WHERE t.pgt_id = ANY (ARRAY(SELECT s.pgt_id FROM pgtrickle.pgt_stream_tables AS s
    WHERE pgtrickle_private.reads_all(current_user, s.pgt_relid)));
COMMENT ON VIEW pgtrickle.pgt_readable_late_changes IS
    'The ledger of late changes, of the stream tables of which the reader may read every row.';

CREATE OR REPLACE VIEW pgtrickle.pgt_readable_tables WITH (security_barrier) AS
SELECT t.pgt_id FROM pgtrickle.pgt_stream_tables AS t
WHERE pg_catalog.pg_has_role(current_user, pgtrickle_private.catalog_owner(), 'USAGE') OR t.pgt_id <> ALL (ARRAY(
    WITH RECURSIVE below(pgt_id, relid) AS (
        SELECT d.pgt_id, d.source_relid FROM pgtrickle.pgt_dependencies AS d
        UNION
        SELECT b.pgt_id, d.source_relid
        FROM below AS b JOIN pgtrickle.pgt_stream_tables AS u ON u.pgt_relid = b.relid
            JOIN pgtrickle.pgt_dependencies AS d ON d.pgt_id = u.pgt_id)
    SELECT b.pgt_id FROM below AS b
    WHERE b.relid IN (SELECT r.relid FROM (SELECT DISTINCT relid FROM below) AS r
        WHERE NOT pgtrickle_private.reads_all(current_user, r.relid))));
COMMENT ON VIEW pgtrickle.pgt_readable_tables IS
    'The stream tables of whose sources, at any depth, the reader may read every row.';

CREATE OR REPLACE VIEW pgtrickle.pgt_readable_errors WITH (security_barrier) AS
SELECT t.pgt_id, t.last_error, t.planner_defect FROM pgtrickle.pgt_stream_tables AS t
WHERE (t.last_error IS NOT NULL OR t.planner_defect IS NOT NULL)
    AND t.pgt_id IN (SELECT r.pgt_id FROM pgtrickle.pgt_readable_tables AS r);
COMMENT ON VIEW pgtrickle.pgt_readable_errors IS
    'What the last refreshes failed with, and what the planner stumbled over, for those who may read every row of the '
    'sources.';

CREATE OR REPLACE VIEW pgtrickle.pgt_readable_history WITH (security_barrier) AS
SELECT h.refresh_id, h.error FROM pgtrickle.pgt_refresh_history AS h
WHERE h.error IS NOT NULL AND h.pgt_id IN (SELECT r.pgt_id FROM pgtrickle.pgt_readable_tables AS r);
COMMENT ON VIEW pgtrickle.pgt_readable_history IS
    'What refreshes failed with, for those who may read every row of the sources.';

CREATE OR REPLACE FUNCTION pgtrickle_private.without_values(error text, sqlstate text) RETURNS text
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT CASE WHEN error IS NOT NULL THEN
        COALESCE(sqlstate, 'SQLSTATE unknown') || '; who may read all its sources sees the message' END
$$;
COMMENT ON FUNCTION pgtrickle_private.without_values(text, text) IS
    'What is said of an error to those who may not see the rows that it may quote.';
