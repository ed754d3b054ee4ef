"""Operators and calls that the parser does not know or would write as others, spelled so that it keeps them."""

import re

from pytrickle.plan.sql import keyword_calls

KNOWN = frozenset((
    "+", "-", "*", "/", "%", "=", "<>", "<", ">", "<=", ">=", "||", "~~", "!~~", "~~*", "!~~*", "~", "~*", "->", "->>",
    "#>", "#>>", "@>", "<@", "&&", "<<", ">>", "|", "&", "#", "@@", "@?", "?", "?|", "?&", "#-", "-|-", "&<", "&>",
    "<->", "?-", "=>",
))  # fmt: skip
# Quoted, these are plain calls; without a schema the parser would take them for SUBSTRING(... FROM ...) and the like.
CALLS = frozenset({'"extract"', '"overlay"', '"position"', '"substring"', '"trim"'})
# Without its quotes this would be bit(1).
TYPES = frozenset({'"bit"'})
# Calls that read a name where others have an argument; as a text it is an argument like any other.
NAMED = frozenset({"XMLELEMENT", "XMLPI"})
ROWS_FROM = "pgt_rows_from"
PREFIX = "pgt_prefix"
# Behind a parenthesis of its own stands each operator without a left operand; the parser keeps these three.
PREFIXED = r"""\((?![-+~] )(?:OPERATOR\((?:\w+|"(?:[^"]|"")*")\.[-+*/<>=~!@#%^&|`?]+\)|[-+*/<>=~!@#%^&|`?]+) """
BEGINNINGS = r"""\b(?:XMLELEMENT|XMLPI)\(NAME (?:\w+|"(?:[^"]|"")*")|\bROWS FROM\("""
PIECES = re.compile(BEGINNINGS + "|" + PREFIXED + r"""|'(?:[^']|'')*'|"(?:[^"]|"")*"|[-+*/<>=~!@#%^&|`?]+""")
WINDOWS = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\bOVER \((?P<name>\w+|"(?:[^"]|"")*")\)""")


def spelled_out(text: str) -> str:
    r'''Name the schema of such operators between two operands, and of such calls and types.

    In a canonical text whatever is of another schema than pg_catalog says so.

    >>> spelled_out("SELECT (a >>= b), (- c), '>>=', (a OPERATOR(public.|+|) b), (t !~ 'x')")
    "SELECT (a OPERATOR(pg_catalog.>>=) b), (- c), '>>=', (a OPERATOR(public.|+|) b), (t OPERATOR(pg_catalog.!~) 'x')"
    >>> spelled_out("SELECT (@ c), (OPERATOR(public.|+|) (|/ d)), count(*)")
    "SELECT pgt_prefix('@', c), pgt_prefix('OPERATOR(public.|+|)', pgt_prefix('|/', d)), count(*)"
    >>> spelled_out("""SELECT "substring"(t, 1), "substring".x, '1'::"bit" """)
    'SELECT pg_catalog."substring"(t, 1), "substring".x, \'1\'::pg_catalog."bit" '
    '''

    def spelled(match: re.Match[str]) -> str:
        piece, before, after = match.group(), text[: match.start()].rstrip()[-1:], text[match.end() : match.end() + 1]
        if (piece in CALLS and after == "(" and before != ".") or (piece in TYPES and before == ":"):
            return f"pg_catalog.{piece}"
        if piece[0] == "(":
            return f"{PREFIX}('{piece[1:-1]}', "
        if piece[0].isalpha():
            return _as_call(piece)
        if piece[0] in "'\"" or piece in KNOWN or before in {"", "(", ",", "."}:
            return piece
        return f"OPERATOR(pg_catalog.{piece})"

    return PIECES.sub(spelled, keyword_calls.as_calls(text))


def by_window_names(text: str) -> str:
    """Name windows without the parentheses that PostgreSQL prints where nothing is added: it is the same window.

    They would leave out its frame, but PostgreSQL refuses them around the name of a window that has one.

    >>> by_window_names("SELECT sum(a) OVER (w), ' OVER (w)', sum(a) OVER (w ROWS 1 PRECEDING) FROM t")
    "SELECT sum(a) OVER w, ' OVER (w)', sum(a) OVER (w ROWS 1 PRECEDING) FROM t"
    """
    return WINDOWS.sub(lambda match: f"OVER {match['name']}" if match["name"] else match.group(), text)


def _as_call(beginning: str) -> str:
    """Write the beginning of a construct as that of a call.

    >>> _as_call("ROWS FROM("), _as_call("XMLELEMENT(NAME foo"), _as_call('XMLPI(NAME "It"')
    ('pgt_rows_from(', "XMLELEMENT('foo'", "XMLPI('It'")
    """
    call, name = beginning.split("(", 1)
    if not name:
        return f"{ROWS_FROM}("
    bare = name.removeprefix("NAME ")
    bare = bare[1:-1].replace('""', '"') if bare.startswith('"') else bare
    return f"{call}('" + bare.replace("'", "''") + "'"


def called(name: str, arguments: list[str], first: str) -> str | None:
    """Write the construct that a call stands for, whose first argument is the text `first`."""
    if name == PREFIX:
        return f"({first} {arguments[1]})"
    if name == ROWS_FROM:
        return f"ROWS FROM({', '.join(arguments)})"
    if name in keyword_calls.CALLS:
        return keyword_calls.filled(name, first, arguments[1:])
    if name in NAMED:
        quoted = first.replace('"', '""')
        return f"{name}(" + ", ".join([f'NAME "{quoted}"', *arguments[1:]]) + ")"
    return None
