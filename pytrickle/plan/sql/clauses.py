"""The clauses that the planner knows: one that the parser keeps elsewhere, or anew, must not be passed over."""

from sqlglot import exp

from pytrickle.errors import NotDifferentiable

SETS = frozenset(("this", "expression", "distinct", "with_", "order", "limit", "offset"))
# A query that PostgreSQL prints has no others. Above all a SELECT without one of these clauses is another query.
KNOWN: dict[type[exp.Expr], frozenset[str]] = {
    exp.Select: frozenset((
        "with_", "distinct", "expressions", "from_", "joins", "where", "group", "having", "windows", "order", "limit",
        "offset", "locks",
    )),
    exp.Union: SETS,
    exp.Except: SETS,
    exp.Intersect: SETS,
    exp.Values: frozenset(("expressions", "alias", "order", "limit", "offset")),
    exp.Subquery: frozenset(("this", "alias", "joins")),
    exp.With: frozenset(("expressions", "recursive", "search", "cycle")),
    exp.CTE: frozenset(("this", "alias", "materialized")),
    exp.Table: frozenset(("this", "db", "catalog", "alias", "joins", "only", "rows_from", "ordinality", "sample")),
    exp.Lateral: frozenset(("this", "alias", "ordinality", "joins")),
    exp.TableAlias: frozenset(("this", "columns")),
    exp.Join: frozenset(("this", "side", "kind", "method", "on", "using", "using_alias")),
    exp.Distinct: frozenset(("on", "expressions")),
    exp.Group: frozenset(("expressions", "all")),
    exp.Order: frozenset(("this", "expressions")),
    exp.Ordered: frozenset(("this", "desc", "nulls_first")),
    exp.Limit: frozenset(("expression",)),
    exp.Offset: frozenset(("expression",)),
    exp.Fetch: frozenset(("direction", "count", "limit_options")),
    exp.LimitOptions: frozenset(("rows", "with_ties")),
    exp.Window: frozenset(("this", "partition_by", "order", "spec", "alias", "over")),
    exp.WindowSpec: frozenset(("kind", "start", "start_side", "end", "end_side", "exclude")),
    exp.In: frozenset(("this", "expressions", "query")),
}  # fmt: skip


def refuse_unknown_clauses(query: exp.Expr) -> None:
    """Raise NotDifferentiable for a clause that the planner would not look at."""
    for node in query.walk():
        unknown = [name for name, value in node.args.items() if value and name not in KNOWN.get(type(node), node.args)]
        if unknown:
            raise NotDifferentiable(f"the clause {unknown[0].strip('_')} of {node.key}")
