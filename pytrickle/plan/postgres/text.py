"""How values travel as text: a cast where that loses nothing, else the output function of their type."""

CAST = "CAST({value} AS text)"
# Whether the value itself is NULL: a composite value IS NULL already when all of its columns are.
OUTPUT = "CASE WHEN ({value}) IS DISTINCT FROM NULL THEN pg_catalog.format('%s', {value}) END"


def cast_may_lose(type_name: str) -> bool:
    """Whether a cast of a type to text may lose something: bpchar's drops trailing blanks, a user's does anything.

    Types that do not come with PostgreSQL are printed with their schema. The padding of character(n) comes back when
    its text is read as character(n) again.

    >>> [cast_may_lose(name) for name in ("bpchar", "public.mood[]", "character(4)", "timestamp with time zone")]
    [True, True, False, False]
    """
    return type_name == "bpchar" or "." in type_name


def as_text(sql: str, cast_loses: bool) -> str:
    """Write an expression's value as text from which its type's input function reads the same value.

    Where a cast loses something, the output function is called, which is slower.
    """
    return (OUTPUT if cast_loses else CAST).format(value=sql)
