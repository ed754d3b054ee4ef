"""Calls with keywords between their arguments, which the parser does not know: their text with gaps, and what fills it.

Only a keyword is upper case in PostgreSQL's text; names are not, or stand in quotes.
"""

import re

from pytrickle.plan.sql import json_calls

# Stands in the text where an expression was; no text of PostgreSQL's holds it.
GAP = "\x1f"
# The keywords between the arguments of each; XMLTABLE has its expressions in parentheses.
KEYWORDS = {
    "SUBSTRING": frozenset({"SIMILAR", "ESCAPE"}),
    "XMLEXISTS": frozenset({"PASSING"}),
    "XMLPARSE": frozenset({"CONTENT", "DOCUMENT", "STRIP", "PRESERVE", "WHITESPACE"}),
    "XMLROOT": frozenset({",", "VERSION", "STANDALONE", "NO", "VALUE", "YES"}),
    "XMLSERIALIZE": frozenset({"CONTENT", "DOCUMENT", "AS"}),
    "XMLTABLE": frozenset[str](),
}
NAMES = (*KEYWORDS, *json_calls.NAMES)
CALLS = {f"pgt_{name.lower()}": name for name in NAMES}
TABLE = "pgt_xmltable"
TOKEN = re.compile(rf"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\b(?:{"|".join(NAMES)}|JSON_\w+)\(|[\w.]+|\s+|.""", re.DOTALL)
CONSTANTS = re.compile(r"""(?:'(?:[^']|'')*'::text|"(?:[^"]|"")*"|\w+|[,\s])*""")
COLUMN = re.compile(r"""(?:\bCOLUMNS |, )("(?:[^"]|"")*"|\w+)""")
NAMESPACES = "XMLNAMESPACES "


def as_calls(text: str) -> str:
    r"""Write every such call as one of the expressions in it, but an XMLTABLE with namespaces that are no constants.

    >>> as_calls("FROM t, LATERAL XMLTABLE(('/a'::text) PASSING (t.x) COLUMNS n numeric(3,1)) x")
    "FROM t, LATERAL pgt_xmltable('(\x1f) PASSING (\x1f) COLUMNS n numeric(3,1)', '/a'::text, t.x) x"
    >>> as_calls("SUBSTRING(t.s FROM 2), SUBSTRING(t.s SIMILAR '#\"_#\"'::text ESCAPE '#'::text)")
    'SUBSTRING(t.s FROM 2), pgt_substring(\'\x1f SIMILAR \x1f ESCAPE \x1f\', t.s, \'#"_#"\'::text, \'#\'::text)'
    """
    pieces = TOKEN.findall(text)
    for piece in pieces:
        json_calls.refuse_json_query(piece)
    return _written(pieces) if any(piece[:-1] in NAMES for piece in pieces) else text


def filled(name: str, template: str, expressions: list[str]) -> str:
    """Write the construct that a call stands for, with expressions in its gaps.

    >>> filled("pgt_xmlserialize", "CONTENT \x1f AS text", ["t.x"])
    'XMLSERIALIZE(CONTENT t.x AS text)'
    """
    parts = template.split(GAP)
    inside = "".join(part + each for part, each in zip(parts, [*expressions, ""], strict=True))
    return f"{CALLS[name]}({inside})"


def columns_of(template: str) -> list[str]:
    r"""Read the names of the columns of an XMLTABLE.

    >>> columns_of('(\x1f) PASSING (\x1f) COLUMNS n numeric(3,1) PATH (\x1f), "a, ""b" text, o FOR ORDINALITY')
    ['n', 'a, "b', 'o']
    """
    found = COLUMN.findall(template[template.rindex("COLUMNS ") :] if "COLUMNS " in template else "")
    return [name[1:-1].replace('""', '"') if name.startswith('"') else name for name in found]


def _written(pieces: list[str]) -> str:
    result, place = "", 0
    while place < len(pieces):
        name = pieces[place][:-1]
        end = _end(pieces, place) if name in NAMES else place
        result += _call(name, pieces[place + 1 : end]) if end > place else pieces[place]
        place = end + 1
    return result


def _end(pieces: list[str], start: int) -> int:
    """Find the parenthesis that ends what begins with the one in a piece."""
    depth = 0
    for place in range(start, len(pieces)):
        depth += pieces[place].endswith("(") - (pieces[place] == ")")
        if depth == 0:
            return place
    return len(pieces)


def _call(name: str, pieces: list[str]) -> str:
    """Write what stands in the parentheses of a construct as the arguments of a call."""
    found: tuple[str, list[str]] | None
    if name in json_calls.NAMES:
        found = _between(json_calls.parts_of(pieces))
    else:
        found = _between_keywords(pieces, KEYWORDS[name]) if KEYWORDS[name] else _in_parentheses(pieces)
    if found is None or (name == "SUBSTRING" and "SIMILAR" not in found[0]):
        inside = "".join(pieces) if found is None else _written(pieces)
        return f"{name}({inside})"
    template, expressions = found
    quoted = template.replace("'", "''")
    arguments = ", ".join([f"'{quoted}'", *expressions])
    return f"pgt_{name.lower()}({arguments})"


def _between_keywords(pieces: list[str], keywords: frozenset[str]) -> tuple[str, list[str]]:
    """Part expressions from the keywords around them; behind AS stands a type."""
    template, expressions, open_, place = "", list[str](), list[str](), 0
    while place <= len(pieces):
        piece = pieces[place] if place < len(pieces) else ""
        if piece and piece not in keywords:
            end = _end(pieces, place) if piece.endswith("(") else place
            open_ += pieces[place : end + 1]
            place = end + 1
            continue
        gap, found = _gap(open_)
        template, expressions = template + gap, expressions + found
        if piece == "AS":
            return template + "".join(pieces[place:]), expressions
        template, open_, place = template + piece, [], place + 1
    return template, expressions


def _between(parts: list[list[str]]) -> tuple[str, list[str]]:
    """Leave gaps for expressions, which alternate with what stands between them."""
    found = [("".join(part), list[str]()) if place % 2 else _gap(part) for place, part in enumerate(parts)]
    return "".join(text for text, _ in found), [each for _, expressions in found for each in expressions]


def _gap(pieces: list[str]) -> tuple[str, list[str]]:
    """Leave a gap for an expression, with the spaces around it; none where there are only spaces."""
    expression = "".join(pieces)
    if not expression.strip():
        return expression, []
    ahead, behind = (" " if edge.isspace() else "" for edge in (expression[0], expression[-1]))
    return f"{ahead}{GAP}{behind}", [_written(pieces).strip()]


def _in_parentheses(pieces: list[str]) -> tuple[str, list[str]] | None:
    """Take expressions out of their parentheses; one that follows a type's name is a part of it."""
    template, expressions, place = "", list[str](), 0
    while place < len(pieces):
        begins = pieces[place] == "(" and (not template or template[-1].isspace())
        end = _end(pieces, place) if begins else place
        inside = pieces[place + 1 : end]
        if not begins:
            template += pieces[place]
        elif template.endswith(NAMESPACES):
            if not CONSTANTS.fullmatch("".join(inside)):
                return None
            template += f"({''.join(inside)})"
        else:
            template, expressions = f"{template}({GAP})", [*expressions, _written(inside)]
        place = end + 1
    return template, expressions
