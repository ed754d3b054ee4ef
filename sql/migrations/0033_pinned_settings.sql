-- What else stable functions, casts and formats go by is kept with each stream table. Run once and never edited afterwards.

-- Nobody knows what the creators had set; what the database gives now is what the next refresh would have gone by.
UPDATE pgtrickle.pgt_stream_tables
SET session_settings = session_settings || jsonb_build_object(
    'lc_monetary', current_setting('lc_monetary'),
    'lc_numeric', current_setting('lc_numeric'),
    'lc_time', current_setting('lc_time'),
    'array_nulls', current_setting('array_nulls'),
    'default_text_search_config', current_setting('default_text_search_config'),
    'xmlbinary', current_setting('xmlbinary'),
    'xmloption', current_setting('xmloption'));
