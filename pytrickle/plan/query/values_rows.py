"""VALUES whose rows hold subqueries, written as the SELECTs that they stand for."""

from sqlglot import exp

from pytrickle.plan.query.block import aliased


def as_union(values: exp.Values) -> exp.Expr:
    """Write VALUES that hold subqueries as SELECTs."""
    names = [f"column{i + 1}" for i in range(len(values.expressions[0].expressions))]
    rows = [
        exp.Select(expressions=[aliased(e, n) for e, n in zip(row.expressions, names, strict=True)])
        for row in values.expressions
    ]
    return rows[0] if len(rows) == 1 else exp.union(*rows, distinct=False)
