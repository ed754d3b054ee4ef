"""Expressions over several leaves that Spark evaluates exactly as PostgreSQL does; what is not listed it never gets.

PostgreSQL evaluates every part that reads one leaf, and Spark what is between them: AND, OR, NOT and CASE, comparisons
of values whose carriers are ordered alike, and + - * of numbers that its decimals hold. NaN travels as a number with
one digit more than others, as it does in grouping: it is larger than all, and equals itself.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from pytrickle.catalog.definition import Definition
from pytrickle.errors import NotDifferentiable
from pytrickle.plan.algebra.relation import Derived, Equality, Expr, Function, Leaf, Scan
from pytrickle.plan.query.block import to_expr
from pytrickle.plan.query.scope import tables_of
from pytrickle.plan.spark.bounds import NUMERIC, bounds_of
from pytrickle.plan.spark.key_encoding import BASE_TYPES, DAYS, INTEGER, NATIVE, Kind, carrier, kind_of, shown_kind
from pytrickle.plan.spark.numbers import (
    Number,
    Untranslatable,
    cast_number,
    check_fits,
    compared_numbers,
    computed,
)
from pytrickle.plan.spark.numeric_text import as_decimal, power
from pytrickle.plan.spark.on_grid import ONTO, PutOntoGrid
from pytrickle.plan.sql.dialect import parse_query
from pytrickle.plan.sql.fallible import may_fail, written_type

LONGEST = 4_000
PLACE, PLACE_OF_FIRST = re.compile(r"@(\d+)@"), "@0@"
LOGIC = {"and": "AND", "or": "OR"}
GIVEN = "({0}) IS DISTINCT FROM NULL"
IS_NULL, IS_NOT_NULL = "({0}) IS NULL", "({0}) IS NOT NULL"
COMPARED = {"eq": "=", "neq": "<>", "lt": "<", "lte": "<=", "gt": ">", "gte": ">="}
TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
# Flipped in its first bit, the number that a moment is sorts by its bytes.
MOMENT = "set_byte({0}_send({{0}}), 0, get_byte({0}_send({{0}}), 0) # 128)"
ORDERED = NATIVE | {"date": DAYS} | {name: MOMENT.format(name) for name in ("timestamp", "timestamptz")}


@dataclass(frozen=True, slots=True)
class Mixed:
    """A text in Spark's SQL with places for parts, each of which PostgreSQL evaluates over one input of the join."""

    text: str
    parts: tuple[Expr, ...]

    def filled(self, columns: list[str]) -> str:
        """Put columns where the parts are."""
        return PLACE.sub(lambda found: columns[int(found[1])], self.text)


def as_it_is(expr: Expr, sql: str) -> Mixed:
    """Leave a part to PostgreSQL, written in some way."""
    return Mixed(PLACE_OF_FIRST, (replace(expr, sql=sql, shown=None),))


def combined(node: exp.Expr, truth: Callable[[exp.Expr], str]) -> str | None:
    """Translate what combines conditions, each of them by `truth`; return None for what combines none."""
    match node:
        case exp.Paren():
            return truth(node.this)
        case exp.Cast() if written_type(node.to) == "boolean":
            return truth(node.this)
        case exp.Not():
            return f"(NOT {truth(node.this)})"
        case exp.And() | exp.Or():
            return f"({truth(node.this)} {LOGIC[node.key]} {truth(node.expression)})"
    return None


