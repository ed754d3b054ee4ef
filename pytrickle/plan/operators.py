"""Operators and calls that the parser does not know or would write as others, spelled so that it keeps them."""

import re

KNOWN = frozenset((
    "+", "-", "*", "/", "%", "=", "<>", "<", ">", "<=", ">=", "||", "~~", "!~~", "~~*", "!~~*", "~", "~*", "->", "->>",
    "#>", "#>>", "@>", "<@", "&&", "<<", ">>", "|", "&", "#", "@@", "@?", "?", "?|", "?&", "#-", "-|-", "&<", "&>",
    "<->", "?-", "=>",
))  # fmt: skip
# Quoted, these are plain calls; without a schema the parser would take them for SUBSTRING(... FROM ...) and the like.
CALLS = frozenset({'"extract"', '"overlay"', '"position"', '"substring"', '"trim"'})
# Without its quotes this would be bit(1).
TYPES = frozenset({'"bit"'})
PIECES = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|[-+*/<>=~!@#%^&|`?]+""")


def spelled_out(text: str) -> str:
    r'''Name the schema of such operators between two operands, and of such calls and types.

    In a canonical text whatever is of another schema than pg_catalog says so.

    >>> spelled_out("SELECT (a >>= b), (@ c), '>>=', (a OPERATOR(public.|+|) b), (t !~ 'x')")
    "SELECT (a OPERATOR(pg_catalog.>>=) b), (@ c), '>>=', (a OPERATOR(public.|+|) b), (t OPERATOR(pg_catalog.!~) 'x')"
    >>> spelled_out("""SELECT "substring"(t, 1), "substring".x, '1'::"bit" """)
    'SELECT pg_catalog."substring"(t, 1), "substring".x, \'1\'::pg_catalog."bit" '
    '''

    def spelled(match: re.Match[str]) -> str:
        piece, before, after = match.group(), text[: match.start()].rstrip()[-1:], text[match.end() : match.end() + 1]
        if (piece in CALLS and after == "(" and before != ".") or (piece in TYPES and before == ":"):
            return f"pg_catalog.{piece}"
        if piece[0] in "'\"" or piece in KNOWN or before in {"", "(", ",", "."}:
            return piece
        return f"OPERATOR(pg_catalog.{piece})"

    return PIECES.sub(spelled, text)
