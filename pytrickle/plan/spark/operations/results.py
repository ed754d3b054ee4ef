"""Conditions on the results of groups, and results on a grid of digits, in Spark where it evaluates them exactly.

Whole numbers and numerics are compared and computed by Spark's decimals; a numeric that these do not hold raises
INEXACT. PostgreSQL evaluates what reads one key alone, on the rows of the input: it must not fail, and must be the same
for equal keys.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from pytrickle.catalog.definition import Definition
from pytrickle.plan.algebra.relation import Derived, Expr
from pytrickle.plan.postgres.aggregate import INTEGERS
from pytrickle.plan.query.block import to_expr
from pytrickle.plan.spark.bounds import DIGITS, NUMERIC, bounds_of
from pytrickle.plan.spark.grouping import RAISE
from pytrickle.plan.spark.mixed import COMPARED, Translator, combined, parsed
from pytrickle.plan.spark.numbers import Number, Untranslatable, cast_number, check_fits, compared_numbers, computed
from pytrickle.plan.spark.numeric_text import power
from pytrickle.plan.spark.on_grid import OntoGrid
from pytrickle.plan.spark.operations import numerics
from pytrickle.plan.spark.operations.input import OF_ONE_TEXT, InputCarriers, LeftToPostgres, templated
from pytrickle.plan.sql.fallible import may_fail, no_types, written_type

# A product with a constant of few digits still fits. An average has more digits behind the point than a sum.
AVERAGE, OTHER = (13, 20), (18, 12)
READ = """\
CASE WHEN {c} IS NULL THEN NULL WHEN {c} = 'NaN' THEN CAST({nan} AS {type}) WHEN {c} IN ('Infinity', '-Infinity')\
 OR length(replace(split_part({c}, '.', 1), '-', '')) > {digits}\
 OR replace(substr(split_part({c}, '.', 2), {next}), '0', '') <> '' THEN {raised} ELSE CAST({c} AS {type}) END"""
ON_GRID = """\
CASE WHEN {v} IS NULL THEN NULL WHEN {nan} THEN CAST({highest} AS {type}) WHEN {v} >= {top} THEN CAST({top} AS {type})\
 WHEN {v} <= -{top} THEN CAST(-{top} AS {type}) ELSE CAST({on_grid} AS {type}) END"""
CEILING = "CASE WHEN {v} % {grid} > 0 THEN {v} - {v} % {grid} + {grid} ELSE {v} - {v} % {grid} END"
FLOOR = "CASE WHEN {v} % {grid} < 0 THEN {v} - {v} % {grid} - {grid} ELSE {v} - {v} % {grid} END"
ONTO = {"ceil": CEILING, "floor": FLOOR}
OF_CONDITION = "has a condition on its result"


@dataclass(slots=True)
class Results:
    """Translates what reads the results of an operation; `averages` are those of its columns that are averages, and
    `sums` those that are sums of numerics, each with the column that it sums.

    PostgreSQL evaluates what reads a column that comes `from_rows`, the keys where nothing else is said; Spark has the
    others as values, without those that are `unread`. `read` collects the columns that Spark reads of them first,
    from the results that are `texts` if they are numerics, `computed` what it computes of these.
    """

    derived: Derived
    definition: Definition
    rows: InputCarriers
    averages: frozenset[str] = frozenset()
    from_rows: frozenset[str] | None = None
    unread: frozenset[str] = frozenset()
    sums: Mapping[str, str] = field(default_factory=dict)
    read: dict[str, str] = field(default_factory=dict)
    texts: set[str] = field(default_factory=set)
    computed: dict[str, str] = field(default_factory=dict)

    def condition(self, where: str) -> str:
        """Translate a WHERE; raise LeftToPostgres if that cannot be done exactly."""
        try:
            return self.truth(parsed(Expr(where.removeprefix(" WHERE "), frozenset())))
        except Untranslatable:
            raise LeftToPostgres(OF_CONDITION) from None

    def on_grid(self, grid: OntoGrid) -> str | None:
        """Translate a result that is put onto a grid of digits; None if that cannot be done exactly."""
        try:
            number = self.number(parsed(Expr(grid.sql, frozenset())))
            check_fits(number.digits + 1, max(number.scale, grid.scale))
        except Untranslatable:
            return None
        value = f"g{len(self.computed)}_d"
        self.computed[value] = number.text
        step = f"CAST('{grid.step}' AS DECIMAL({grid.scale + 1},{grid.scale}))"
        put = ONTO[grid.onto].format(v=value, grid=step) if number.scale > grid.scale else value
        type_name = f"DECIMAL({grid.digits},{grid.scale})"
        nan = number.nan or "FALSE"
        return ON_GRID.format(v=value, nan=nan, highest=grid.nan, top=grid.top, on_grid=put, type=type_name)

    def truth(self, node: exp.Expr) -> str:
        """Translate what is true, false or NULL."""
        read = {column.name for column in node.find_all(exp.Column)}
        if read <= self._evaluated:
            return self._of_row(node)
        return combined(node, self.truth) or self._told(node)

    @property
    def _evaluated(self) -> frozenset[str]:
        return frozenset(self.derived.operation.keys) if self.from_rows is None else self.from_rows

    def _told(self, node: exp.Expr) -> str:
        """Translate what says something about numbers."""
        match node:
            case exp.Is(expression=exp.Null()):
                given = "IS NOT NULL" if node.args.get("negate") else "IS NULL"
                return f"({self.number(node.this).text} {given})"
            case exp.EQ(expression=exp.Any(this=listed)) if isinstance(listed.unnest(), exp.Array):
                found = listed.unnest().expressions
                return f"({' OR '.join(self._compared(node.this, each, '=') for each in found)})"
        if node.key not in COMPARED:
            raise Untranslatable
        return self._compared(node.this, node.expression, COMPARED[node.key])

    def _compared(self, left: exp.Expr, right: exp.Expr, operator: str) -> str:
        return compared_numbers(self.number(left), self.number(right), operator)

    def _of_row(self, node: exp.Expr) -> str:
        """Have PostgreSQL evaluate what reads one column of the rows, or a key, which several rows have."""
        operation = self.derived.operation
        types = Translator({self.derived.alias: self.derived}, self.definition).type_of
        template, key = templated(self.derived, to_expr(node).sql)
        if key is None or node.find(exp.Select) or may_fail(node, types):
            raise Untranslatable
        if self.from_rows is None and not operation.exact and self.rows.carried[key][0] not in OF_ONE_TEXT:
            raise Untranslatable
        return self.rows.column(key, template)

    def number(self, node: exp.Expr) -> Number:
        """Translate a number."""
        match node:
            case exp.Paren():
                return self.number(node.this)
            case exp.Column():
                return self._result(node.name)
            case exp.Cast() if isinstance(node.this.unnest(), exp.Literal):
                return constant(node.this.unnest().name, written_type(node.to))
            case exp.Cast():
                return cast_number(self.number(node.this), written_type(node.to))
            case exp.Literal():
                return constant(node.name)
            case exp.Neg():
                return negated(self.number(node.this))
            case exp.Add() | exp.Sub() | exp.Mul():
                return computed(node, self.number(node.this), self.number(node.expression))
        raise Untranslatable

    def _result(self, name: str) -> Number:
        types: Mapping[str, str] = dict(zip(self.derived.operation.columns, self.derived.operation.types, strict=False))
        type_name = types.get(name)
        if name in self._evaluated | self.unread or type_name is None:
            raise Untranslatable
        if type_name in INTEGERS:
            return Number(f"CAST({name} AS DECIMAL({DIGITS[type_name]},0))", type_name, DIGITS[type_name], plain=name)
        if type_name != NUMERIC:
            raise Untranslatable
        digits, scale = AVERAGE if name in self.averages else OTHER
        nan = f"({name} = 'NaN')"
        if column := self.sums.get(name):
            # A sum is a decimal already, so that its text need not even be written.
            nan, self.read[f"{name}_d"] = numerics.is_nan(column), numerics.read_sum(column, digits, scale)
        else:
            self.texts.add(name)
            self.read[f"{name}_d"] = read_numeric(name, digits, scale)
        return Number(f"{name}_d", NUMERIC, digits + 1, scale, nan, fixed=False)


def read_numeric(text: str, digits: int, scale: int) -> str:
    """Read a numeric of any digits, NaN as the least number that has more; raise where there are too many."""
    return READ.format(
        c=text,
        nan=power(digits),
        type=f"DECIMAL({digits + 1 + scale},{scale})",
        digits=digits,
        next=scale + 1,
        raised=RAISE,
    )


def constant(text: str, wanted: str | None = None) -> Number:
    """Translate a number that is written in the query, with a type or without; zeros at its end are not compared.

    >>> constant("0.0001000").text, constant("-20").text, constant("300", "numeric").digits
    ("CAST('0.0001' AS DECIMAL(5,4))", 'CAST(-20 AS DECIMAL(2,0))', 3)
    """
    known = bounds_of(exp.Literal(this=text.removeprefix("-"), is_string=False), no_types)
    if known is None:
        raise Untranslatable
    before, _, behind = text.partition(".")
    behind, digits = behind.rstrip("0"), len(before.removeprefix("-"))
    check_fits(digits, len(behind))
    if known.whole and wanted != NUMERIC:
        number = Number(f"CAST({text} AS DECIMAL({digits},0))", known.type_name, known.digits, plain=text)
        return cast_number(number, wanted) if wanted else number
    if wanted not in {None, NUMERIC}:
        raise Untranslatable
    written = f"{before}.{behind}".removesuffix(".")
    type_name = f"DECIMAL({digits + len(behind)},{len(behind)})"
    return Number(f"CAST('{written}' AS {type_name})", NUMERIC, digits, len(behind))


def negated(number: Number) -> Number:
    """Change the sign of a numeric; a whole number may have none of the other sign."""
    if number.type_name != NUMERIC:
        raise Untranslatable
    return replace(number, text=f"(-{number.text})")
