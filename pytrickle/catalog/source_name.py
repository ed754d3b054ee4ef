"""A source by the name that its user gives it: SQL that asks whether another one was meant where there is none."""

SOURCE = "pgtrickle_private.source_named(%s, pg_catalog.current_setting('search_path'))"
