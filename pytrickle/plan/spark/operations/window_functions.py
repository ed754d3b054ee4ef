"""Window functions in Spark's SQL: those that it computes exactly, over the rows of an operation's input."""

from dataclasses import dataclass, field
from math import inf

from sqlglot import exp

from pytrickle.catalog.definition import Definition
from pytrickle.plan.algebra.relation import Derived, Expr
from pytrickle.plan.postgres.aggregate import INTEGERS
from pytrickle.plan.query.calls import function_name
from pytrickle.plan.spark.bounds import NUMERIC
from pytrickle.plan.spark.key_encoding import is_null_safe
from pytrickle.plan.spark.mixed import parsed
from pytrickle.plan.spark.operations.input import (
    AS_BIGINT,
    IS_SET,
    OF_RESULT,
    SIDE,
    InputCarriers,
    LeftToPostgres,
    is_safe,
)
from pytrickle.plan.spark.operations.ordering import Ordering
from pytrickle.plan.spark.operations.reading import reader_of
from pytrickle.plan.spark.operations.values import Values

RANKS = frozenset({"rank", "dense_rank"})
AGGREGATES = frozenset({"count", "sum", "avg", "min", "max"})
SHIFTED = frozenset({"lag", "lead", "first_value", "last_value"})
FRAMELESS = frozenset({"row_number", "lag", "lead"}) | RANKS
OF_FUNCTION = "calls a function without a rule for Spark"
OF_FRAME = "has a frame without a rule for Spark"
OF_PARTITIONS = "has windows over other partitions"
OF_TIES = "depends on the order of rows that tie"
NUMBERED = "{place}() OVER ({partition} ORDER BY {order})"


