-- What a name that means nothing was probably meant to be.

CREATE OR REPLACE FUNCTION pgtrickle_private.pairs_of(name text) RETURNS text[]
    LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT array_agg(DISTINCT substr(lower(' ' || name || ' '), i, 2)) FROM generate_series(1, length(name) + 1) AS i
$$;
COMMENT ON FUNCTION pgtrickle_private.pairs_of(text) IS
    'The pairs of letters that follow each other in a name, its begin and its end included.';

CREATE OR REPLACE FUNCTION pgtrickle_private.did_you_mean(name text, known text[]) RETURNS text
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    WITH wanted AS (SELECT pairs_of(lower(left(name, 200))) AS pairs),
    compared AS (
        SELECT k, 2.0 * (SELECT count(*) FROM unnest(pairs_of(k)) AS p WHERE p = ANY (w.pairs))
            / NULLIF(cardinality(w.pairs) + cardinality(pairs_of(k)), 0) AS likeness
        FROM unnest(known) AS k, wanted AS w
        WHERE abs(length(k) - length(name)) <= 3 AND k <> name AND readable_text(k) = k
        LIMIT 1000)
    SELECT COALESCE((SELECT format('Did you mean %s? ', k) FROM compared WHERE likeness >= 0.5
                     ORDER BY likeness DESC, k LIMIT 1), '')
$$;
COMMENT ON FUNCTION pgtrickle_private.did_you_mean(text, text[]) IS
    'The sentence that asks whether the known name most like this one was meant, if at least half of their pairs of '
    'letters are the same; else nothing. Of the known names only those of about its length are looked at.';

CREATE OR REPLACE FUNCTION pgtrickle_private.known_stream_tables(with_schema boolean) RETURNS text[]
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN (SELECT array_agg(CASE WHEN with_schema THEN format('%I.%I', pgt_schema, pgt_name)
                             ELSE quote_ident(pgt_name) END)
            FROM pgt_stream_tables);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.known_stream_tables(boolean) IS
    'The names of all stream tables, with their schemas or without.';

CREATE OR REPLACE FUNCTION pgtrickle_private.known_groups() RETURNS text[]
    LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN (SELECT array_agg(group_name) FROM pgt_watermark_groups);
END
$$;
COMMENT ON FUNCTION pgtrickle_private.known_groups() IS 'The names of all watermark groups.';

CREATE OR REPLACE FUNCTION pgtrickle_private.known_tables(with_schema boolean) RETURNS text[]
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    RETURN (SELECT array_agg(CASE WHEN with_schema THEN format('%I.%I', n.nspname, c.relname)
                             ELSE quote_ident(c.relname) END)
            FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
            WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname !~ '^(pg_|pgtrickle|information_schema$)');
END
$$;
COMMENT ON FUNCTION pgtrickle_private.known_tables(boolean) IS
    'The names of all tables and views of users, with their schemas or without.';
