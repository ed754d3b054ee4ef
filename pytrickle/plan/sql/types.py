"""Which types' equal values are the same value, and which fit into an index."""

import re

from pytrickle.catalog.definition import Definition

EXACT = (
    "smallint", "integer", "bigint", "numeric(", "boolean", "date", "timestamp", "time without", "uuid", "bytea", "oid",
)  # fmt: skip
TEXTUAL = ("text", "character varying", "character(", "name")
NAMES = (
    "regclass", "regcollation", "regconfig", "regdictionary", "regnamespace", "regoper", "regoperator", "regproc",
    "regprocedure", "regrole", "regtype",
)  # fmt: skip
SHORT = ("smallint", "integer", "bigint", "numeric", "date", "time", "uuid", "boolean", "interval", "oid", "inet")
# PostgreSQL allows so many columns in an index.
MOST_INDEXED = 32

FAMILIES = (
    ("smallint", "integer", "bigint", "numeric", "real", "double precision"),
    ("text", "character varying", "character", "bpchar", "name"),
    ("date", "timestamp"),
)


def casts_within_family(source: str, target: str) -> bool:
    """Whether the cast from one type to another comes with PostgreSQL, which keeps it: no value becomes NULL by it.

    Any other cast may be somebody's own function, and so may become the cast of a text to a number.

    >>> casts_within_family("integer", "numeric(10,2)"), casts_within_family("jsonb", "integer")
    (True, False)
    """
    families = (family for family in FAMILIES if source.startswith(family) and target.startswith(family))
    return any(families) and not (_is_made(source) or _is_made(target))


def hashes_as_it_compares(type_name: str, definition: Definition) -> bool:
    """Whether equal values of a type have one hash.

    Where a collation holds different texts for equal, PostgreSQL hashes the blanks with which texts are padded.
    """
    padded = type_name.startswith(("character(", "bpchar")) or _is_made(type_name)
    return definition.bytewise or not padded


def is_exact(type_name: str, definition: Definition) -> bool:
    """Whether equal values of a type are the same text, so that it does not matter which of them a group keeps."""
    return has_one_text(type_name) and (definition.bytewise or not type_name.startswith(TEXTUAL))


def has_one_text(type_name: str) -> bool:
    """Whether equal values of a type are the same text, unless a collation says that different texts are equal."""
    return type_name.startswith(EXACT + TEXTUAL) and not _is_made(type_name)


def all_exact(types: tuple[str, ...], definition: Definition) -> bool:
    """Whether that holds for all of some types."""
    return all(is_exact(type_name, definition) for type_name in types)


def base_of(type_name: str) -> str:
    """Return a type's name without what is said of its size.

    >>> base_of("numeric(10,2)"), base_of("timestamp(3) without time zone")
    ('numeric', 'timestamp without time zone')
    """
    return re.sub(r"\(.*?\)", "", type_name)


def is_short(type_name: str) -> bool:
    """Whether every value of a type fits into a btree entry, which holds some 2,700 bytes."""
    return type_name.startswith(SHORT) and not _is_made(type_name)


def is_collatable(type_name: str) -> bool:
    """Whether a collation may decide which values of a type are equal; of types unknown here it may."""
    return type_name.startswith((*TEXTUAL, "character", "bpchar", '"char"')) or _is_made(type_name)


def as_number(type_name: str) -> str | None:
    """Return the type of the numbers of what a type names, which are read as its values in every search_path.

    >>> as_number("regclass"), as_number("regtype[]"), as_number("text")
    ('oid', 'oid[]', None)
    """
    return f"oid{type_name[len(base) :]}" if (base := type_name.removesuffix("[]")) in NAMES else None


def is_moment(type_name: str) -> bool:
    """Whether a type is a date or a timestamp."""
    return type_name.startswith(("date", "timestamp"))


def mixes_time_zones(definition: Definition) -> bool:
    """Whether a query may compare moments with a time zone to moments without one."""
    columns = [column.type_name for source in definition.sources for column in source.columns]
    texts = (definition.text, *(view.text for view in definition.views))
    zoned = any("with time zone" in found for found in (*columns, *texts))
    plain = any(is_moment(name) and "with time zone" not in name for name in columns)
    return zoned and (plain or any("::date" in text or "without time zone" in text for text in texts))


def _is_made(type_name: str) -> bool:
    """Whether a type is made of others: an array, or a user's own, which is printed with its schema."""
    return type_name.endswith("]") or "." in type_name