@dataclass(slots=True)
class Translator:
    """Translates expressions over some leaves, of which it collects the parts that read one."""

    leaves: Mapping[str, Leaf]
    definition: Definition
    parts: list[Expr] = field(default_factory=list)

    def condition(self, expr: Expr) -> Mixed | None:
        """Translate a condition."""
        return self.translated(expr, self.truth)

    def translated(self, expr: Expr, way: Callable[[exp.Expr], str]) -> Mixed | None:
        """Translate an expression in some way; return None if it is not on the list."""
        self.parts = []
        try:
            text = way(parsed(expr))
        except Untranslatable:
            return None
        return Mixed(text, tuple(self.parts)) if len(text) <= LONGEST else None

    def ask(self, node: exp.Expr, template: str = "{0}") -> str:
        """Have PostgreSQL evaluate a part for every row of its leaf, joined or not: it must not fail."""
        expr = self._evaluated(node)
        return self.place(Expr(template.format(expr.sql), expr.tables, expr.columns))

    def _evaluated(self, node: exp.Expr) -> Expr:
        if len(tables_of(node)) > 1 or node.find(exp.Select) or may_fail(node, self.type_of):
            raise Untranslatable
        return to_expr(node)

    def place(self, expr: Expr) -> str:
        """Return the place of a part."""
        if expr not in self.parts:
            self.parts.append(expr)
        return f"@{self.parts.index(expr)}@"

    def truth(self, node: exp.Expr) -> str:
        """Translate what is true, false or NULL."""
        if len(tables_of(node)) <= 1:
            return self.ask(node)
        return combined(node, self.truth) or self._told(node)

    def _told(self, node: exp.Expr) -> str:
        """Translate what says something about values."""
        match node:
            case exp.Is() | exp.NullSafeNEQ():
                return self._null_told(node)
            case exp.EQ(this=exp.Anonymous(this="num_nonnulls", expressions=[one]), expression=exp.Literal(this="1")):
                return self.given(one)
            case exp.EQ(expression=exp.Any(this=listed)):
                return self._one_of(node.this, listed)
        if node.key not in COMPARED:
            raise Untranslatable
        return self.compared(node.this, node.expression, COMPARED[node.key])

    def given(self, node: exp.Expr, test: str = GIVEN) -> str:
        """Translate whether there is a value, such as a row of NULLs; or another `test` for NULL.

        Of a row of NULLs IS NULL is true as well, and of one that has some NULLs neither is IS NOT NULL.
        """
        bare = node.unnest()
        if len(tables_of(bare)) <= 1:
            return self.ask(bare, test)
        if isinstance(bare, exp.Case):
            default, of_null = bare.args.get("default"), "true" if test == IS_NULL else "false"
            whens = [f"WHEN {when} THEN {self.given(result, test)}" for when, result in self.branches(bare)]
            other = of_null if default is None else self.given(default, test)
            return f"CASE {' '.join(whens)} ELSE {other} END"
        return f"({self.number(bare).text} {'IS NULL' if test == IS_NULL else 'IS NOT NULL'})"

    def branches(self, case: exp.Case) -> Iterator[tuple[str, exp.Expr]]:
        """Translate the conditions of a CASE; return beside each what it leads to."""
        for branch in case.args["ifs"]:
            told = branch.this
            test = self.truth(told) if case.this is None else self.compared(case.this, told, "=")
            yield test, branch.args["true"]

    def compared(self, left: exp.Expr, right: exp.Expr, operator: str) -> str:
        """Translate a comparison."""
        numbers = self._number_or_none(left), self._number_or_none(right)
        match numbers:
            case (Number() as one, Number() as other):
                return compared_numbers(one, other, operator)
            case (Number() as one, None) if operator in TURNED:
                return self._compared_on_grid(one, right, operator)
            case (None, Number() as other) if operator in TURNED:
                return self._compared_on_grid(other, left, TURNED[operator])
        carried = self._sorted(left, right) if operator in TURNED else self._carried(left, right)
        return f"({carried[0]} {operator} {carried[1]})"

    def number(self, node: exp.Expr) -> Number:
        """Translate a number."""
        if len(tables_of(node)) <= 1:
            return self._asked_number(node)
        match node:
            case exp.Paren():
                return self.number(node.this)
            case exp.Cast():
                return cast_number(self.number(node.this), written_type(node.to))
            case exp.Add() | exp.Sub() | exp.Mul():
                return computed(node, self.number(node.this), self.number(node.expression))
        raise Untranslatable

    def type_of(self, column: exp.Column) -> str | None:
        """Return the type of a column as PostgreSQL prints it, where it is known."""
        match self.leaves.get(column.table):
            case Scan(relid=relid):
                found = self.definition.source(relid).column(column.name)
                return found.type_name if found else None
            case Derived(operation=operation) as leaf:
                types = dict(zip(operation.columns, operation.types, strict=False))
                kind = kind_of(leaf, column.name, self.definition)
                names = {base: name for name, base in BASE_TYPES.items()}
                return types.get(column.name) or (names.get(kind.base_type) if kind else None)
            case _:
                return None

    def _asked_number(self, node: exp.Expr) -> Number:
        bounds = bounds_of(node, self.type_of)
        if bounds is None:
            raise Untranslatable
        if bounds.whole:
            plain = self.ask(node, "CAST({0} AS bigint)")
            text = f"CAST({plain} AS DECIMAL({bounds.digits},0))"
            return Number(text, bounds.type_name, bounds.digits, plain=plain)
        digits = bounds.digits + 1
        check_fits(digits, bounds.scale)
        place = self.ask(node, as_decimal("{0}", bounds.digits + bounds.scale, bounds.scale))
        nan = f"{place} = {power(bounds.digits)}" if bounds.nan else None
        return Number(place, NUMERIC, digits, bounds.scale, nan, bounds.fixed)

    def _number_or_none(self, node: exp.Expr) -> Number | None:
        known = list(self.parts)
        try:
            return self.number(node)
        except Untranslatable:
            self.parts = known
            return None

    def _compared_on_grid(self, number: Number, node: exp.Expr, operator: str) -> str:
        """Compare with any numeric: what is beyond all values of the other side is as good as any that is."""
        if not self._is_numeric(node):
            raise Untranslatable
        check_fits(number.digits + 1, number.scale)
        put = PutOntoGrid.of(self._evaluated(node), ONTO[operator], number.digits, number.scale)
        ordered = number.ordered(f"CAST({put.grid.nan} AS DECIMAL({number.digits + 1},0))")
        return f"({ordered} {operator} {self.place(put)})"

    def _is_numeric(self, node: exp.Expr) -> bool:
        match node:
            case exp.Paren() | exp.Neg():
                return self._is_numeric(node.this)
            case exp.Column():
                return self.type_of(node) == NUMERIC
            case exp.Cast():
                return written_type(node.to) == NUMERIC
            case exp.Add() | exp.Sub() | exp.Mul():
                sides = (node.this, node.expression)
                return any(map(self._is_numeric, sides)) and all(
                    self._is_numeric(each) or bounds_of(each, self.type_of) for each in sides
                )
            case _:
                return False

    def _null_told(self, node: exp.Is | exp.NullSafeNEQ) -> str:
        if isinstance(node, exp.NullSafeNEQ):
            one, other = self._carried(node.this, node.expression)
            return f"(NOT {one} <=> {other})"
        if not isinstance(node.expression, exp.Null):
            raise Untranslatable
        return self.given(node.this, IS_NOT_NULL if node.args.get("negate") else IS_NULL)

    def _one_of(self, node: exp.Expr, listed: exp.Expr) -> str:
        array = listed.unnest()
        if not isinstance(array, exp.Array) or not array.expressions:
            raise Untranslatable
        return f"({' OR '.join(self.compared(node, each, '=') for each in array.expressions)})"

    def _carried(self, left: exp.Expr, right: exp.Expr) -> tuple[str, str]:
        """Carry both sides so that they are equal where PostgreSQL finds them equal; NULL is NULL."""
        kinds = self._kind(left), self._kind(right)
        as_text = any(shown is not None and shown.as_text for shown in (to_expr(left).shown, to_expr(right).shown))
        template = carrier(Equality(("", ""), ("", ""), as_text), *kinds)
        if template is None:
            raise Untranslatable
        return self.ask(left, template), self.ask(right, template)

    def _sorted(self, left: exp.Expr, right: exp.Expr) -> tuple[str, str]:
        kinds = {self._kind(left), self._kind(right)}
        kind = kinds.pop()
        if kinds or kind is None or kind.base_type not in ORDERED or kind.base_type in INTEGER:
            raise Untranslatable
        template = ORDERED[kind.base_type]
        return self.ask(left, template), self.ask(right, template)

    def _kind(self, node: exp.Expr) -> Kind | None:
        expr = to_expr(node)
        if expr.shown is None or expr.shown.column[0] not in self.leaves:
            return None
        leaf = self.leaves[expr.shown.column[0]]
        return None if isinstance(leaf, Function) else shown_kind(expr, leaf, self.definition)


def parsed(expr: Expr) -> exp.Expr:
    """Parse an expression again."""
    try:
        query = parse_query(f"SELECT {expr.sql}")
    except NotDifferentiable:
        raise Untranslatable from None
    assert isinstance(query, exp.Select)
    (node,) = query.selects
    return node
