"""A refresh plan explained: the same data that is executed, as text and as a dictionary."""

from typing import Any

from pytrickle.catalog.definition import Definition
from pytrickle.plan.algebra import Derived, Function, Join, Project, Relation, Scan, UnionAll, Version
from pytrickle.plan.compile import blocks_of
from pytrickle.plan.refresh_plan import RefreshPlan

SYMBOLS = {Version.DELTA: "Δ", Version.OLD: "old ", Version.NEW: "new "}


def describe(plan: RefreshPlan) -> dict[str, Any]:
    """Describe a plan as data: action, reason, delta terms, place, indexes that are missing, and the SQL to run."""
    placement = plan.placement
    definition = plan.shape.definition
    return {
        "stream_table": definition.qualified_name,
        "action": plan.action.value,
        "reason": plan.reason,
        "differential": plan.shape.query is not None,
        "full_reason": plan.shape.full_reason,
        "sources": [
            {
                "source": f"{definition.source(w.relid).schema}.{definition.source(w.relid).name}",
                "delta_rows": w.delta_rows,
                "rows_beyond_cut": w.future_rows,
                "capped": w.new is not None,
            }
            for w in plan.windows
        ],
        "terms": [term for relation in plan.terms for term in _terms(relation, definition)],
        "stage": plan.stage.value,
        "place": placement.place.value if placement else None,
        "placement_reason": placement.reason if placement else None,
        "missing_indexes": [index.statement for index in placement.missing if index.column] if placement else [],
        "sql": plan.read.query if plan.read else None,
        "spark_reads": sorted({f.sql for term in plan.join for leaf in term.leaves for f in leaf.frames}),
        "recomputation_sql": plan.keyed.query if plan.keyed else None,
    }


def render_text(facts: dict[str, Any]) -> str:
    """Lay out a description for people."""
    headline = f"{facts['action']} ({facts['reason']})"
    if facts["supposing_changes"]:
        headline = f"NO_DATA (no changes); with one change in every source: {facts['action']}"
    lines = [f"{facts['stream_table']}: {headline}"]
    lines += [f"  gating: {facts['gating']}: {facts['decision']}. {facts['gating_reason']}".rstrip()]
    lines += [f"  differential: {'yes' if facts['differential'] else 'no, ' + str(facts['full_reason'])}"]
    for source in facts["sources"]:
        cut = f", read at a cut, {source['rows_beyond_cut']} changes beyond it" if source["capped"] else ""
        lines.append(f"  source {source['source']}: {source['delta_rows']} changes{cut}")
    lines += [f"  delta = {term}" if i == 0 else f"        + {term}" for i, term in enumerate(facts["terms"])]
    if facts["place"]:
        lines.append(f"  runs in: {facts['place']} ({facts['placement_reason']})")
    lines += [f"  missing index: {statement};" for statement in facts["missing_indexes"]]
    for title in ("sql", "recomputation_sql"):
        if facts[title]:
            lines += [f"  {title.replace('_', ' ')}:", *(f"    {line}" for line in facts[title].splitlines())]
    lines += [f"  spark reads: {sql}" for sql in facts["spark_reads"]]
    return "\n".join(lines)


def _terms(node: Relation, definition: Definition) -> list[str]:
    return [_term(block, definition) for block in blocks_of(node)]


def _term(node: Relation, definition: Definition) -> str:
    match node:
        case Scan(version=version, relid=relid):
            return f"{SYMBOLS.get(version, '')}{definition.source(relid).name}"
        case Join(inputs=inputs) | UnionAll(inputs=inputs):
            return " ⋈ ".join(_term(child, definition) for child in inputs)
        case Project(input=child):
            return _term(child, definition)
        case Derived(version=version, operation=operation):
            return f"{SYMBOLS.get(version, '')}{operation.name}"
        case Function(alias=alias):
            return alias