@dataclass(slots=True)
class Windows:
    """Writes the functions of one operation over the rows of its input.

    `shifted` are those that show a value of another row, by name: their text with a place for it, and the argument.
    """

    derived: Derived
    definition: Definition
    rows: InputCarriers
    ordering: Ordering
    values: Values = field(default_factory=Values)
    named: dict[str, str] = field(default_factory=dict)
    shifted: dict[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def types(self) -> dict[str, str]:
        """The types of the operation's columns."""
        return dict(zip(self.derived.operation.columns, self.derived.operation.types, strict=False))

    @property
    def partition(self) -> str:
        """What partitions are told apart by, on either side."""
        return f"PARTITION BY {', '.join([SIDE, *(f'{key}_0' for key in self.derived.operation.keys)])}"

    def take(self, name: str, text: str) -> None:
        """Take a function; raise LeftToPostgres if Spark cannot compute it exactly."""
        node = parsed(Expr(text, frozenset()))
        if not isinstance(node, exp.Window):
            raise LeftToPostgres(OF_FUNCTION)
        if len(node.args.get("partition_by") or []) != len(self.derived.operation.keys):
            raise LeftToPostgres(OF_PARTITIONS)
        function, arguments = function_name(node.this), _arguments(node.this)
        if function in AGGREGATES and len(arguments) <= 1:
            self._aggregate(name, function, arguments[0] if arguments else None, self._over(node, function))
        elif function in SHIFTED and arguments:
            self._shift(name, function, arguments, self._over(node, function))
        elif function in {*RANKS, "row_number"} and not arguments:
            self.values.taken[name] = f"CAST({function}(){self._over(node, function)} AS BIGINT)"
        else:
            raise LeftToPostgres(OF_FUNCTION)

    def numbered(self, place: str, order: tuple[str, ...]) -> str:
        """Number the rows of each key in an order."""
        node = parsed(Expr(f"{place}() OVER (ORDER BY {', '.join(order)})", frozenset()))
        written = self.ordering.written(node.args["order"].expressions)
        return NUMBERED.format(place=place, partition=self.partition, order=written)

    def _over(self, node: exp.Window, function: str) -> str:
        order, spec = node.args.get("order"), node.args.get("spec")
        items = order.expressions if order else []
        free = function in RANKS or (function in AGGREGATES and (spec is None or spec.args.get("kind") == "RANGE"))
        if not free and not self.ordering.breaks_ties(items):
            raise LeftToPostgres(OF_TIES)
        if function not in AGGREGATES and not items:
            raise LeftToPostgres(OF_FUNCTION)
        # Without an order all rows of a partition are peers, and Spark takes no RANGE there.
        peers = not items and spec is not None and spec.args.get("kind") == "RANGE" and not _excludes(spec)
        frame = "" if spec is None or peers or function in FRAMELESS else f" {_frame(spec)}"
        sorted_by = f" ORDER BY {self.ordering.written(items)}" if items else ""
        return f" OVER ({self.partition}{sorted_by}{frame})"

    def _aggregate(self, name: str, function: str, argument: exp.Expr | None, over: str) -> None:
        type_name = self.types.get(name)
        if argument is None or isinstance(argument, exp.Star):
            if function != "count":
                raise LeftToPostgres(OF_FUNCTION)
            self.values.taken[name] = f"count(1){over}"
            return
        column = _column(argument)
        if type_name in INTEGERS and function != "avg":
            carried = self.rows.column(column, IS_SET if function == "count" else AS_BIGINT)
            self.values.taken[name] = f"{function}({carried}){over}"
        elif type_name == NUMERIC and (function in {"sum", "avg"} or self.derived.operation.exact):
            template, reader = reader_of(self.derived, column, self.definition)
            # Each window has values of its own, even if several are over one argument.
            self.named[f"v{name}"] = self.rows.column(column, template)
            self.values.take_numeric(name, function, f"v{name}", reader, over)
        else:
            raise LeftToPostgres(OF_FUNCTION)

    def _shift(self, name: str, function: str, arguments: list[exp.Expr], over: str) -> None:
        shown, *further = arguments
        if function in {"lag", "lead"} and len(further) <= 1:
            by = "".join(f", {_whole_number(each)}" for each in further)
        elif not further:
            by = ""
        else:
            raise LeftToPostgres(OF_FUNCTION)
        self.shifted[name] = (f"{function}({{0}}{by}){over}", _column(shown))

    def shift(self, name: str, template: str) -> str:
        """Write what is asked of a value of another row; of a row that there is not it is NULL."""
        text, argument = self.shifted[name]
        if not is_safe(template):
            raise LeftToPostgres(OF_RESULT)
        found = text.format(self.rows.column(argument, template))
        return f"coalesce({found}, '')" if is_null_safe(template) else found


def _arguments(call: exp.Expr) -> list[exp.Expr]:
    if isinstance(call, exp.AggFunc):
        return [call.this] if call.this is not None else []
    return list(call.expressions) if isinstance(call, exp.Anonymous) else []


def _column(node: exp.Expr) -> str:
    bare = node.unnest()
    if not isinstance(bare, exp.Column):
        raise LeftToPostgres(OF_FUNCTION)
    return bare.name


def _whole_number(node: exp.Expr) -> int:
    if not isinstance(node, exp.Literal) or not node.is_int or len(node.name) > 9:
        raise LeftToPostgres(OF_FUNCTION)
    return int(node.name)


def _frame(spec: exp.Expr) -> str:
    """Write a frame of rows, or of all peers up to a bound."""
    kind = spec.args.get("kind")
    if kind not in {"ROWS", "RANGE"} or _excludes(spec):
        raise LeftToPostgres(OF_FRAME)
    start, end = (_bound(spec, side, kind) for side in ("start", "end"))
    # Of a frame that ends before it begins, which is always empty, Spark makes an error.
    if start[0] > end[0]:
        raise LeftToPostgres(OF_FRAME)
    return f"{kind} BETWEEN {start[1]} AND {end[1]}"


def _excludes(spec: exp.Expr) -> bool:
    exclude = spec.args.get("exclude")
    return exclude is not None and exclude.name.upper() != "NO OTHERS"


def _bound(spec: exp.Expr, side: str, kind: str) -> tuple[float, str]:
    """Return how many rows from the current one a bound is, and its text."""
    bound, towards = spec.args.get(side), spec.args.get(f"{side}_side")
    if bound is None or bound == "CURRENT ROW":
        return 0, "CURRENT ROW"
    sign = -1 if towards == "PRECEDING" else 1
    if bound == "UNBOUNDED":
        return sign * inf, f"UNBOUNDED {towards}"
    if kind == "RANGE" or not isinstance(bound, exp.Literal):
        raise LeftToPostgres(OF_FRAME)
    return sign * _whole_number(bound), f"{_whole_number(bound)} {towards}"
