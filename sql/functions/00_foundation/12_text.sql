-- Text of a database in the encoding SQL_ASCII, in which any bytes are one: here all text is read as UTF-8.

CREATE OR REPLACE FUNCTION pgtrickle_private.readable_text(value text) RETURNS text
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
        SET standard_conforming_strings = on
AS $$
BEGIN
    IF getdatabaseencoding() <> 'SQL_ASCII' OR value !~ '[\x80-\xff]' THEN
        RETURN value;
    END IF;
    -- Here a regular expression sees bytes. Of both alternatives it takes the one that matches more of them.
    RETURN (
        SELECT string_agg(CASE WHEN m[1] ~ '^[\x80-\xff]$' THEN chr(239) || chr(191) || chr(189) ELSE m[1] END, ''
            ORDER BY i)
        FROM regexp_matches(value, '((?:[\x01-\x7f]|[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]'
            || '|[\xe1-\xec\xee\xef][\x80-\xbf][\x80-\xbf]|\xed[\x80-\x9f][\x80-\xbf]'
            || '|\xf0[\x90-\xbf][\x80-\xbf][\x80-\xbf]|[\xf1-\xf3][\x80-\xbf][\x80-\xbf][\x80-\xbf]'
            || '|\xf4[\x80-\x8f][\x80-\xbf][\x80-\xbf])+|.)', 'g') WITH ORDINALITY AS f(m, i));
END
$$;
COMMENT ON FUNCTION pgtrickle_private.readable_text(text) IS
    'A text with the replacement character U+FFFD in place of each byte that is no UTF-8; only a database in the '
    'encoding SQL_ASCII can have such.';

CREATE OR REPLACE FUNCTION pgtrickle_private.readable_texts(texts text[]) RETURNS text[]
    LANGUAGE sql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
    SELECT CASE WHEN texts IS NOT NULL
        THEN ARRAY(SELECT readable_text(t) FROM unnest(texts) WITH ORDINALITY AS u(t, i) ORDER BY i) END
$$;
COMMENT ON FUNCTION pgtrickle_private.readable_texts(text[]) IS 'Texts, each as readable_text() gives it.';

CREATE OR REPLACE FUNCTION pgtrickle_private.refuse_unreadable(sentence text) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF sentence IS NOT NULL THEN
        RAISE EXCEPTION USING MESSAGE = sentence, ERRCODE = '0A000', CONSTRAINT = 'query_refused',
            HINT = 'All names and queries are read as UTF-8: rename what is called so, or write the query in UTF-8.';
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.refuse_unreadable(text) IS
    'Error 0A000 with a sentence that says what has bytes which are no UTF-8; nothing for NULL.';

CREATE OR REPLACE FUNCTION pgtrickle_private.refuse_unreadable(what text, value text) RETURNS void
    LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pgtrickle, pgtrickle_private, pg_temp
AS $$
BEGIN
    IF readable_text(value) <> value THEN
        PERFORM refuse_unreadable(format('%s has bytes that are no UTF-8: %s', what, left(readable_text(value), 200)));
    END IF;
END
$$;
COMMENT ON FUNCTION pgtrickle_private.refuse_unreadable(text, text) IS
    'Error 0A000 for a text that has bytes which are no UTF-8.';
