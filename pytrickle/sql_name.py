"""Names as SQL has them: what is shown of a name can be copied into a query."""

import re

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*", re.ASCII)
# Of PostgreSQL 18; earlier ones have some fewer, and take these in quotes as well.
_WORDS = """
    all analyse analyze and any array as asc asymmetric authorization between bigint binary bit boolean both case
    cast char character check coalesce collate collation column concurrently constraint create cross current_catalog
    current_date current_role current_schema current_time current_timestamp current_user dec decimal default
    deferrable desc distinct do else end except exists extract false fetch float for foreign freeze from full grant
    greatest group grouping having ilike in initially inner inout int integer intersect interval into is isnull join
    json json_array json_arrayagg json_exists json_object json_objectagg json_query json_scalar json_serialize
    json_table json_value lateral leading least left like limit localtime localtimestamp merge_action national
    natural nchar none normalize not notnull null nullif numeric offset on only or order out outer overlaps overlay
    placing position precision primary real references returning right row select session_user setof similar
    smallint some substring symmetric system_user table tablesample then time timestamp to trailing treat trim true
    union unique user using values varchar variadic verbose when where window with xmlattributes xmlconcat
    xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable
"""
_KEYWORDS = frozenset(_WORDS.split())


def sql_name(*parts: str) -> str:
    """Write a name with the schema or table that it is in, each part in quotes where PostgreSQL needs them.

    >>> sql_name("public", "orders"), sql_name("My Shop", "order"), sql_name('a"b')
    ('public.orders', '"My Shop"."order"', '"a""b"')
    """
    return ".".join(_quoted(part) for part in parts)


def sql_text(text: str) -> str:
    """Write a text, such as a name that a function takes, as a string of SQL.

    >>> print(sql_text("o'clock"))
    'o''clock'
    """
    return "'" + text.replace("'", "''") + "'"


def _quoted(name: str) -> str:
    if _PLAIN.fullmatch(name) and name not in _KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'
