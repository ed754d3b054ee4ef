"""XMLTABLE, which the parser does not know, written as a call: its text with gaps, and what fills them."""

import re

CALL = "pgt_xmltable"
# Stands in the text where an expression was; no text of PostgreSQL's holds it.
GAP = "\x1f"
TOKEN = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\bXMLTABLE\(|[\w.]+|\s+|.""", re.DOTALL)
CONSTANTS = re.compile(r"""(?:'(?:[^']|'')*'::text|"(?:[^"]|"")*"|\w+|[,\s])*""")
COLUMN = re.compile(r"""(?:\bCOLUMNS |, )("(?:[^"]|"")*"|\w+)""")
NAMESPACES = "XMLNAMESPACES "


def as_calls(text: str) -> str:
    r"""Write every XMLTABLE as a call of the expressions in it, unless its namespaces are more than constants.

    >>> as_calls("FROM t, LATERAL XMLTABLE(('/a'::text) PASSING (t.x) COLUMNS n numeric(3,1)) x")
    "FROM t, LATERAL pgt_xmltable('(\x1f) PASSING (\x1f) COLUMNS n numeric(3,1)', '/a'::text, t.x) x"
    """
    pieces = TOKEN.findall(text)
    return _written(pieces) if "XMLTABLE(" in pieces else text


def filled(template: str, expressions: list[str]) -> str:
    """Write XMLTABLE with expressions in its gaps."""
    parts = template.split(GAP)
    return "XMLTABLE(" + "".join(part + each for part, each in zip(parts, [*expressions, ""], strict=True)) + ")"


def columns_of(template: str) -> list[str]:
    r"""Read the names of its columns.

    >>> columns_of('(\x1f) PASSING (\x1f) COLUMNS n numeric(3,1) PATH (\x1f), "a, ""b" text, o FOR ORDINALITY')
    ['n', 'a, "b', 'o']
    """
    found = COLUMN.findall(template[template.rindex("COLUMNS ") :] if "COLUMNS " in template else "")
    return [name[1:-1].replace('""', '"') if name.startswith('"') else name for name in found]


def _written(pieces: list[str]) -> str:
    result, place = "", 0
    while place < len(pieces):
        end = _end(pieces, place) if pieces[place] == "XMLTABLE(" else place
        result += _call(pieces[place + 1 : end]) if end > place else pieces[place]
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


def _call(pieces: list[str]) -> str:
    """Write what stands in the parentheses of XMLTABLE; a parenthesis that follows a type's name is a part of it."""
    template, expressions, place = "", list[str](), 0
    while place < len(pieces):
        begins = pieces[place] == "(" and (not template or template[-1].isspace())
        end = _end(pieces, place) if begins else place
        inside = pieces[place + 1 : end]
        if not begins:
            template += pieces[place]
        elif template.endswith(NAMESPACES):
            if not CONSTANTS.fullmatch("".join(inside)):
                return f"XMLTABLE({''.join(pieces)})"
            template += f"({''.join(inside)})"
        else:
            template, expressions = f"{template}({GAP})", [*expressions, _written(inside)]
        place = end + 1
    quoted = template.replace("'", "''")
    arguments = ", ".join([f"'{quoted}'", *expressions])
    return f"{CALL}({arguments})"
