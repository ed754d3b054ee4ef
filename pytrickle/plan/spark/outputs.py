"""Columns of a result as Spark carries them: PostgreSQL's values, chosen from, or what Spark computes of them.

A CASE over several leaves chooses among values that PostgreSQL evaluates, whatever their type, if each part of what
is carried is chosen alike.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from sqlglot import exp

from pytrickle.plan.algebra.relation import Expr
from pytrickle.plan.postgres.aggregate import INTEGERS
from pytrickle.plan.postgres.aggregate_state import Grouped
from pytrickle.plan.postgres.text import as_text
from pytrickle.plan.query.block import null_of, to_expr
from pytrickle.plan.query.scope import tables_of
from pytrickle.plan.spark.grouping import carried_columns
from pytrickle.plan.spark.mixed import COMPARED, LOGIC, PLACE_OF_FIRST, Mixed, Translator, as_it_is
from pytrickle.plan.spark.numbers import Number, Untranslatable
from pytrickle.plan.spark.numeric_text import EXPONENT, PLACES, VALUE
from pytrickle.plan.sql.fallible import may_fail

CONDITIONS = frozenset({*COMPARED, *LOGIC, "not", "is", "nullsafeneq"})

Columns = tuple[tuple[str, str], ...]


class Carrying(Protocol):
    """How columns are carried: those of a result, or what an operation needs of its input."""

    def of(self, name: str, expr: Expr) -> tuple[tuple[str, Mixed], ...]:
        """List what carries a column that PostgreSQL evaluates over one leaf."""

    def mixed(self, name: str, expr: Expr, translator: Translator) -> tuple[tuple[str, Mixed], ...] | None:
        """List what carries a column over several leaves; None if PostgreSQL has to join them."""


@dataclass(frozen=True, slots=True)
class Carriers:
    """How the columns of a result are carried: as texts, or as the aggregates above them need it.

    The `lossy` ones are texts by the output function of their type.
    """

    grouped: Grouped | None = None
    lossy: frozenset[str] = frozenset()

    def of(self, name: str, expr: Expr) -> tuple[tuple[str, Mixed], ...]:
        """List what carries a column that PostgreSQL evaluates."""
        sql = as_text(expr.sql, True) if name in self.lossy else expr.sql
        if self.grouped is None:
            return ((name, as_it_is(expr, f"CAST({sql} AS text)")),)
        carried, columns = carried_columns(self.grouped, name, sql)
        parts = as_it_is(expr, carried).parts
        return tuple((shown, Mixed(text.format(PLACE_OF_FIRST), parts)) for shown, text in columns)

    def mixed(self, name: str, expr: Expr, translator: Translator) -> tuple[tuple[str, Mixed], ...] | None:
        """List what carries a column over several leaves; None if Spark cannot compute it exactly."""
        return output(name, expr, self, translator)

    def of_number(self, name: str, number: Number) -> Columns:
        """List what carries a number that Spark computes, in Spark's SQL."""
        wanted = dict(self.grouped.types)[name] if self.grouped else number.type_name
        if self.grouped is None or (name in self.grouped.keys and wanted not in INTEGERS):
            return ((name, _text(number)),)
        if wanted != number.type_name:
            raise Untranslatable
        if wanted in INTEGERS:
            return ((name, f"CAST({number.text} AS BIGINT)"),)
        return _summed(name, number)

    def of_truth(self, name: str, truth: str) -> Columns:
        """List what carries a condition that Spark evaluates, in Spark's SQL."""
        if self.grouped is None:
            return ((name, f"CAST({truth} AS STRING)"),)
        if name in self.grouped.keys:
            return ((name, truth),)
        return ((f"{name}_kind", f"CAST(CASE WHEN {truth} IS NULL THEN 0 ELSE 1 END AS SMALLINT)"),)


def output(name: str, expr: Expr, carriers: Carriers, translator: Translator) -> tuple[tuple[str, Mixed], ...] | None:
    """Translate a column of the result that reads several leaves; None if that cannot be done exactly."""
    writer = _Output(name, carriers, translator)
    names = [shown for shown, _ in carriers.of(name, expr)]
    found = [(shown, translator.translated(expr, partial(writer.column, i))) for i, shown in enumerate(names)]
    known = tuple((shown, mixed) for shown, mixed in found if mixed)
    return known if len(known) == len(names) else None


