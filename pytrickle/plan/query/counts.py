"""What counts of a subquery in an expression: its value, or only whether it is true, or whether it is false."""

from enum import Enum, auto

from sqlglot import exp

from pytrickle.plan.query.scope import SUBQUERY


class Counts(Enum):
    """What counts of a subquery.

    Its VALUE, NULL included; whether it is true (TRUTH), or false (FALSITY), so that NULL comes to the same as the
    opposite; or just the rows for which it is true (TRUE_ROWS), or false (FALSE_ROWS).
    """

    VALUE = auto()
    TRUTH = auto()
    FALSITY = auto()
    TRUE_ROWS = auto()
    FALSE_ROWS = auto()

    @property
    def is_truth(self) -> bool:
        """Whether NULL counts as false."""
        return self in {Counts.TRUTH, Counts.TRUE_ROWS}

    @property
    def opposite(self) -> "Counts":
        """What counts of the same subquery without the NOT around it."""
        return OPPOSITES[self]


OPPOSITES = {
    Counts.VALUE: Counts.VALUE,
    Counts.TRUTH: Counts.FALSITY,
    Counts.FALSITY: Counts.TRUTH,
    Counts.TRUE_ROWS: Counts.FALSE_ROWS,
    Counts.FALSE_ROWS: Counts.TRUE_ROWS,
}


def what_counts(expressions: list[exp.Expr], number: int, wanted: bool) -> Counts:
    """Say what counts of a subquery; of a single expression only the rows may be `wanted` for which it is true."""
    (bare, *_) = (each.unnest() for each in expressions)
    if wanted and _is_marker(bare, number):
        return Counts.TRUE_ROWS
    if wanted and isinstance(bare, exp.Not) and _is_marker(bare.this.unnest(), number):
        return Counts.FALSE_ROWS
    found = {each for expression in expressions for each in _counts_within(expression, number, wanted)}
    return found.pop() if len(found) == 1 else Counts.VALUE


def _counts_within(expression: exp.Expr, number: int, wanted: bool) -> set[Counts]:
    """Collect what counts of a subquery wherever an expression names it.

    In conditions of which only true counts, those of CASE and the whole expression if that is `wanted`, it does not
    count whether a part is false or NULL, and under NOT whether it is true or NULL. There nothing but AND, OR and NOT
    may stand around it: whether they are true depends on what is true, or under NOT false, within them.
    """
    found = set()
    for node in expression.find_all(exp.Column):
        if _is_marker(node, number):
            top, counts = _within_logic(node, expression)
            decides = wanted if top is expression else _is_condition_of_case(top)
            found.add(counts if decides else Counts.VALUE)
    return found


def _within_logic(node: exp.Expr, root: exp.Expr) -> tuple[exp.Expr, Counts]:
    """Return the largest part of an expression that has nothing but AND, OR and NOT around a node, and what counts."""
    counts = Counts.TRUTH
    while node is not root and isinstance(node.parent, exp.And | exp.Or | exp.Not | exp.Paren):
        node = node.parent
        counts = counts.opposite if isinstance(node, exp.Not) else counts
    return node, counts


def _is_condition_of_case(node: exp.Expr) -> bool:
    branch = node.parent
    return isinstance(branch, exp.If) and node.arg_key == "this" and not (branch.parent and branch.parent.this)


def _is_marker(node: exp.Expr, number: int) -> bool:
    return isinstance(node, exp.Column) and node.table == SUBQUERY and node.name == f"s{number}"
