"""Comparisons with ANY or ALL of the rows of a subquery, or of the elements of `ARRAY(subquery)`, with their NULLs."""

from collections.abc import Iterable

from sqlglot import exp

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.query.block import Block, own_column
from pytrickle.plan.query.context import Context
from pytrickle.plan.query.counts import Counts
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.query.membership import in_cases, is_, present, where
from pytrickle.plan.query.mixed_equality import types_among
from pytrickle.plan.query.recursion import Recursion
from pytrickle.plan.query.row_comparison import by_columns, items_of
from pytrickle.plan.query.scope import resolve
from pytrickle.plan.query.subquery_nodes import Quantifier
from pytrickle.plan.sql.three_valued import COMPARISONS, truth

Case = tuple[Block, exp.Expr]
# Of arrays ARRAY() makes one of more dimensions, whose elements are theirs; vectors are arrays, too.
VECTORS = frozenset({"int2vector", "oidvector"})


def quantified_cases(
    recursion: Recursion, block: Block, node: exp.Expr, rows: Quantifier, context: Context, counts: Counts
) -> list[Case]:
    """List the cases of a comparison with ANY or ALL."""
    items = [resolve(each, context.outer) for each in items_of(node.this)]
    query = _query(rows)
    inner = recursion.derived(query, context)
    shown = [[value.copy() for value in each.names[""].values()] for each in inner]
    if any(len(values) != len(items) for values in shown):
        raise NotDifferentiable("a comparison with ANY or ALL of a subquery that names a column twice")
    if rows.as_array:
        _refuse_arrays(recursion.facts, context, inner)
    if _is_membership(recursion.facts, block, node, rows, context, inner):
        among = exp.In(this=node.this.copy(), query=query.subquery())
        if not rows.every:
            return in_cases(recursion, block, among, context, counts)
        return [(case, _negated(value)) for case, value in in_cases(recursion, block, among, context, counts.opposite)]
    if len(items) > 1:
        tests = [by_columns(node, [item.copy() for item in items], values) for values in shown]
    else:
        tests = [_comparison(node, items[0], values[0]) for values in shown]
    if not counts.is_truth:
        return _compared(recursion.facts, block, inner, tests, rows.every)
    if rows.every:
        failed = where(inner, [is_(test, True, negate=True) for test in tests])
        return present(recursion.facts, block, failed, negated=True)
    return present(recursion.facts, block, where(inner, tests))


def _query(rows: Quantifier) -> exp.Query:
    """Write the subquery with its rows cast as the elements of the array are."""
    if not rows.element_types:
        return rows.query
    value: exp.Expr = own_column("pgt_array", "v")
    for kind in rows.element_types:
        value = exp.Cast(this=value, to=kind.copy())
    alias = exp.TableAlias(this=exp.to_identifier("pgt_array"), columns=[exp.to_identifier("v", quoted=True)])
    return exp.Select(expressions=[value], from_=exp.From(this=exp.Subquery(this=rows.query.copy(), alias=alias)))


def _refuse_arrays(facts: Facts, context: Context, inner: Iterable[Block]) -> None:
    for each in inner:
        (type_name,) = types_among(facts, (*context.around, *each.leaves), tuple(each.names[""].values()))
        if type_name.endswith("[]") or type_name in VECTORS:
            raise NotDifferentiable("a comparison with the elements of arrays that ARRAY over a subquery puts together")


def _is_membership(
    facts: Facts, block: Block, node: exp.Expr, rows: Quantifier, context: Context, inner: Iterable[Block]
) -> bool:
    """Whether a comparison is IN or NOT IN, of which equal keys find the rows.

    PostgreSQL prints `= ANY (subquery)` as IN. Where types have an equality to group by, `<>` is its negation.
    """
    if not (isinstance(node, exp.NEQ) if rows.every else isinstance(node, exp.EQ) and rows.as_array):
        return False
    items = [resolve(each, block.names, context.outer) for each in items_of(node.this)]
    for each in inner:
        leaves = (*context.around, *block.leaves, *each.leaves)
        types = types_among(facts, leaves, (*items, *each.names[""].values()))
        if any(facts.key_types(*pair) is None for pair in zip(types[: len(items)], types[len(items) :], strict=True)):
            return False
    return True


def _negated(value: exp.Expr) -> exp.Expr:
    return {truth(True): truth(False), truth(False): truth(True)}.get(value, value)


def _comparison(node: exp.Expr, left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """Compare two values as ANY or ALL does; most operators bind as tightly as || does."""
    result = node.copy()
    result.set("this", left.copy())
    result.set("expression", right if isinstance(node, COMPARISONS) else exp.Paren(this=right))
    return result


def _compared(facts: Facts, block: Block, inner: tuple[Block, ...], tests: list[exp.Expr], every: bool) -> list[Case]:
    """A comparison with each row is settled by one that is true (ANY) or false (ALL), else NULL if one is NULL."""
    cases: list[Case] = []
    settled = where(inner, [is_(test, not every) for test in tests])
    unknown = where(inner, [is_(test, None) for test in tests])
    for case, found in present(facts, block, settled):
        if found == truth(True):
            cases.append((case, truth(not every)))
        else:
            nulls = present(facts, case, unknown)
            cases += [(one, truth(None) if null == truth(True) else truth(every)) for one, null in nulls]
    return cases