@dataclass(frozen=True, slots=True)
class _Output:
    name: str
    carriers: Carriers
    translator: Translator

    def column(self, number: int, node: exp.Expr) -> str:
        """Write one of the columns that carry the value of a node."""
        return self.columns(node)[number][1]

    def columns(self, node: exp.Expr) -> Columns:
        """List what carries the value of a node, in Spark's SQL; the names are the same for all nodes."""
        bare = node.unnest()
        if len(tables_of(bare)) <= 1:
            return self._evaluated(bare)
        match bare:
            case exp.Cast(this=inner) if isinstance(inner.unnest(), exp.Case | exp.Anonymous):
                return self.columns(_cast_within(inner.unnest(), bare.to))
            case exp.Case():
                return self._chosen(self.translator.branches(bare), bare.args.get("default"))
            case exp.Anonymous() if _is_coalesce(bare):
                *first, last = bare.expressions
                return self._chosen([(self.translator.given(each), each) for each in first], last)
            case _ if _is_condition(bare):
                return self.carriers.of_truth(self.name, self.translator.truth(bare))
            case _:
                return self.carriers.of_number(self.name, self.translator.number(bare))

    def _evaluated(self, node: exp.Expr) -> Columns:
        if node.find(exp.Select) or may_fail(node, self.translator.type_of):
            raise Untranslatable
        carried = self.carriers.of(self.name, to_expr(node))
        place = self.translator.place
        return tuple((shown, mixed.filled([place(part) for part in mixed.parts])) for shown, mixed in carried)

    def _chosen(self, branches: Iterable[tuple[str, exp.Expr]], default: exp.Expr | None) -> Columns:
        found = [(test, self.columns(node)) for test, node in branches]
        other = self.columns(default if default is not None else self._nothing())
        whens = [" ".join(f"WHEN {test} THEN {columns[i][1]}" for test, columns in found) for i in range(len(other))]
        return tuple((shown, f"CASE {when} ELSE {sql} END") for when, (shown, sql) in zip(whens, other, strict=True))

    def _nothing(self) -> exp.Expr:
        """Write the NULL of a CASE without ELSE, of the type that the aggregates above know."""
        grouped = self.carriers.grouped
        type_name = dict(grouped.types)[self.name] if grouped else "text"
        return null_of(type_name)


def _is_coalesce(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).lower() == "coalesce"


def _is_condition(node: exp.Expr) -> bool:
    return node.key in CONDITIONS or (isinstance(node, exp.Cast) and _is_condition(node.this.unnest()))


def _cast_within(node: exp.Expr, wanted: exp.DataType) -> exp.Expr:
    """Cast what a choice is between rather than the value that is chosen."""

    def cast(each: exp.Expr) -> exp.Expr:
        return exp.Cast(this=exp.Paren(this=each), to=wanted.copy())

    result = node.copy()
    if _is_coalesce(result):
        result.set("expressions", [cast(each) for each in result.expressions])
        return result
    if not isinstance(result, exp.Case):
        raise Untranslatable
    for branch in result.args["ifs"]:
        branch.set("true", cast(branch.args["true"]))
    if (default := result.args.get("default")) is not None:
        result.set("default", cast(default))
    return result


def _text(number: Number) -> str:
    if number.type_name in INTEGERS:
        return f"CAST(CAST({number.text} AS BIGINT) AS STRING)"
    if not number.fixed:
        raise Untranslatable
    text = f"CAST({number.text} AS STRING)"
    if number.nan is None:
        return text
    return f"CASE WHEN {number.text} IS NULL THEN NULL WHEN {number.nan} THEN 'NaN' ELSE {text} END"


def _summed(name: str, number: Number) -> Columns:
    """Write what sums of numeric need, see `grouping`: what the value is, the value, and its digits."""
    if not number.fixed or number.scale > PLACES:
        raise Untranslatable
    text, limit = number.text, f"CAST(1{'0' * EXPONENT} AS DECIMAL({EXPONENT + 1},0))"
    nan = f"WHEN {number.nan} THEN 2 " if number.nan else ""
    fits = f"abs({text}) < {limit}"
    finite = f"{fits} AND NOT {number.nan}" if number.nan else fits
    kind = f"CAST(CASE WHEN {text} IS NULL THEN 0 {nan}WHEN {fits} THEN 1 ELSE 5 END AS SMALLINT)"
    value = f"CAST(CASE WHEN {finite} THEN {text} ELSE 0 END AS {VALUE})"
    scale = f"CASE WHEN {finite} THEN {number.scale} END"
    return ((f"{name}_kind", kind), (f"{name}_value", value), (f"{name}_scale", scale))
