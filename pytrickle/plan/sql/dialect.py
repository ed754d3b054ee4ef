"""PostgreSQL as pg_get_viewdef prints it, parsed without rewriting any function."""

import re
from typing import Any, ClassVar

from sqlglot import TokenType, exp, parse_one
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import ParseError, SqlglotError

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.sql.aggregates import added_up
from pytrickle.plan.sql.clauses import refuse_unknown_clauses
from pytrickle.plan.sql.operators import by_window_names, called, spelled_out

AGGREGATES = frozenset(map(str.upper, added_up()))
USING_ALIAS = "using_alias"
NAME_PARTS = re.compile(r'"((?:[^"]|"")*)"|[^".]+')
# What may follow IS and would be taken for a column, or for NULL.
IS_WORDS = (
    ("UNKNOWN",),
    ("DOCUMENT",),
    ("NORMALIZED",),
    *((form, "NORMALIZED") for form in ("NFC", "NFD", "NFKC", "NFKD")),
)
SPECIAL_SYNTAX = frozenset({"CAST", "EXTRACT", "TRIM", "SUBSTRING", "OVERLAY", "POSITION", "NORMALIZE"})
# Which the parser's own generator would rewrite.
WRITTEN_HERE = (exp.Trim, exp.Array)
IN_PARENTHESES = (exp.Paren, exp.Subquery, exp.Select, exp.SetOperation)


class Canonical(Postgres):
    """Leave every function call as it stands: `date_part` must not become `EXTRACT`, nor `"left"` `"LEFT"`."""

    NORMALIZE_FUNCTIONS = False

    class Tokenizer(Postgres.Tokenizer):
        # As a keyword of its own, unnest() could not be the first item of joins in parentheses.
        KEYWORDS: ClassVar = {name: kind for name, kind in Postgres.Tokenizer.KEYWORDS.items() if name != "UNNEST"}

    class Parser(Postgres.Parser):  # type: ignore[misc,valid-type]
        # Joins in parentheses may begin with a LATERAL item, which is how PostgreSQL prints `a, f(a.x) JOIN b ON ...`.
        MODIFIABLES: ClassVar = (*Postgres.Parser.MODIFIABLES, exp.Lateral)
        FUNCTIONS: ClassVar = {name: build for name, build in Postgres.Parser.FUNCTIONS.items() if name in AGGREGATES}
        FUNCTION_PARSERS: ClassVar = {
            name: parse for name, parse in Postgres.Parser.FUNCTION_PARSERS.items() if name in SPECIAL_SYNTAX
        }

        def _parse_is(self, this: exp.Expr | None) -> exp.Expr | None:
            """Keep `x IS NOT TRUE` apart from `NOT x IS TRUE`, as PostgreSQL prints them, and IS_WORDS as keywords."""
            if self._match_text_seq("NOT", "UNKNOWN"):
                return exp.Is(this=this, expression=exp.Var(this="UNKNOWN"), negate=True)
            for words in IS_WORDS:
                if self._match_text_seq(*words):
                    return exp.Is(this=this, expression=exp.Var(this=" ".join(words)))
            result: exp.Expr | None = super()._parse_is(this)
            if isinstance(result, exp.Not) and isinstance(result.this, exp.Is):
                result.this.set("negate", True)
                return result.this
            return result

        def _parse_join(self, *args: Any, **options: Any) -> exp.Join | None:
            """Keep the alias of what USING unites, by which PostgreSQL prints no column."""
            join: exp.Join | None = super()._parse_join(*args, **options)
            if join is not None and join.args.get("using") and self._match(TokenType.ALIAS):
                join.set(USING_ALIAS, self._parse_id_var(any_token=True))
            return join

        def _values_to_select(self, values: exp.Values) -> exp.Values:
            """Keep VALUES as an arm of a set operation, or as an entry of WITH, as PostgreSQL prints it."""
            return values

    class Generator(Postgres.Generator):  # type: ignore[misc,valid-type]
        MULTI_ARG_DISTINCT = True
        TRANSFORMS: ClassVar = {
            kind: way for kind, way in Postgres.Generator.TRANSFORMS.items() if kind not in WRITTEN_HERE
        }

        def join_sql(self, expression: exp.Join, join_op: str | None = None) -> str:
            """Write the alias of what USING unites."""
            alias = self.sql(expression, USING_ALIAS)
            return f"{super().join_sql(expression, join_op)}{f' AS {alias}' if alias else ''}"

        def anonymous_sql(self, expression: exp.Anonymous) -> str:
            """Write constructs that the parser was shown as calls."""
            arguments = [self.sql(each) for each in expression.expressions]
            first = expression.expressions[0].name if arguments else ""
            return called(str(expression.this), arguments, first) or str(super().anonymous_sql(expression))

        def any_sql(self, expression: exp.Any) -> str:
            """Keep an array in parentheses, also where another expression came in the place of what was in them."""
            this = expression.this
            return str(super().any_sql(exp.Any(this=this if isinstance(this, IN_PARENTHESES) else exp.paren(this))))

        def array_sql(self, expression: exp.Array) -> str:
            """Keep all elements of an array, also where the first one is a subquery."""
            return f"ARRAY[{self.expressions(expression, flat=True)}]"

        def dot_sql(self, expression: exp.Dot) -> str:
            """Keep a row of which a field is taken in parentheses, too: else its name would be a table's."""
            row, field = expression.this, expression.expression
            if isinstance(field, exp.Identifier | exp.Star) and not isinstance(row, exp.Identifier | exp.Paren):
                row = exp.paren(row)
            return str(super().dot_sql(exp.Dot(this=row, expression=field)))

        def lateral_sql(self, expression: exp.Lateral) -> str:
            """Write the joins that a LATERAL item begins."""
            return f"{super().lateral_sql(expression)}{self.expressions(expression, key='joins', sep='')}"

        def trim_sql(self, expression: exp.Trim) -> str:
            """Keep TRIM, of which LEADING and TRAILING without characters are no LTRIM and RTRIM to PostgreSQL."""
            parts = [expression.args.get("position") or "BOTH", self.sql(expression, "expression"), "FROM"]
            return f"TRIM({' '.join(filter(None, parts))} {self.sql(expression, 'this')})"

        def windowspec_sql(self, expression: exp.WindowSpec) -> str:
            """Keep `ROWS 2 PRECEDING`, which PostgreSQL prints as it was written, free of BETWEEN."""
            if expression.args.get("end"):
                return str(super().windowspec_sql(expression))
            start = f"{self.sql(expression, 'start')} {self.sql(expression, 'start_side')}".strip()
            exclude = self.sql(expression, "exclude")
            return f"{expression.args['kind']} {start}{f' EXCLUDE {exclude}' if exclude else ''}"


