-- Asking for a refresh from SQL.

CREATE OR REPLACE FUNCTION pgtrickle.refresh_stream_table(name text,
    search_path text DEFAULT current_setting('search_path')) RETURNS bigint
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
DECLARE
    id CONSTANT integer := stream_table_id(name, search_path);
    request bigint;
BEGIN
    INSERT INTO pgt_refresh_requests (pgt_id) VALUES (id) RETURNING request_id INTO request;
    PERFORM tell('pgtrickle_refresh', jsonb_build_object('pgt_id', id, 'request_id', request));
    RETURN request;
END
$$;
COMMENT ON FUNCTION pgtrickle.refresh_stream_table(text, text) IS
    'Asks a running refresher to refresh the stream table at once; returns the number of the request. It is served '
    'after the caller commits. '
    'In a transaction that is to be prepared: SET LOCAL pgtrickle.notify = off, and it is found within the poll '
    'interval.';
