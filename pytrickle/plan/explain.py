"""A refresh plan explained: the same data that is executed, as text and as a dictionary."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from pytrickle.catalog.definition import Definition
from pytrickle.config import EngineName
from pytrickle.plan.algebra.constructs.group import Group
from pytrickle.plan.algebra.delta import at, blocks_of
from pytrickle.plan.algebra.relation import (
    Derived,
    Join,
    Operation,
    Project,
    Relation,
    Scan,
    UnionAll,
    Version,
    leaves,
    operations,
    relids,
    scans,
)
from pytrickle.plan.apply_plan import Stage
from pytrickle.plan.refresh_plan import PostgresQuery, RefreshPlan
from pytrickle.plan.spark.leaves import computed_in, reads_of
from pytrickle.plan.tree import Part, RelationTree, inputs_of, symbol
from pytrickle.readable import counted
from pytrickle.sql_name import sql_name

APPLIED = {
    Stage.CHANGES: "delete and insert rows by their weights",
    Stage.CONTENT: "write the rows that differ",
    Stage.INPUT: "group the rows, add them to the groups' state, write the groups' rows that differ",
    Stage.PARTS: "put the groups' parts together, add them to the groups' state, write the groups' rows that differ",
    Stage.INCREMENTS: "add the increments to the groups' state, write the groups' rows that differ",
    Stage.GROUPS: "replace the state of these groups, write the groups' rows that differ",
    Stage.STATE_PARTS: "put the groups' parts together, replace the groups' state, write the rows that differ",
    Stage.STATE: "replace the groups' state, write the rows that differ",
}
COSTS = {"delta": "for these changes", "whole": "for the first load"}
DIRECT = "the refresher itself, without Spark"
LEFT = "; PostgreSQL adds up and sorts numerics, for Spark's decimals were too narrow in a refresh before"

INNER = "  inner aggregate: computed from all rows of {sources} each time; a stream table of its own would be kept"
KEPT = "  inner groups of {sources}: kept in {table}"
NOT_YET = ", once it is filled after a refresh"

CLOCK = "; docs/howto/last-days.md shows how to compare with a clock of your own"
MINUS = "− "


def describe(plan: RefreshPlan, estimates: Mapping[str, int]) -> dict[str, Any]:
    """Describe a plan as data: action, reason, delta terms, place, indexes that are missing, and the SQL to run.

    `estimates` are the rows that PostgreSQL expects of the queries that it will run.
    """
    placement = plan.placement
    definition = plan.shape.definition
    return {
        "stream_table": definition.qualified_name,
        "action": placement.action.value,
        "reason": placement.reason,
        "differential": plan.shape.query is not None,
        "full_reason": plan.shape.full_reason,
        "sources": [
            {
                "source": _name(w.relid, definition),
                "delta_rows": w.delta_rows,
                "idle": w.delta_rows > 0 and not w.changed,
                "rows_beyond_cut": w.future_rows,
                "capped": w.new is not None,
            }
            for w in plan.ranges
        ],
        "terms": [term for relation in plan.terms for term in _terms(relation, definition)],
        "engine": placement.engine.value,
        "engine_reason": _engine_reason(plan),
        "stage": placement.stage.value,
        "place": placement.place.value if placement.place else None,
        "placement_reason": placement.place_reason,
        "missing_indexes": [index.statement for index in placement.missing if index.column],
        "whole_aggregates": _whole_aggregates(plan),
        "kept_groups": _kept_groups(plan),
        "sql": plan.read.query if plan.read else None,
        "spark_reads": sorted({frame.sql for frame in reads_of(plan.join)}),
        "recomputation_sql": plan.keyed.query if plan.keyed else None,
        "tree": draw(plan, estimates).data(),
    }


def _whole_aggregates(plan: RefreshPlan) -> list[list[str]]:
    """List, by the sources that it is made of, each aggregate within the query that is computed from all rows."""
    if plan.shape.query is None:
        return []
    kept = {each.operation for each in plan.shape.kept if plan.may_keep}
    whole = (each for each in operations(plan.shape.query.rows) if isinstance(each.construct, Group) and not each.keys)
    found = (each for each in whole if each not in kept and not _reads_groups(each, kept))
    return [sorted(_name(relid, plan.shape.definition) for relid in relids(each.input)) for each in found]


def _reads_groups(operation: Operation, kept: AbstractSet[Operation]) -> bool:
    """Whether an operation reads nothing but groups that are kept."""
    return all(isinstance(leaf, Derived) and leaf.operation in kept for leaf in leaves(operation.input))


def _kept_groups(plan: RefreshPlan) -> list[dict[str, Any]]:
    """List the groups within the query that are kept: where, of which sources, and whether they are up to date."""
    definition, filled = plan.shape.definition, plan.kept_as is not None
    return [
        {"table": each.table, "sources": sorted(_name(relid, definition) for relid in each.reads), "filled": filled}
        for each in plan.shape.kept
        if plan.may_keep
    ]


def _name(relid: int, definition: Definition) -> str:
    source = definition.source(relid)
    return sql_name(source.schema, source.name)


def _engine_reason(plan: RefreshPlan) -> str:
    parts = plan.left_to_postgresql
    detail = f"; PostgreSQL computes {', '.join(parts)}" if parts else ""
    wide = plan.placement.engine is EngineName.SPARK and not plan.shape.spark_sums
    return f"{plan.placement.engine_reason}{detail}{LEFT if wide else ''}"


def draw(plan: RefreshPlan, estimates: Mapping[str, int]) -> Part:
    """Draw a plan from its end: what is applied, what Spark does before, and what PostgreSQL reads first."""
    reads = [_read(plan, plan.read, estimates)] if plan.read else _joins(plan)
    if plan.keyed:
        rows = estimates.get(plan.keyed.query)
        reads.append(Part("compute touched groups anew where increments do not suffice", rows, "PostgreSQL"))
    moved = "consolidate" if plan.join or (plan.read and plan.read.weighted) else "hand on"
    detour = ", by way of a staging table" if plan.placement.staging_table else ""
    done = "join, consolidate and group" if plan.grouping else "join and consolidate" if plan.join else moved
    label = f"{done} rows{detour}"
    rows = reads[0].rows if plan.read else sum(part.rows or 0 for part in reads)
    carrier = Part(label, rows, DIRECT if plan.placement.direct else "Spark", tuple(reads))
    target = plan.shape.definition.qualified_name
    return Part(f"apply to {target}: {APPLIED[plan.placement.stage]}", None, "PostgreSQL, one transaction", (carrier,))


def _read(plan: RefreshPlan, postgres_query: PostgresQuery, estimates: Mapping[str, int]) -> Part:
    labels = {Stage.INCREMENTS: "increments of every touched group", Stage.STATE: "every group"}
    label = labels.get(plan.placement.stage, "changed rows" if plan.terms else "all rows")
    place = plan.placement.place.value if plan.placement.place else "PostgreSQL"
    tree = RelationTree(plan.shape.definition, {change_range.relid: change_range for change_range in plan.ranges})
    return Part(label, estimates.get(postgres_query.query), place, tuple(tree.part(node) for node in _relations(plan)))


def _joins(plan: RefreshPlan) -> list[Part]:
    ranges = {change_range.relid: change_range for change_range in plan.ranges}
    blocks = [block for node in _relations(plan) for block in blocks_of(node)]
    parts = []
    for block, term in zip(blocks, plan.join, strict=True):
        changes = sum(ranges[scan.relid].delta_rows for scan in scans(block) if scan.version is Version.DELTA)
        computed = frozenset((each.alias, each.version) for each in computed_in((term,)))
        reached = dict.fromkeys(term.reached, changes)
        tree = RelationTree(plan.shape.definition, ranges, "PostgreSQL", reached, term.together, computed)
        parts.append(tree.part(block))
    return parts


def _relations(plan: RefreshPlan) -> tuple[Relation, ...]:
    """Return what is read: the terms of the delta, the rows at the new frontier, or the sources as they are."""
    if plan.placement.place is not None:
        return plan.terms
    if plan.shape.query is not None:
        return (at(plan.shape.query.rows, Version.NEW),)
    return tuple(Scan(str(w.relid), w.relid, (), Version.NEW) for w in plan.ranges)


def render_text(facts: dict[str, Any]) -> str:
    """Lay out a description for people."""
    headline = f"{facts['action']} ({facts['reason']})"
    if facts["supposing_changes"]:
        headline = f"NO_DATA (no changes); with one change in every source: {facts['action']}"
    lines = [f"{facts['stream_table']}: {headline}"]
    lines += [f"  gating: {facts['gating']}: {facts['decision']}. {facts['gating_reason']}".rstrip()]
    lines += _frozen(facts)
    lines += [f"  freshness: {facts['freshness']['reason']}"]
    lines += _cycle(facts["cycle"])
    lines += [f"  last: {facts['last']}"] if facts["last"] else []
    lines += [f"  next: {facts['next']}"]
    lines += [f"  refreshed together with: {facts['together_with']}"] if facts["together_with"] else []
    lines += [f"  at the same time as: {facts['beside']}"]
    lines += [_differential(facts)]
    if facts["whole_from_rows"]:
        lines.append(f"  whole refresh expected to pay from: {facts['whole_from_rows']:,} changed rows")
    for source in facts["sources"]:
        cut = (
            f", read at a cut, {counted(source['rows_beyond_cut'], 'changed row')} beyond it"
            if source["capped"]
            else ""
        )
        idle = ", which cancel each other in the columns that are read" if source["idle"] else ""
        supposed = ", supposed" if facts["supposing_changes"] and source["delta_rows"] else ""
        changed = counted(source["delta_rows"], "changed row")
        lines.append(f"  source {source['source']}: {changed}{supposed}{idle}{cut}")
    lines += _delta(facts)
    lines += [f"  engine: {facts['engine']} ({facts['engine_reason']})"]
    if facts["place"]:
        lines.append(f"  runs in: {facts['place']} ({facts['placement_reason']})")
    lines += _plan(facts)
    return "\n".join(lines)


def render_preview(facts: dict[str, Any]) -> str:
    """Lay out for people what would become of a query."""
    lines = ["A stream table of this query, after one change in every source:", _differential(facts)]
    lines += [f"  gating: {facts['gating']}"]
    lines += [f"  source: {source['source']}" for source in facts["sources"]]
    lines += _delta(facts)
    lines += [f"  {_after(each)}" for each in facts["after"]]
    cost = facts["cost"]
    known = [f"{cost[part]:,.0f} {said}" for part, said in COSTS.items() if cost[part] is not None]
    lines += [f"  cost that PostgreSQL expects, in its own units: {', '.join(known)}"] if known else []
    lines += _plan(facts)
    return "\n".join(lines)


def _after(facts: Mapping[str, Any]) -> str:
    changes = facts["changes"]
    when = "first load" if changes is None else f"after {counted(changes, 'changed row')}"
    place = f", in {facts['place']}" if facts["place"] else ""
    return f"{when}: {facts['action']} by {facts['engine']}{place}"


def _differential(facts: Mapping[str, Any]) -> str:
    reason = str(facts["full_reason"])
    clock = CLOCK if reason.startswith(("now()", "CURRENT_DATE")) else ""
    return f"  differential: {'yes' if facts['differential'] else f'no, {reason}{clock}'}"


def _delta(facts: Mapping[str, Any]) -> list[str]:
    return [
        f"  delta = {term}" if i == 0 else f"        {'' if term.startswith(MINUS) else '+ '}{term}"
        for i, term in enumerate(facts["terms"])
    ]


def _plan(facts: Mapping[str, Any]) -> list[str]:
    missing = [f"  missing index: {statement};" for statement in facts["missing_indexes"]]
    missing += map(_kept, facts["kept_groups"])
    missing += [INNER.format(sources=", ".join(sources)) for sources in facts["whole_aggregates"]]
    return [*missing, "  plan:", *(f"    {line}" for line in Part.of(facts["tree"]).lines())]


def _kept(facts: Mapping[str, Any]) -> str:
    where = facts["table"] or "a hidden table"
    return KEPT.format(sources=", ".join(facts["sources"]), table=where) + ("" if facts["filled"] else NOT_YET)


def _cycle(facts: dict[str, Any] | None) -> list[str]:
    if facts is None:
        return []
    begin = f"from nothing, since {facts['anew']}" if facts["anew"] else "from what it shows"
    rounds = f"{begin}, in at most {facts['limit']} rounds until nothing changes"
    refused = facts["refused"] and f"refused: {facts['refused']}"
    return [f"  cycle: {facts['way']}", f"  rounds: {refused or rounds}"]


def _frozen(facts: Mapping[str, Any]) -> list[str]:
    if facts["frozen_by"] is None:
        return []
    if facts["frozen_before"] is None:
        return [f"  frozen rows: none yet, by {facts['frozen_by']}: there is no effective watermark"]
    late = counted(facts["late_changes"], "change")
    return [f"  frozen rows: those whose {facts['frozen_by']} is before {facts['frozen_before']}; {late} in the ledger"]


def render_queries(facts: dict[str, Any]) -> str:
    """Lay out for people the SQL that PostgreSQL and Spark are given."""
    titled = [(title.replace("_", " "), facts[title]) for title in ("sql", "recomputation_sql") if facts[title]]
    titled += [("spark read", sql) for sql in facts["spark_reads"]]
    told = (line for title, sql in titled for line in (f"  {title}:", *(f"    {each}" for each in sql.splitlines())))
    return "\n".join(told)


def _terms(node: Any, definition: Definition) -> list[str]:
    if isinstance(node, UnionAll):
        return [term for child in node.inputs for term in _terms(child, definition)]
    join = node.input if isinstance(node, Project) else node
    sign = MINUS if isinstance(join, Join) and join.negated else ""
    return [sign + " ⋈ ".join(_factors(node, definition))]


def _factors(node: Any, definition: Definition) -> list[str]:
    """Name the leaves of a term, and what it has of other classes, each with its version."""
    if isinstance(node, Scan):
        return [f"{symbol(node)}{sql_name(definition.source(node.relid).name)}"]
    below = [factor for child in inputs_of(node) for factor in _factors(child, definition)]
    operation = getattr(node, "operation", None)
    return below if operation is None else [f"{symbol(node)}{operation.name}({', '.join(below)})"]