def _place(error: SqlglotError) -> str:
    """Name the word at which the parser gave up, if it is one that SQL has, and no name or value of the user's."""
    found = error.errors[0].get("highlight") if isinstance(error, ParseError) and error.errors else None
    return f", at {found}" if found and re.fullmatch("[A-Z_]+", found) else ""


def parse_query(text: str, aggregates: frozenset[str] = frozenset()) -> exp.Expr:
    """Parse one canonical query; raise NotDifferentiable when the text is beyond the parser or the planner.

    A call of one of the `aggregates` that have a schema in their name becomes a call of that name.
    """
    try:
        tree = parse_one(spelled_out(by_window_names(text)), dialect=Canonical)
    except SqlglotError as error:
        raise NotDifferentiable(f"the query uses syntax that the planner does not know{_place(error)}") from error
    own = {unquoted(name): name for name in aggregates if "." in name}
    tree = tree.transform(lambda node: _own_call(node, own)) if own else tree
    refuse_unknown_clauses(tree)
    for node in list(tree.find_all(exp.Collate)):
        # A collation's name is no reference to a column.
        node.set("expression", exp.Var(this=render(node.expression)))
    for item in [each for select in tree.find_all(exp.Select) for each in select.selects]:
        _keep_as_value(item.unalias().unnest())
    return tree


def _keep_as_value(item: exp.Expr) -> None:
    """Cast a row that a query shows to what it is, which says the same there, and elsewhere keeps it one value.

    PostgreSQL compares `x.r = ROW(1, 2)` as two values, of which NULLs are equal, but `ROW(a, b) = ROW(1, 2)`, where
    what `x.r` stands for came in its place, column by column.
    """
    if isinstance(item, exp.Anonymous) and str(item.this).upper() == "ROW":
        item.replace(exp.Cast(this=item.copy(), to=exp.DataType(this=exp.DType.USERDEFINED, kind="record")))


def unquoted(name: str) -> tuple[str, ...]:
    r"""Split a name as PostgreSQL writes it into its parts.

    >>> unquoted('public.joined'), unquoted('"My Tools"."a.""b"')
    (('public', 'joined'), ('My Tools', 'a."b'))
    """
    found = NAME_PARTS.finditer(name)
    return tuple(part[1].replace('""', '"') if part[1] is not None else part[0] for part in found)


def _own_call(node: exp.Expr, own: dict[tuple[str, ...], str]) -> exp.Expr:
    """Give the call of an aggregate its schema as a part of its name; the parser takes it for that of a column."""
    whole: exp.Expr
    call: exp.Expr
    match node:
        case exp.Dot(this=exp.Identifier() as schema, expression=exp.Anonymous() as call):
            whole = call
        case exp.Column(this=exp.Filter() | exp.WithinGroup() as whole) if node.args.get("table"):
            schema, call = node.args["table"], whole
            while isinstance(call, exp.Filter | exp.WithinGroup):
                call = call.this
        case _:
            return node
    name = own.get((schema.name, call.name))
    if name is None:
        return node
    result = whole.copy()
    found = result.find(exp.Anonymous) if result.key != "anonymous" else result
    assert found is not None
    found.set("this", name)
    return result


def render(node: exp.Expr) -> str:
    """Write an expression as PostgreSQL text with every identifier quoted."""
    return node.sql(dialect=Canonical, identify=True)


def quote(name: str) -> str:
    """Quote one identifier."""
    return '"' + name.replace('"', '""') + '"'


def row_text(columns: tuple[str, ...]) -> str:
    """Write the text of a row, which differs where any value differs.

    >>> row_text(("k0", "a0"))
    'CAST(ROW(k0, a0) AS text)'
    """
    return f"CAST(ROW({', '.join(columns)}) AS text)"


def row_order(columns: tuple[str, ...]) -> str:
    """Write what rows that tie are sorted by: their text, byte by byte, so that no collation has a part in it.

    >>> row_order(("k0", "a0"))
    'CAST(ROW(k0, a0) AS text) COLLATE "C"'
    """
    return f'{row_text(columns)} COLLATE "C"'
